"""What has begun and not ended: work that hangs raises nothing, so that its age alone tells."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class UnderWay(Generic[K]):
    """Pieces of work of one loop, each with the moment that it began."""

    def __init__(self, monotonic_seconds: Callable[[], float] = time.monotonic) -> None:
        self._monotonic_seconds = monotonic_seconds
        self._began_at: dict[K, float] = {}

    def __len__(self) -> int:
        return len(self._began_at)

    def __contains__(self, piece: K) -> bool:
        return piece in self._began_at

    def begin(self, piece: K) -> None:
        """It is under way; the caller owes an :meth:`end`."""
        self._began_at[piece] = self._monotonic_seconds()

    def end(self, piece: K) -> None:
        """It is over."""
        self._began_at.pop(piece, None)

    @contextmanager
    def during(self, piece: K) -> Iterator[None]:
        """It is under way for as long as the ``with`` lasts."""
        self.begin(piece)
        try:
            yield
        finally:
            self.end(piece)

    def oldest_seconds(self) -> float:
        """How long the oldest has been under way; 0 while none is. Any thread may ask."""
        began_at = list(self._began_at.values())
        return self._monotonic_seconds() - min(began_at) if began_at else 0.0
