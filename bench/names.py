"""Accelerators and models by one spelling each, so that nothing behind compares two of them.

The shipped tables find a name in any case and by alias, and an accelerator by what its driver or a
node's label calls it, where that is one device. A name that they do not know is spelt as it comes
first, whatever its case and separators.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial

from poolwise.tables import AcceleratorRow, ModelRow, Tables, load
from poolwise.tables.reading import fold

Find = Callable[[str], AcceleratorRow | ModelRow | None]


def with_known_names(rows: Iterable[Mapping[str, str]]) -> Iterator[dict[str, str]]:
    """The same rows with ``gpu`` and ``model`` as the shipped tables call them."""
    tables = load()
    spellings = {"gpu": _Spellings(partial(_device, tables)), "model": _Spellings(tables.model)}
    for row in rows:
        names = {column: of[row[column]] for column, of in spellings.items() if column in row}
        yield {**row, **names}


def _device(tables: Tables, name: str) -> AcceleratorRow | None:
    """None also for a name of several devices, as ``H100`` is."""
    labelled = tables.accelerators.labelled(name)
    return tables.accelerator(name) or (labelled[0] if len(labelled) == 1 else None)


class _Spellings(dict[str, str]):
    """The one spelling of each name that was met, which is found out once."""

    def __init__(self, find: Find) -> None:
        super().__init__()
        self._find = find
        self._strangers: dict[str, str] = {}

    def __missing__(self, name: str) -> str:
        known = self._find(name)
        first = self._strangers.setdefault(fold(name), name)
        self[name] = known.name if known else first
        return self[name]
