"""Figures that a run measures, for people to read beside their bars."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Figure:
    """A measured value and the highest one that is promised."""

    what: str
    value: float
    unit: str
    bar: float

    def __str__(self) -> str:
        over = "  OVER THE BAR" if self.value > self.bar else ""
        return f"{self.what:44} {self.value:8.1f} {self.unit:4} (bar {self.bar:g}){over}"


@dataclass
class Figures:
    """All figures of one run; a machine that is busy with other work makes times no test."""

    measured: list[Figure] = field(default_factory=list)

    def note(self, what: str, value: float, unit: str, bar: float) -> None:
        """Keep one for the end of the run."""
        self.measured.append(Figure(what, value, unit, bar))
