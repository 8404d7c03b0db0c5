"""Least squares of a sum of terms, each times a constant of the engine, pooled over engines.

Every constant is a common value times one of the engine, whose logarithms have priors, so an
engine with few rows stays near the others. What launches cost lies between: nearer to that of
engines that launch prompts alike (:data:`KINDS`). Wild rows do not bend the fit (Cauchy's loss):
engines that compile kernels during a run show first tokens of seconds, which no request beside
them has.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import least_squares

from bench.accuracy import Vector
from bench.dates import span
from bench.fit.kriging import Matrix
from bench.fit.rows import Behind, constant_row
from bench.fit.uncertainty import covariance, deviation
from bench.serving_runs import ENGINES
from poolwise.model.efficiency import EVERY
from poolwise.model.serving.front_end import REQUESTS as PHASE
from poolwise.model.serving.queueing import Z95
from poolwise.tables import EfficiencyRow

SOURCE = "bench.fit.requests on open rows of serve_measured (aiconfigurator's silicon sample)"
FULL_ROWS = 15
"""Of a group: more of them count like the root of their number."""
KINDS = (("sglang", "triton"), ("vllm",))
"""Engines by how they launch a prompt's step. SGLang and TensorRT-LLM capture steps of decoding and
launched a prompt's kernels one by one: TensorRT-LLM's graphs of prompts are off by default (its
docs, features/torch_compile_and_piecewise_cuda_graph), SGLang's became its default late (its docs,
advanced_features/piecewise_cuda_graph). vLLM compiles every step (its docs, design/torch_compile).
"""


@dataclass(frozen=True, slots=True)
class Constant:
    """With standard deviations of ln, for all, for one engine, and for engines of one kind."""

    term: str
    start: float
    width: float
    engine_width: float
    kind_width: float = 0.0
    """0: kinds are not told apart."""


@dataclass(frozen=True, slots=True)
class _Parameter:
    """A factor of one constant for some engines."""

    constant: int
    """Its place."""
    engines: tuple[str, ...]
    width: float


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
    dates: tuple[str, ...]
    """When each was measured."""

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
            tuple(self.dates[index] for index in indices),
        )

    def residuals(self, values: Vector) -> Vector:
        """ln(predicted / measured) with values by engine (rows) and constant (columns)."""
        return np.asarray(np.log((self.parts(values).sum(axis=1) + self.certain) / self.seconds))

    def parts(self, values: Vector) -> Vector:
        """Seconds of each row (rows) by each constant (columns)."""
        parts: Vector = values[self.engine_indices] * self.features
        return parts


def fit(constants: Sequence[Constant], rows: Rows, noise: float) -> Vector:
    """Values by engine (rows) and constant (columns); ``noise`` is the scatter of ln(measured)."""
    weights, several = np.sqrt(rows.weights), _parameters(constants)
    start, widths = np.log([each.start for each in constants]), _widths(several)
    factors = _factors(several, len(constants))

    def values(parameters: Vector) -> Vector:
        return np.asarray(np.exp(start + np.tensordot(parameters, factors, 1)))

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
    values, several = fit(constants, rows, noise), _parameters(constants)
    known, behind = _covariance(several, rows, values, noise), _behind(rows)
    factors = _factors(several, len(constants))
    found = []
    for index, constant in enumerate(constants):
        for place, engine in enumerate(ENGINES):
            spread = deviation(known, np.flatnonzero(factors[:, place, index]).tolist())
            value = float(values[place, index])
            found.append(row(constant.term, engine, value, spread, behind[engine]))
    return found


def _parameters(constants: Sequence[Constant]) -> list[_Parameter]:
    """Of each constant: what is common to all engines, to those of a kind, and each one's own."""
    found = []
    for place, each in enumerate(constants):
        found.append(_Parameter(place, ENGINES, each.width))
        if each.kind_width:
            found += [_Parameter(place, kind, each.kind_width) for kind in KINDS]
        found += [_Parameter(place, (engine,), each.engine_width) for engine in ENGINES]
    return found


def _factors(several: Sequence[_Parameter], constants: int) -> Vector:
    """1 where a parameter (first axis) is of an engine's (second) constant (third)."""
    found = np.zeros((len(several), len(ENGINES), constants))
    for index, each in enumerate(several):
        found[index, [ENGINES.index(engine) for engine in each.engines], each.constant] = 1.0
    return found


def _covariance(several: Sequence[_Parameter], rows: Rows, values: Vector, noise: float) -> Matrix:
    """Of the parameters of :func:`fit`."""
    parts, errors = rows.parts(values), rows.residuals(values)
    shares = parts / (parts.sum(axis=1) + rows.certain)[:, None]
    of_engine = np.array(rows.engines)
    slopes = [
        np.where(np.isin(of_engine, each.engines), shares[:, each.constant], 0.0)
        for each in several
    ]
    weights = rows.weights / (1 + (errors / noise) ** 2) / noise**2
    return covariance(np.stack(slopes, axis=1), errors, weights, _widths(several), rows.groups)


def _widths(several: Sequence[_Parameter]) -> Vector:
    return np.array([each.width for each in several])


def _behind(rows: Rows) -> dict[str, Behind]:
    """By engine; all rows stand behind one that none was measured of."""
    found = {}
    for engine in ENGINES:
        told = zip(rows.engines, rows.dates, strict=True)
        own = [date for each, date in told if each == engine] or rows.dates
        found[engine] = Behind(len(own), span(own))
    return found


def nine_in_ten(errors: Vector) -> float:
    """Standard deviation that makes nine in ten errors lie inside."""
    return float(np.quantile(np.abs(errors), 0.9)) / Z95


def row(term: str, engine: str, value: float, spread: float, behind: Behind) -> EfficiencyRow:
    """A fitted one of this phase."""
    return constant_row((PHASE, term, EVERY, engine), value, behind, spread, SOURCE)


def _softened(errors: Vector) -> Vector:
    """Whose squares are the loss of Cauchy's law."""
    softened: Vector = np.sign(errors) * np.sqrt(np.log1p(errors**2))
    return softened
