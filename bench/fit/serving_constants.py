"""Constants of serving with their priors, and their fit in two stages.

The engine's step is fitted on times per token in closed loops, on throughputs at saturation and
in static batches, and on prompts alone. Then, with the step fixed, what a request costs before
and beside its step is fitted on times to the first token, by engine.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from bench.accuracy import Vector
from bench.fit.pooling import Constant, Pool
from bench.fit.serving_samples import Sample, residuals
from bench.serving_runs import ENGINES
from poolwise.model.efficiency import EVERY, Calibration
from poolwise.model.queueing import Z95
from poolwise.tables.efficiencies import EfficiencyRow

PHASE = "serving"
FILE = "efficiencies_serving.toml"
SOURCE = "bench.fit.serving on open rows of serve_measured (aiconfigurator, TensorRT-LLM, gpt-fast)"
UNITS = ("bf16", "fp16", "fp8", "int8", "fp4")

STEP = (
    Constant(PHASE, "weight_bandwidth", 0.75, 0.2, family_width=0.1, most=1.0),
    Constant(PHASE, "cache_bandwidth", 0.75, 0.3, most=1.0),
    Constant(PHASE, "compute", 0.75, 0.3, UNITS, family_width=0.15, most=1.0),
    Constant(PHASE, "expert_compute", 0.7, 0.4, most=1.0),
    Constant(PHASE, "expert_padding_rows", 24.0, 0.8),
    Constant(PHASE, "expert_exchange_bytes", 6.0, 0.5),
    Constant(PHASE, "layer_seconds", 3e-5, 0.7, family_width=0.15),
    Constant(PHASE, "expert_layer_seconds", 3e-5, 0.7),
    Constant(PHASE, "sequence_seconds", 1e-5, 1.0),
    Constant(PHASE, "host_seconds", 3e-4, 1.0),
    Constant(PHASE, "all_reduce", 1.0, 0.3),
    Constant(PHASE, "interference", 0.8, 0.3, most=1.0),
)
REQUEST = (
    Constant(PHASE, "request_seconds", 0.04, 1.0, ENGINES),
    Constant(PHASE, "request_serial_seconds", 0.002, 1.0, ENGINES),
)


def fit(
    constants: Sequence[Constant],
    chosen: Sequence[Sample],
    fixed: Iterable[EfficiencyRow],
    start: Vector | None = None,
) -> tuple[Pool, Vector]:
    """A pool over the samples' devices, and its parameters at the best fit."""
    pool = Pool(constants, [each.run.machine.device for each in chosen])
    return pool, pool.fit(lambda calibration: residuals(chosen, calibration), fixed, start)


def fitted_rows(
    step: Sequence[Sample], request: Sequence[Sample], fixed: Iterable[EfficiencyRow]
) -> list[EfficiencyRow]:
    """Both stages on these samples; with ``fixed`` they make a whole calibration."""
    known = list(fixed)
    found: list[EfficiencyRow] = []
    for constants, chosen in ((STEP, step), (REQUEST, request)):
        pool, parameters = fit(constants, chosen, known)
        rows = pool.rows(parameters, _formats(constants, chosen), lambda scope: 0.0, SOURCE)
        spread = _spreads(chosen, Calibration([*known, *rows]))
        rows = [row.model_copy(update={"spread": spread[row.scope]}) for row in rows]
        known, found = [*known, *rows], [*found, *rows]
    return found


def specified(rows: Iterable[EfficiencyRow]) -> list[EfficiencyRow]:
    """Rows of all phases that are not fitted here."""
    return [row for row in rows if row.phase != PHASE or row.provenance == "specification"]


def _formats(constants: Sequence[Constant], chosen: Sequence[Sample]) -> list[str]:
    by_engine = constants is REQUEST
    return [each.run.work.engine if by_engine else each.unit for each in chosen]


def _spreads(chosen: Sequence[Sample], calibration: Calibration) -> dict[str, float]:
    """Standard deviation that makes nine in ten residuals lie inside, by scope."""
    wrong = np.abs(residuals(chosen, calibration))
    scopes: dict[str, list[float]] = {}
    for each, error in zip(chosen, wrong, strict=True):
        device = each.run.machine.device
        for scope in (EVERY, device.family, device.name):
            scopes.setdefault(scope, []).append(float(error))
    return {scope: float(np.quantile(errors, 0.9)) / Z95 for scope, errors in scopes.items()}
