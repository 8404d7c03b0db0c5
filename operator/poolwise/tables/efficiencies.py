"""Efficiencies: what fraction of its peak a device reaches, and other fitted constants.

The files are written by the programs of ``bench/fit`` from published measurements, one per part
of the model: ``efficiencies_PHASE.toml``. A row is one term for one scope, the most specific scope
wins: an accelerator, a family of accelerators, or ``*``.
"""

from __future__ import annotations

import tomllib
from importlib import resources
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from poolwise.errors import TableError

DATE = r"^\d{4}(-\d\d){0,2}(/\d{4}(-\d\d){0,2})?$"
"""A year, a month or a day, or two of them from the oldest to the newest."""
PHASES = ("training", "collectives", "serving", "requests", "kernels")


class EfficiencyRow(BaseModel):
    """One fitted or measured constant."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    phase: str
    """One of :data:`PHASES`."""
    term: str
    """What it scales; the unit is in the name unless it is a fraction of peak."""
    scope: str = "*"
    """An accelerator's name, a family, or ``*`` for all."""
    format: str = "*"
    """Arithmetic or class that it holds for; ``*`` for all."""
    value: float = Field(ge=0, allow_inf_nan=False)
    spread: float = Field(ge=0, allow_inf_nan=False)
    """Standard deviation of ln(value): how far the rows behind it, the errors of one configuration
    taken as one, and the fit's priors leave it open. Of terms that widen predictions (``seconds``
    of collectives and kernels, ``*_ratio``, ``products`` and ``experts`` of training,
    ``weights_bytes`` and ``working_bytes`` of serving) that of ln(measured / predicted). 0 only
    where nothing was measured and the value is exact by definition: a date, an engine's setting,
    none of something."""
    count: int = Field(ge=0)
    """Measured rows behind it; 0: from a data sheet or a paper."""
    provenance: Literal["measured", "fitted", "specification"]
    source: str = Field(min_length=1)
    date: str = Field(pattern=DATE)
    """When the rows behind it were measured, ``OLDEST/NEWEST`` (ISO 8601); of a specification the
    date of its document, and of one without a document the day on which it was judged."""

    @model_validator(mode="after")
    def _is_uncertain(self) -> Self:
        if self.count and not self.spread:
            raise ValueError(f"spread is 0, but {self.count} measured rows leave more open")
        return self


def load() -> tuple[EfficiencyRow, ...]:
    """Rows of all shipped files. Raises TableError for a malformed one."""
    folder = resources.files("poolwise.tables")
    present = [file for file in map(file_of, PHASES) if (folder / file).is_file()]
    texts = {file: (folder / file).read_text(encoding="utf-8") for file in present}
    return tuple(row for file, text in texts.items() for row in parse(file, text))


def file_of(phase: str) -> str:
    """The shipped file that holds a phase."""
    return f"efficiencies_{phase}.toml"


def parse(file: str, text: str) -> tuple[EfficiencyRow, ...]:
    """Rows of one file; ``file`` is for messages."""
    try:
        phases = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise TableError(f"{file}: {error}") from error
    rows = [(phase, cells) for phase, table in phases.items() for cells in table]
    return tuple(_row(f"{file}: {phase}", {"phase": phase, **cells}) for phase, cells in rows)


def _row(where: str, cells: dict[str, object]) -> EfficiencyRow:
    try:
        return EfficiencyRow.model_validate(cells)
    except ValidationError as error:
        first = error.errors()[0]
        column = ".".join(map(str, first["loc"]))
        raise TableError(f"{where}, {cells.get('term')}, {column}: {first['msg']}") from error
