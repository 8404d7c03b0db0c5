"""Answers of the model that were asked before.

Predictions are pure, and most passes ask again what the last one asked. The memory is bounded,
belongs to whoever owns the passes, and changes nothing but the time they take.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import TypeVar, cast

from poolwise.model.hardware import Machine

T = TypeVar("T")
LIMIT = 20_000
"""Answers kept; a few kilobytes each."""


class Memo:
    """The least recently used answer goes first."""

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._answers: OrderedDict[Hashable, object] = OrderedDict()

    def __len__(self) -> int:
        return len(self._answers)

    def get(self, question: Hashable, answer: Callable[[], T]) -> T:
        """The known answer, or a new one."""
        if question in self._answers:
            self._answers.move_to_end(question)
            return cast(T, self._answers[question])
        found = answer()
        self._answers[question] = found
        if len(self._answers) > self._limit:
            self._answers.popitem(last=False)
        return found


def fingerprint(machine: Machine) -> str:
    """Equal for machines of which the model says the same."""
    return repr(machine)
