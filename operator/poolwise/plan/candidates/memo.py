"""Answers of the model that were asked before.

Predictions are pure, and most passes ask again what the last one asked. The memory is bounded,
belongs to whoever owns the passes, and changes nothing but the time they take.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import TypeVar, cast

T = TypeVar("T")
PAGES = 8192
"""Pairs of work and machine that are remembered, with 1 to 30 answers each."""


class Page:
    """All answers about one subject."""

    def __init__(self) -> None:
        self._answers: dict[Hashable, object] = {}

    def get(self, question: Hashable, answer: Callable[[], T]) -> T:
        """The known answer, or a new one."""
        if question not in self._answers:
            self._answers[question] = answer()
        return cast(T, self._answers[question])


class Memo:
    """Pages by subject; the least recently used goes first."""

    def __init__(self, limit: int = PAGES) -> None:
        self._limit = limit
        self._pages: OrderedDict[Hashable, Page] = OrderedDict()

    def __len__(self) -> int:
        return len(self._pages)

    def page(self, subject: Hashable) -> Page:
        """The page of a subject: everything that its answers depend on."""
        found = self._pages.get(subject)
        if found is not None:
            self._pages.move_to_end(subject)
            return found
        found = self._pages[subject] = Page()
        if len(self._pages) > self._limit:
            self._pages.popitem(last=False)
        return found
