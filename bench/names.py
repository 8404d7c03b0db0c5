"""Accelerators and models by one spelling each, so that nothing behind compares two of them.

The shipped tables find a name in any case and by alias, and an accelerator by what its driver or a
node's label calls it, where that is one device. A checkpoint in fewer bits is the model that it was
made of: its format is a column of its own. A name that they do not know is spelt as it comes first,
whatever its case and separators.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial

from poolwise.tables import AcceleratorRow, ModelRow, Tables, load
from poolwise.tables.reading import fold

Find = Callable[[str], AcceleratorRow | ModelRow | None]

_FORMAT = re.compile(
    r"([-_.](nvfp4|mxfp[48]|fp[48]|awq|gptq|int[48]|w[48]a(8|16)|[48]bit|bf16|quantized))+"
    r"([-_](dynamic|block|kv|static|per-?tensor|preview|v\d))*$",
    re.IGNORECASE,
)
"""As checkpoints in fewer bits are named: ``-FP8-dynamic``, ``-NVFP4-v2``."""


def with_known_names(rows: Iterable[Mapping[str, str]]) -> Iterator[dict[str, str]]:
    """The same rows with ``gpu`` and ``model`` as the shipped tables call them."""
    tables = load()
    finds: dict[str, Find] = {"gpu": partial(_device, tables), "model": partial(_model, tables)}
    spellings = {column: _Spellings(find) for column, find in finds.items()}
    for row in rows:
        names = {column: of[row[column]] for column, of in spellings.items() if column in row}
        yield {**row, **names}


def _device(tables: Tables, name: str) -> AcceleratorRow | None:
    """None also for a name of several devices, as ``H100`` is."""
    labelled = tables.accelerators.labelled(name)
    return tables.accelerator(name) or (labelled[0] if len(labelled) == 1 else None)


def _model(tables: Tables, name: str) -> ModelRow | None:
    return tables.model(name) or tables.model(_FORMAT.sub("", name))


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
