"""Constants of serving with their priors, and their fit in two stages.

The engine's step is fitted on times per token in closed loops, on throughputs at saturation and
in static batches, and on prompts alone. Then, with the step fixed, what a request costs before
and beside its step is fitted on times to the first token, by engine.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from bench.fit.pooling import PRIOR, Constant, Pool
from bench.fit.serving_samples import Sample, residuals
from bench.serving_runs import ENGINES
from poolwise.model.efficiency import EVERY, Calibration
from poolwise.model.serving.queueing import Z95
from poolwise.tables import EfficiencyRow, Tables

PHASE = "serving"
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
    Constant(PHASE, "all_reduce", 1.0, 0.3, family_width=0.5),
    Constant(PHASE, "interference", 0.8, 0.3, most=1.0),
)
REQUEST = (
    Constant(PHASE, "request_seconds", 0.04, 1.0, ENGINES),
    # API servers take 500 to 1000 short requests a second; clients that move in step look slower.
    Constant(PHASE, "request_serial_seconds", 0.0015, 0.02, ENGINES),
)


def fitted_rows(samples: Sequence[Sample], fixed: Iterable[EfficiencyRow]) -> list[EfficiencyRow]:
    """Both stages; with ``fixed`` they make a whole calibration."""
    known = list(fixed)
    found: list[EfficiencyRow] = []
    step = [each for each in samples if each.explains_step]
    request = [each for each in samples if not each.explains_step]
    for constants, chosen, formats in (
        (STEP, step, [each.unit for each in step]),
        (REQUEST, request, [each.run.work.engine for each in request]),
    ):
        rows = _stage(constants, chosen, formats, known)
        known, found = [*known, *rows], [*found, *rows]
    return found


def not_fitted(tables: Tables) -> list[EfficiencyRow]:
    """Rows of other phases, and those of serving that are kept by hand."""
    return [row for row in tables.efficiencies if row.phase != PHASE or is_specified(row)]


def is_specified(row: EfficiencyRow) -> bool:
    """Whether a row of serving comes from a data sheet or a paper."""
    return row.phase == PHASE and row.provenance == "specification" and row.source != PRIOR


def _stage(
    constants: Sequence[Constant],
    chosen: Sequence[Sample],
    formats: Sequence[str],
    known: Sequence[EfficiencyRow],
) -> list[EfficiencyRow]:
    pool = Pool(constants, [each.run.machine.device for each in chosen])
    parameters = pool.fit(lambda calibration: residuals(chosen, calibration), known)
    spread = _spreads(chosen, pool.calibration(parameters, known))
    return pool.rows(parameters, formats, lambda scope: spread[scope], SOURCE)


def _spreads(chosen: Sequence[Sample], calibration: Calibration) -> dict[str, float]:
    """Standard deviation that makes nine in ten residuals lie inside, by scope."""
    scopes: dict[str, list[float]] = {}
    for each, error in zip(chosen, np.abs(residuals(chosen, calibration)), strict=True):
        device = each.run.machine.device
        for scope in (EVERY, device.family, device.name):
            scopes.setdefault(scope, []).append(float(error))
    return {scope: float(np.quantile(errors, 0.9)) / Z95 for scope, errors in scopes.items()}
