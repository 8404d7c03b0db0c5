"""Rows of the page's tables that are no cases of a grid, as lines of JSON beside the cells."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.autoscale import kept


@dataclass(frozen=True)
class Row:
    """Of one policy in one table."""

    table: str
    name: str
    text: str


@dataclass(frozen=True)
class Rows:
    """What was replayed before, and who may be replayed now."""

    path: Path
    only: Collection[str] | None = None
    """None: everybody."""

    def forget(self, names: Collection[str]) -> None:
        """Rows of these are replayed anew."""
        others = [each for each in self._read() if each.name not in names]
        kept.write(self.path, map(asdict, others))

    def found(self, table: str, name: str, make: Callable[[], str]) -> str | None:
        """What is kept, else what ``make`` tells; None for who is not to be replayed."""
        for each in self._read():
            if (each.table, each.name) == (table, name):
                return each.text
        if self.only is not None and name not in self.only:
            return None
        new = Row(table, name, make())
        kept.append(self.path, asdict(new))
        return new.text

    def _read(self) -> list[Row]:
        return [Row(**told) for told in kept.read(self.path)]
