"""Say how long each step of a run took, when it ends and once more in a table at the end."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from e2e.progress import elapsed, say


class Steps:
    """The steps of one run, in order."""

    def __init__(self) -> None:
        self._taken: list[tuple[str, float]] = []
        self._started = time.monotonic()

    @contextmanager
    def step(self, title: str) -> Iterator[None]:
        """Time what the ``with`` holds, whether it goes well or not."""
        say(f"==> {title}")
        started = time.monotonic()
        try:
            yield
        finally:
            seconds = time.monotonic() - started
            self._taken.append((title, seconds))
            say(f"    {title}: {elapsed(seconds)}")

    def table(self) -> str:
        """One line for each step, and one for all."""
        total = time.monotonic() - self._started
        rows = [*self._taken, ("all", total)]
        return "\n".join(f"    {title:24} {elapsed(seconds):>12}" for title, seconds in rows)
