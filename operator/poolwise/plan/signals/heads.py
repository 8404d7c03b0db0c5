"""What series are called, read once and remembered, in bounded memory whatever is told.

Parsing what a series is called takes a hundred times as long as looking it up, and hundreds of
replicas answer the same series each few seconds. But who answers may make up new ones each time,
long ones, in characters of four bytes: so bytes are counted and not entries. Names and labels that
many series have are kept once.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable

Label = tuple[str, str]
Labels = tuple[Label, ...]
Head = tuple[str, Labels]

MOST_BYTES = 16 * 2**20
"""Two halves. One holds what 90 vLLM services with a model each answer, of 261 series."""
LONGEST_CHARACTERS = 1_024
"""Longer ones are read each time: engines' have 150, and few should not take the place of many."""
_SHARED_BYTES = 150
"""Of one more in a mapping that grows, which is half empty then."""
_ENTRY_BYTES = _SHARED_BYTES + 56
"""With the pair that it is kept as."""


class Heads:
    """By text. What was not asked for since half of the room was last filled is forgotten."""

    def __init__(self, parsed: Callable[[str], Head], most_bytes: int = MOST_BYTES) -> None:
        self._parsed = parsed
        self._half_bytes = most_bytes // 2
        self._lock = threading.Lock()
        self._new: dict[str, Head] = {}
        self._old: dict[str, Head] = {}
        self._names: dict[str, str] = {}
        self._labels: dict[Label, Label] = {}
        """Of the new ones, each once."""
        self._held_bytes = 0
        """By the new ones."""
        self.read = 0
        """Texts that had to be parsed so far."""

    def of(self, text: str) -> Head:
        """Name and labels, as ``parsed`` reads them; what that raises is not remembered."""
        found = self._new.get(text)
        if found is not None:
            return found
        found = self._old.get(text)
        if found is None:
            self.read += 1
            found = self._parsed(text)
        if len(text) > LONGEST_CHARACTERS:
            return found
        with self._lock:
            return self._kept(text, found)

    def _kept(self, text: str, found: Head) -> Head:
        if self._held_bytes > self._half_bytes:
            self._old, self._new, self._held_bytes = self._new, {}, 0
            self._names, self._labels = {}, {}
        name, labels = found
        kept = self._name(name), tuple(map(self._label, labels))
        self._new[text] = kept
        self._held_bytes += _ENTRY_BYTES + sys.getsizeof(text) + sys.getsizeof(kept[1])
        return kept

    def _name(self, name: str) -> str:
        if name not in self._names:
            self._held_bytes += _SHARED_BYTES + sys.getsizeof(name)
        return self._names.setdefault(name, name)

    def _label(self, label: Label) -> Label:
        if label not in self._labels:
            self._held_bytes += _SHARED_BYTES + sum(map(sys.getsizeof, (label, *label)))
        return self._labels.setdefault(label, label)
