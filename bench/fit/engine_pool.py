"""Least squares of a sum of terms, each times a constant of the engine, pooled over engines.

Every constant is a common value times one of the engine, whose logarithms have priors, so an
engine with few rows stays near the others. Wild rows do not bend the fit (Cauchy's loss): engines
that compile kernels during a run show first tokens of seconds, which no request beside them has.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import least_squares

from bench.accuracy import Vector
from bench.serving_runs import ENGINES
from poolwise.model.efficiency import EVERY
from poolwise.model.serving.front_end import REQUESTS as PHASE
from poolwise.model.serving.queueing import Z95
from poolwise.tables import EfficiencyRow

SOURCE = "bench.fit.requests on open rows of serve_measured (aiconfigurator's silicon sample)"
FULL_ROWS = 15
"""Of a group: more of them count like the root of their number."""


@dataclass(frozen=True, slots=True)
class Constant:
    """With standard deviations of ln, for all and for one engine."""

    term: str
    start: float
    width: float
    engine_width: float


@dataclass(frozen=True, slots=True)
class Rows:
    """Measured times with what the constants multiply."""

    features: Vector
    """A row each, a column for each constant."""
    certain: Vector
    """Seconds that no constant scales."""
    seconds: Vector
    engines: tuple[str, ...]
    groups: tuple[str, ...]

    @property
    def weights(self) -> Vector:
        """So that a group of many near-identical rows does not outvote ten others."""
        sizes = Counter(self.groups)
        return np.array([min(1.0, (FULL_ROWS / sizes[each]) ** 0.5) for each in self.groups])

    @property
    def engine_indices(self) -> list[int]:
        """Places in :data:`ENGINES`."""
        return [ENGINES.index(each) for each in self.engines]

    def chosen(self, indices: Sequence[int]) -> Rows:
        """Some of them."""
        return Rows(
            self.features[indices],
            self.certain[indices],
            self.seconds[indices],
            tuple(self.engines[index] for index in indices),
            tuple(self.groups[index] for index in indices),
        )

    def residuals(self, values: Vector) -> Vector:
        """ln(predicted / measured) with values by engine (rows) and constant (columns)."""
        predicted = (values[self.engine_indices] * self.features).sum(axis=1) + self.certain
        return np.asarray(np.log(predicted / self.seconds))


def fit(constants: Sequence[Constant], rows: Rows, noise: float) -> Vector:
    """Values by engine (rows) and constant (columns); ``noise`` is the scatter of ln(measured)."""
    weights = np.sqrt(rows.weights)
    start = np.log([each.start for each in constants])
    common = [each.width for each in constants]
    of_engine = [each.engine_width for each in constants]
    widths = np.array([*common, *(of_engine * len(ENGINES))])

    def values(parameters: Vector) -> Vector:
        levels = parameters.reshape(len(ENGINES) + 1, len(constants))
        return np.asarray(np.exp(start + levels[0] + levels[1:]))

    def errors(parameters: Vector) -> Vector:
        softened = _softened(rows.residuals(values(parameters)) / noise)
        return np.concatenate([softened * weights, parameters / widths])

    found = least_squares(errors, np.zeros(len(widths)), xtol=1e-4, ftol=1e-4)
    return values(np.asarray(found.x))


def left_out(
    constants: Sequence[Constant], rows: Rows, units: Sequence[object], noise: float
) -> Vector:
    """Residuals under constants that the row's unit had no part in."""
    errors = np.zeros(len(units))
    for unit in set(units):
        inside = [index for index, each in enumerate(units) if each == unit]
        others = [index for index, each in enumerate(units) if each != unit]
        values = fit(constants, rows.chosen(others), noise)
        errors[inside] = rows.chosen(inside).residuals(values)
    return errors


def constant_rows(constants: Sequence[Constant], rows: Rows, noise: float) -> list[EfficiencyRow]:
    """Rows to ship: each constant of each engine, the common value where none was measured."""
    values = fit(constants, rows, noise)
    spread, counts = nine_in_ten(rows.residuals(values)), Counter(rows.engines)
    return [
        row(constant.term, engine, float(value), spread, counts[engine] or len(rows.engines))
        for constant, column in zip(constants, values.T, strict=True)
        for engine, value in zip(ENGINES, column, strict=True)
    ]


def nine_in_ten(errors: Vector) -> float:
    """Standard deviation that makes nine in ten errors lie inside."""
    return float(np.quantile(np.abs(errors), 0.9)) / Z95


def row(term: str, engine: str, value: float, spread: float, count: int) -> EfficiencyRow:
    """A fitted one of this phase."""
    return EfficiencyRow(
        phase=PHASE,
        term=term,
        scope=EVERY,
        format=engine,
        value=value,
        spread=spread,
        count=count,
        provenance="fitted",
        source=SOURCE,
    )


def _softened(errors: Vector) -> Vector:
    """Whose squares are the loss of Cauchy's law."""
    softened: Vector = np.sign(errors) * np.sqrt(np.log1p(errors**2))
    return softened
