"""How far off predictions are of what the fit did not see, by how much of it it did not see.

An accelerator that was measured is predicted as well as a whole group of rows left out; one whose
family was measured, as well as a whole accelerator left out; any other, as well as a whole family.

How far left-out accelerators are off differs from one to the next more than chance would have it,
and rows of the well-known ones outvote the others. A stranger is not one more row of theirs but one
more accelerator, so it is as wide as the widest of those that were left out: with k of them, the
next one is no wider k times in k + 1 (conformal prediction with accelerators as the units).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bench.accuracy import Vector
from bench.fit.rows import Behind
from bench.tables import Row
from poolwise.model.efficiency import EVERY
from poolwise.model.hardware import Device
from poolwise.model.prediction import NINE_IN_TEN

FEW = 30
"""Rows of an accelerator below which it has no spread of its own."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """ln(predicted / measured) of each row, without its group, accelerator, family in the fit."""

    groups: Vector
    units: Vector
    families: Vector

    def of(self, chosen: Vector) -> LeftOut:
        """Some of the rows."""
        return LeftOut(self.groups[chosen], self.units[chosen], self.families[chosen])

    def __str__(self) -> str:
        return (
            f"{_figures(self.groups)} without the group, {_figures(self.units)} without the"
            f" accelerator, {_figures(self.families)} without its family"
        )


@dataclass(frozen=True, slots=True)
class Spread:
    """Of one scope."""

    scope: str
    value: float
    behind: Behind


def spreads(devices: Sequence[Device], errors: LeftOut, rows: Sequence[Row]) -> Iterator[Spread]:
    """For all, for each family, for each accelerator with enough rows."""
    names = np.array([device.name for device in devices])
    families = np.array([device.family for device in devices])
    yield Spread(EVERY, _widest(families, errors.families), Behind.of(rows))
    has_siblings = np.array([len(set(names[families == each])) > 1 for each in families])
    if has_siblings.any():
        labels = np.array(units(devices))[has_siblings]
        inherited = _widest(labels, errors.units[has_siblings])
        for family in np.unique(families).tolist():
            yield Spread(family, inherited, Behind.of(_where(rows, families == family)))
    for name in np.unique(names).tolist():
        own = errors.groups[names == name]
        if len(own) >= FEW:
            yield Spread(name, _nine_in_ten(own), Behind.of(_where(rows, names == name)))


def units(devices: Sequence[Device]) -> list[str]:
    """The accelerator of each row; those with few rows are left out together."""
    names = [device.name for device in devices]
    return [name if names.count(name) >= FEW else "few" for name in names]


def _widest(labels: NDArray[np.str_], errors: Vector) -> float:
    """Of what was left out, by label. A few rows do not tell their own spread: labels with less
    than :data:`FEW` count only where no other is."""
    each = [errors[labels == label] for label in np.unique(labels)]
    enough = [several for several in each if len(several) >= FEW]
    return max(map(_nine_in_ten, enough or [errors]))


def _nine_in_ten(errors: Vector) -> float:
    """Such that nine in ten lie inside, as a normal deviation."""
    return float(np.percentile(np.abs(errors), 90)) / NINE_IN_TEN


def _where(rows: Sequence[Row], inside: NDArray[np.bool_]) -> list[Row]:
    return [row for row, is_inside in zip(rows, inside, strict=True) if is_inside]


def _figures(errors: Vector) -> str:
    wrong = 100 * np.abs(np.exp(errors) - 1)
    return f"MdAPE {np.median(wrong):.1f} % p90 {np.percentile(wrong, 90):.0f} %"
