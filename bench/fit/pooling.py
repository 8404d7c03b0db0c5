"""Least squares with partial pooling: all accelerators, families, single accelerators.

A constant's value for an accelerator is a product of levels: one for all (by format), one for its
family, one for itself. The latter two have a prior of 1 with a given width, so a level that few
rows speak for stays near its parent, and one with many rows may leave it: what a hierarchical
Bayesian fit does at its mode. A few wild rows do not bend it (soft L1 loss).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from bench.accuracy import Vector
from bench.fit.kriging import Matrix
from bench.fit.rows import Behind, Key, constant_row
from bench.fit.uncertainty import covariance, deviation
from bench.tables import Row
from poolwise.model.efficiency import EVERY, Calibration
from poolwise.model.hardware import Device
from poolwise.tables.efficiencies import EfficiencyRow

NOISE = 0.08
"""Scatter of ln(measured) between runs of one configuration (releases, submitters)."""

TOLERANCE = 1e-3
"""Relative change at which a fit ends: constants are then good to far less than their spread."""
MOST_STEPS = 20
DIFFERENCE = 1e-5
UNTOLD = Behind(0, "")
"""Of rows that a fit tries, and never ships."""


@dataclass(frozen=True, slots=True)
class Constant:
    """One constant with its levels and their priors, as standard deviations of ln."""

    phase: str
    term: str
    start: float
    width: float
    formats: tuple[str, ...] = (EVERY,)
    family_width: float = 0.0
    """0: the same for all families."""
    accelerator_width: float = 0.0
    most: float = np.inf
    """Bound on the common value, e.g. 1 for a share."""


@dataclass(frozen=True, slots=True)
class _Parameter:
    constant: Constant
    level: str
    """A format for the common level, else ``family:`` or ``accelerator:`` and a name."""
    width: float


@dataclass(slots=True)
class Pool:
    """Constants over the devices that were measured."""

    constants: Sequence[Constant]
    devices: Sequence[Device]
    """One for each row, in the order of the rows."""
    parameters: list[_Parameter] = field(init=False)

    def __post_init__(self) -> None:
        self.parameters = [each for constant in self.constants for each in self._levels(constant)]

    def fit(
        self,
        residuals: Callable[[Calibration], Vector],
        fixed: Iterable[EfficiencyRow],
        start: Vector | None = None,
    ) -> Vector:
        """Parameters that minimise ln(predicted / measured); ``fixed`` rows are not fitted."""
        others = tuple(fixed)
        widths = np.array([each.width for each in self.parameters])

        def weighted(parameters: Vector) -> Vector:
            errors = residuals(self.calibration(parameters, others)) / NOISE
            return np.concatenate([_softened(errors), parameters / widths])

        upper = np.array([self._upper(each) for each in self.parameters])
        begin = np.zeros(len(self.parameters)) if start is None else start
        found = least_squares(
            weighted,
            np.minimum(begin, upper - 1e-6),
            jac=lambda parameters: self._jacobian(weighted, parameters),
            bounds=(-np.inf, upper),
            xtol=TOLERANCE,
            ftol=TOLERANCE,
            max_nfev=MOST_STEPS,
        )
        return np.asarray(found.x)

    def _jacobian(self, function: Callable[[Vector], Vector], parameters: Vector) -> Vector:
        """By differences; families, and accelerators, speak for rows of their own, so that one
        call moves the levels of all of them."""
        base = function(parameters)
        rows = len(self.devices)
        jacobian = np.zeros((len(base), len(parameters)))
        for together in self._moved_together():
            moved = parameters.copy()
            moved[together] -= DIFFERENCE
            change = (base - function(moved)) / DIFFERENCE
            for index in together:
                own = self._own_rows(self.parameters[index].level)
                jacobian[:rows, index] = np.where(own, change[:rows], 0.0)
                jacobian[rows + index, index] = change[rows + index]
        return jacobian

    def _moved_together(self) -> list[list[int]]:
        """Indices of parameters by constant and kind of level; common ones each alone."""
        found: dict[tuple[int, str], list[int]] = {}
        for index, each in enumerate(self.parameters):
            kind, _, name = each.level.partition(":")
            key = (id(each.constant), kind if name else each.level)
            found.setdefault(key, []).append(index)
        return list(found.values())

    def _own_rows(self, level: str) -> NDArray[np.bool_]:
        kind, _, name = level.partition(":")
        if not name:
            return np.ones(len(self.devices), dtype=bool)
        names = (each.family if kind == "family" else each.name for each in self.devices)
        return np.array([each == name for each in names])

    def calibration(self, parameters: Vector, fixed: Iterable[EfficiencyRow]) -> Calibration:
        """All constants at these parameters."""
        values = self.values(parameters)
        rows = [constant_row(key, value, UNTOLD, 0.0, "fit") for key, value in values.items()]
        return Calibration([*fixed, *rows])

    def values(self, parameters: Vector) -> dict[Key, float]:
        """Values by scope: the common one, and those of families and accelerators with levels."""
        starts = {(each.phase, each.term): each.start for each in self.constants}
        return {
            key: starts[key[:2]] * float(np.exp(sum(parameters[part] for part in parts)))
            for key, parts in self._parts().items()
        }

    def _parts(self) -> dict[Key, list[int]]:
        """The parameters that each constant is made of."""
        places = {
            (id(each.constant), each.level): index for index, each in enumerate(self.parameters)
        }
        return {
            (constant.phase, constant.term, scope, number_format): [
                places[id(constant), level] for level in (number_format, *levels)
            ]
            for constant in self.constants
            for scope, levels in self._scopes(constant).items()
            for number_format in constant.formats
        }

    def covariance(
        self,
        residuals: Callable[[Calibration], Vector],
        fixed: Iterable[EfficiencyRow],
        parameters: Vector,
        groups: Sequence[Hashable],
    ) -> Matrix:
        """Of fitted parameters (:mod:`bench.fit.uncertainty`); groups are those of the rows."""
        others = tuple(fixed)

        def errors_of(moved: Vector) -> Vector:
            return np.concatenate([residuals(self.calibration(moved, others)), moved])

        slopes = self._jacobian(errors_of, parameters)[: len(self.devices)]
        errors = residuals(self.calibration(parameters, others))
        weights = 1 / np.sqrt(1 + (errors / NOISE) ** 2) / NOISE**2
        widths = np.array([each.width for each in self.parameters])
        return covariance(slopes, errors, weights, widths, groups)

    def rows(
        self,
        parameters: Vector,
        known: Matrix,
        formats: Sequence[str],
        measured: Sequence[Row],
        source: str,
    ) -> list[EfficiencyRow]:
        """Rows to ship; ``formats`` are those of the measured rows, ``known`` the covariance.

        A scope that no row speaks for is left out, but for the common one.
        """
        behind, parts = self._behind(formats, measured), self._parts()
        shipped = []
        for key, value in self.values(parameters).items():
            rows = behind.get((key[2], key[3]), [])
            if rows or key[2] == EVERY:
                spread = deviation(known, parts[key])
                told = Behind.of(rows, measured)
                shipped.append(constant_row(key, value, told, spread, source))
        return shipped

    def _behind(
        self, formats: Sequence[str], measured: Sequence[Row]
    ) -> dict[tuple[str, str], list[Row]]:
        found: dict[tuple[str, str], list[Row]] = {}
        for device, number_format, row in zip(self.devices, formats, measured, strict=True):
            for scope in (device.name, device.family, EVERY):
                for each in (number_format, EVERY):
                    found.setdefault((scope, each), []).append(row)
        return found

    def _levels(self, constant: Constant) -> list[_Parameter]:
        common = [_Parameter(constant, each, constant.width) for each in constant.formats]
        families, names = self._observed()
        of_family = [
            _Parameter(constant, f"family:{each}", constant.family_width) for each in families
        ]
        of_name = [
            _Parameter(constant, f"accelerator:{each}", constant.accelerator_width)
            for each in names
        ]
        return [
            *common,
            *(of_family if constant.family_width else ()),
            *(of_name if constant.accelerator_width else ()),
        ]

    def _observed(self) -> tuple[list[str], list[str]]:
        return (
            sorted({device.family for device in self.devices}),
            sorted({device.name for device in self.devices}),
        )

    def _scopes(self, constant: Constant) -> dict[str, list[str]]:
        """Each scope with the levels that it multiplies."""
        scopes: dict[str, list[str]] = {EVERY: []}
        for device in self.devices:
            of_family = [f"family:{device.family}"] if constant.family_width else []
            if of_family:
                scopes[device.family] = of_family
            if constant.accelerator_width:
                scopes[device.name] = [*of_family, f"accelerator:{device.name}"]
        return scopes

    def _upper(self, parameter: _Parameter) -> float:
        if ":" in parameter.level:
            return np.inf
        return float(np.log(parameter.constant.most / parameter.constant.start))


def _softened(errors: Vector) -> Vector:
    """Residuals whose squares are the soft L1 loss, which grows as the error beyond 1."""
    softened: Vector = np.sign(errors) * np.sqrt(2 * (np.sqrt(1 + errors**2) - 1))
    return softened
