"""Fit the constants of the training step: ``python -m bench.fit.training --data DIR [--write]``."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bench.accuracy import Vector
from bench.fit.pooling import Constant, Pool
from bench.training_runs import LaidRun
from poolwise.model.efficiency import Calibration
from poolwise.model.training import step_seconds
from poolwise.tables.efficiencies import EfficiencyRow

PHASE = "training"
SHARE = 1.0


CONSTANTS = (
    Constant(PHASE, "products", 0.80, 0.3, ("bf16", "fp8", "nvfp4", "fp16", "fp32"), 0.12, 0.08),
    Constant(PHASE, "attention", 0.55, 0.3),
    Constant(PHASE, "experts", 0.6, 0.4, family_width=0.15, most=1.2),
    Constant(PHASE, "experts_half_tokens", 200.0, 1.0),
    Constant(PHASE, "elementwise_traffic", 1.5, 0.4),
    Constant(PHASE, "layer_launch_seconds", 2e-5, 1.0),
    Constant(PHASE, "step_overhead_seconds", 0.02, 1.0),
    Constant(PHASE, "exposed_tensor", 0.5, 0.5, most=SHARE),
    Constant(PHASE, "exposed_expert", 0.7, 0.5, most=SHARE),
    Constant(PHASE, "exposed_context", 0.2, 0.7, most=SHARE),
    Constant(PHASE, "exposed_pipeline", 0.3, 0.7, most=SHARE),
    Constant(PHASE, "exposed_data", 0.1, 0.7, most=SHARE),
    Constant(PHASE, "data_overlap", 0.7, 0.3, most=SHARE),
)


def residuals(runs: Sequence[LaidRun], calibration: Calibration) -> Vector:
    """ln(predicted / measured) of the step times."""
    predicted = [
        step_seconds(each.run.work, each.layout, each.run.machine, calibration) for each in runs
    ]
    measured = [each.run.step_seconds for each in runs]
    return np.log(np.array(predicted) / np.array(measured))
