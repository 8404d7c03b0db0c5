"""What fraction of its peak a machine reaches: fitted constants, looked up by scope.

A constant is known for all devices, for a family (``hopper``) or for one accelerator; the most
specific one counts, so an accelerator that nobody measured inherits its family, and a family that
nobody measured inherits the whole. At each of them a format's own constant counts before that of
the format that stands in for it, and that before one for all formats. The pooling that decides how
far a specific value may leave its parent is done where the constants are fitted (``bench/fit``), so
here nothing is left to weigh.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from poolwise.errors import TableError
from poolwise.model.formats import LAST_RESORT, STANDS_IN
from poolwise.model.hardware import Device

if TYPE_CHECKING:  # these take a while to import, and the formulas need none of them
    from poolwise.model.residual import Residual
    from poolwise.tables.efficiencies import EfficiencyRow

EVERY = "*"
"""Scope or format of a constant that holds for all."""


class Provenance(enum.StrEnum):
    """Where a constant came from, best first."""

    MEASURED = "measured"
    """Directly, on this accelerator."""
    FITTED = "fitted"
    """On runs of this accelerator."""
    INHERITED = "inherited"
    """On others of its family, or on all."""
    SPECIFICATION = "specification"
    """A data sheet or a paper."""

    @staticmethod
    def weakest(several: Iterable[Provenance]) -> Provenance:
        """The least trustworthy one, which is what a prediction made of several deserves."""
        return max(several, key=list(Provenance).index, default=Provenance.SPECIFICATION)


@dataclass(frozen=True, slots=True)
class Efficiency:
    """One constant with what stands behind it."""

    value: float
    spread: float
    """Standard deviation of ln(value), or of ln(measured / predicted) where it widens predictions
    (:class:`poolwise.tables.efficiencies.EfficiencyRow`)."""
    count: int
    provenance: Provenance
    source: str


class Calibration:
    """All constants, by phase, term, scope and format, and residuals by figure. Immutable."""

    def __init__(
        self, rows: Iterable[EfficiencyRow], learnt: Mapping[str, Residual] | None = None
    ) -> None:
        """Without residuals (``learnt``) the formulas have the last word."""
        self._known = {(row.phase, row.term, row.scope, row.format): row for row in rows}
        self._found: dict[tuple[str, str, str, str, str], Efficiency | None] = {}
        self._residuals = dict(learnt or {})
        self._formulas: Calibration | None = None

    def residual(self, figure: str) -> Residual | None:
        """What measured runs tell beyond the constants; None where nothing does."""
        return self._residuals.get(figure)

    @property
    def formulas(self) -> Calibration:
        """The same constants without residuals."""
        if not self._residuals:
            return self
        if self._formulas is None:
            self._formulas = self.with_residuals({})
        return self._formulas

    def with_residuals(self, learnt: Mapping[str, Residual]) -> Calibration:
        """The same constants with these residuals, and no others."""
        return Calibration(self._known.values(), learnt)

    def replaced(self, changes: Mapping[tuple[str, str, str, str], float]) -> Calibration:
        """The same with other values for known (phase, term, scope, format): for fitting."""
        rows = dict(self._known)
        for key, value in changes.items():
            rows[key] = rows[key].model_copy(update={"value": value})
        return Calibration(rows.values(), self._residuals)

    def find(
        self, phase: str, term: str, device: Device, number_format: str = EVERY
    ) -> Efficiency | None:
        """The most specific one: accelerator, family, all; at each, the format before its stand-in
        and ``*``."""
        key = (phase, term, device.name, device.family, number_format)
        if key not in self._found:
            self._found[key] = self._search(*key)
        return self._found[key]

    def efficiency(
        self, phase: str, term: str, device: Device, number_format: str = EVERY
    ) -> Efficiency:
        """As :meth:`find`, else of the last resort; one that no table has is a TableError."""
        other = LAST_RESORT.get(number_format, number_format)
        found = self.find(phase, term, device, number_format) or self.find(
            phase, term, device, other
        )
        if found is None:
            raise TableError(f"no efficiency for {phase} {term} of {device.name} {number_format}")
        return found

    def value(self, phase: str, term: str, device: Device, number_format: str = EVERY) -> float:
        """The bare figure of :meth:`efficiency`; formulas ask for many, and mostly again."""
        known = self._found.get((phase, term, device.name, device.family, number_format))
        if known is not None:
            return known.value
        return self.efficiency(phase, term, device, number_format).value

    def _search(
        self, phase: str, term: str, name: str, family: str, number_format: str
    ) -> Efficiency | None:
        wanted_formats = (number_format, STANDS_IN.get(number_format, EVERY), EVERY)
        for scope in (name, family, EVERY):
            for wanted in wanted_formats:
                row = self._known.get((phase, term, scope, wanted))
                if row is not None:
                    return _efficiency(row, is_own=scope == name)
        return None


def _efficiency(row: EfficiencyRow, is_own: bool) -> Efficiency:
    provenance = Provenance(row.provenance)
    if not is_own and provenance is not Provenance.SPECIFICATION:
        provenance = Provenance.INHERITED
    return Efficiency(row.value, row.spread, row.count, provenance, row.source)
