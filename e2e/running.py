"""What is started and stopped with a ``with``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self


class Running(ABC):
    """Started when the ``with`` is entered, stopped when it is left, in whatever way."""

    @abstractmethod
    def start(self) -> None:
        """Start it, and return once it can be used."""

    @abstractmethod
    def stop(self) -> None:
        """End it; nothing happens when it is not running."""

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()
