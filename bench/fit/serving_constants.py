"""Constants of the engine's step with their priors, and their fit.

Fitted on times per token in closed loops, on throughputs at saturation and in static batches, and
on prompts alone. A constant is a common value times factors for a family and an engine, each with
a prior of 1, so that what few rows speak for stays near its parent. The loss is Cauchy's: what a
source leaves out (tokens predicted ahead, clients that did not keep up) makes outliers of whole
groups, and these must not bend what the others agree on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product

import numpy as np

from bench.accuracy import Vector
from bench.fit.kriging import Matrix
from bench.fit.levels import Factored, Levels, Predict, Values
from bench.fit.rows import PRIOR, Behind, constant_row
from bench.fit.serving_samples import Sample
from bench.tables import Row
from poolwise.model.efficiency import EVERY, Calibration, Efficiency
from poolwise.model.hardware import Device
from poolwise.model.residual import Residual
from poolwise.tables import EfficiencyRow, Tables

PHASE = "serving"
SOURCE = "bench.fit.serving on open rows of serve_measured (aiconfigurator, TensorRT-LLM, gpt-fast)"
HEADER = """Constants of serving: fractions of what a device reaches, times in seconds, bytes.
Rows with provenance "fitted" are written by `python -m bench.fit.serving --write`, those of
memory by `python -m bench.fit.serving_memory --write`;
rows with provenance "specification" are kept by hand and stay."""
UNITS = ("bf16", "fp16", "fp8", "int8", "fp4")
NOISE = 0.06
"""Scatter of ln(measured) of a well-behaved group."""
STEPS = 12
DAMPINGS = (1e-3, 0.1, 10.0)
ENOUGH = 5e-4
"""Relative gain below which the search ends."""

FAMILY, ENGINE = "family", "engine"
EXPERTS = {
    "bf16": Factored(0.8, 0.1),
    "fp8": Factored(0.75, 0.1),
    "int8": Factored(0.75, 0.1),
    "fp8_block": Factored(0.6, 0.1),
    "fp4": Factored(1.0, 0.1),
    "mxfp4": Factored(1.0, 0.1),
    "expanded": Factored(0.6, 0.2),
}
"""Speed of grouped products over dense ones by format. Serving has few models of each, and what one
model shows is not what the next has; so the priors are those of the kernels that were measured by
themselves (``efficiencies_kernels.toml``: ``experts.compute`` over ``gemm.compute``, TensorRT-LLM's
and vLLM's libraries on Hopper and Blackwell), and so are those of width and padding."""
LOGGED = ("reserve_bytes", "working_bytes", "weights_bytes")
"""Terms of memory, which :mod:`bench.fit.serving_memory` reads from logs of engines."""
UNIT_TERMS = ("compute", "expert_compute")
"""Terms whose format is what multiplies; others have a format by engine."""
TERMS: Mapping[str, Factored] = {
    "weight_bandwidth": Factored(0.8, 0.15, {FAMILY: 0.06}),
    "cache_bandwidth": Factored(0.8, 0.3),
    **{f"compute:{unit}": Factored(0.65, 0.15, {FAMILY: 0.1}) for unit in UNITS},
    "attention_compute": Factored(0.65, 0.2),
    **{f"expert_compute:{key}": prior for key, prior in EXPERTS.items()},
    "expert_half_width": Factored(160.0, 0.3),
    "expert_padding_rows": Factored(59.0, 0.3),
    "expert_exchange_bytes": Factored(10.0, 0.7),
    "layer_seconds": Factored(4e-5, 0.7, {FAMILY: 0.15, ENGINE: 0.3}),
    "expert_layer_seconds": Factored(3e-5, 0.7, {ENGINE: 0.3}),
    "early_expert_layer_seconds": Factored(2e-5, 0.7, {ENGINE: 0.3}),
    "index_layer_seconds": Factored(5e-5, 0.7),
    "sequence_seconds": Factored(7e-6, 1.0, {ENGINE: 0.4}),
    "host_seconds": Factored(5e-4, 0.7, {ENGINE: 0.4}),
    "all_reduce_seconds": Factored(7e-6, 0.4, {FAMILY: 0.2}),
    "all_reduce": Factored(1.5, 0.4, {FAMILY: 0.2}),
    "exchange": Factored(1.5, 0.5),
    "interference": Factored(0.9, 0.3, {ENGINE: 0.3}),
}


class _OfRow(Calibration):
    """The constants of one row of a fit, by term; others come from the rows that are fixed."""

    def __init__(self, fixed: Calibration) -> None:
        self._fixed = fixed
        self.terms: dict[str, float] = {}
        self.asked: set[str] = set()

    def residual(self, figure: str) -> Residual | None:
        """None: a residual is what is left after this fit."""
        return None

    def find(
        self, phase: str, term: str, device: Device, number_format: str = EVERY
    ) -> Efficiency | None:
        return self._fixed.find(phase, term, device, number_format)

    def value(self, phase: str, term: str, device: Device, number_format: str = EVERY) -> float:
        key = f"{term}:{number_format}" if term in UNIT_TERMS else term
        if phase == PHASE and key in self.terms:
            self.asked.add(key)
            return self.terms[key]
        return self._fixed.value(phase, term, device, number_format)


class _Predicted:
    """A row's ln(predicted), computed again only when a constant that it asks for has moved."""

    def __init__(self, sample: Sample, fixed: Calibration) -> None:
        self._sample, self._constants = sample, _OfRow(fixed)
        self._known: dict[tuple[float, ...], float] = {}

    def at(self, terms: dict[str, float]) -> float:
        asked = sorted(self._constants.asked)
        key = tuple(terms[name] for name in asked)
        if asked and key in self._known:
            return self._known[key]
        self._constants.terms = terms
        if self._sample.run.held is None:
            self._sample = self._sample.holding(self._constants)
        seconds = float(np.log(self._sample.predicted(self._constants)))
        self._known[tuple(terms[name] for name in sorted(self._constants.asked))] = seconds
        return seconds


class _Sturdy(Levels):
    """The same with the loss ``ln(1 + (error / noise)**2)``, and fewer steps."""

    def fit(
        self, predict: Predict, measured: Vector, weights: Vector, start: Vector | None = None
    ) -> Vector:
        parameters = np.zeros(len(self.parameters)) if start is None else start
        loss = self._loss(predict(self.values(parameters)) - measured, weights, parameters)
        for _ in range(STEPS):
            errors, slopes = self._slopes(predict, parameters, measured)
            for damping in DAMPINGS:
                trial = parameters + self._step(errors, slopes, weights, parameters, damping)
                found = self._loss(predict(self.values(trial)) - measured, weights, trial)
                if found < loss:
                    break
            else:
                break
            parameters, gain, loss = trial, loss - found, found
            if gain < ENOUGH * loss:
                break
        return parameters

    def _sturdy(self, errors: Vector, weights: Vector) -> Vector:
        sturdy: Vector = weights / (1 + (errors / NOISE) ** 2) / NOISE**2
        return sturdy

    def _loss(self, errors: Vector, weights: Vector, parameters: Vector) -> float:
        loss = np.log1p((errors / NOISE) ** 2)
        return float(np.sum(weights * loss) + np.sum((parameters / self.widths) ** 2))


def fitted_rows(several: Sequence[Sample], fixed: Iterable[EfficiencyRow]) -> list[EfficiencyRow]:
    """All constants of the step; with ``fixed`` they make a whole calibration."""
    others = Calibration(fixed)
    levels = _Sturdy(TERMS, [_keys(each) for each in several])
    predicted = [_Predicted(each, others) for each in several]

    def predict(values: Values) -> Vector:
        columns = zip(*(values[name].tolist() for name in values), strict=True)
        terms = (dict(zip(values, column, strict=True)) for column in columns)
        return np.array([each.at(of_row) for each, of_row in zip(predicted, terms, strict=True)])

    measured = np.log([each.run.measured for each in several])
    weights = np.ones(len(several))
    parameters = levels.fit(predict, measured, weights)
    groups = [each.run.group for each in several]
    known = levels.covariance(predict, parameters, measured, weights, groups)
    return _rows(levels, parameters, known, several)


def not_fitted(tables: Tables) -> list[EfficiencyRow]:
    """Rows of other phases, and those of serving that are kept by hand."""
    return [row for row in tables.efficiencies if row.phase != PHASE or is_specified(row)]


def is_specified(row: EfficiencyRow) -> bool:
    """Whether a row of serving comes from a data sheet, a paper or logs, which this fit keeps."""
    is_kept = row.provenance == "specification" or row.term in LOGGED
    return row.phase == PHASE and is_kept and row.source != PRIOR


def _keys(each: Sample) -> dict[str, object]:
    return {FAMILY: each.run.machine.device.family, ENGINE: each.run.work.engine}


def _rows(
    levels: Levels, parameters: Vector, known: Matrix, several: Sequence[Sample]
) -> list[EfficiencyRow]:
    """Each product of levels as a row: the family is the scope, the engine or unit the format."""
    factors = {
        (each.term, each.level, each.key): float(value)
        for each, value in zip(levels.parameters, parameters, strict=True)
    }
    behind = _behind(several)
    every = [each.run.row for each in several]
    shipped = []
    for name, factored in TERMS.items():
        term, _, unit = name.partition(":")
        scopes = _labels(factors, name, FAMILY)
        formats = [unit] if unit else _labels(factors, name, ENGINE)
        for scope, number_format in product(scopes, formats):
            rows = behind.get((scope, number_format), [])
            if scope != EVERY and not rows:
                continue
            own: dict[str, object] = {FAMILY: scope, ENGINE: number_format}
            total = factors[name, None, None]
            total += sum(factors.get((name, level, key), 0.0) for level, key in own.items())
            value = factored.start * float(np.exp(total))
            told = Behind.of(rows, every)
            spread = levels.deviation(known, name, own)
            shipped.append(
                constant_row((PHASE, term, scope, number_format), value, told, spread, SOURCE)
            )
    return shipped


def _labels(
    factors: Mapping[tuple[str, str | None, object], float], term: str, level: str
) -> list[str]:
    """Everybody, then those with a factor of their own."""
    return [EVERY, *sorted(str(key) for name, at, key in factors if (name, at) == (term, level))]


def _behind(several: Sequence[Sample]) -> dict[tuple[str, str], list[Row]]:
    """Rows by scope and format."""
    found: dict[tuple[str, str], list[Row]] = {}
    for each in several:
        scopes = (each.run.machine.device.family, EVERY)
        keys = dict.fromkeys((each.unit, each.expert_format, each.run.work.engine, EVERY))
        for key in product(scopes, keys):
            found.setdefault(key, []).append(each.run.row)
    return found
