"""Fit the constants of the training step: ``python -m bench.fit.training --data DIR [--write]``.

Prints how well the fit meets the runs, in sample and out of fold, and with ``--write`` replaces
the shipped rows. What nobody measured (vision models, bandwidth of a copy) stays a specification.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np

from bench import tables as measured_tables
from bench.accuracy import Vector, folds
from bench.fit.arguments import arguments
from bench.fit.pooling import Constant, Pool
from bench.fit.shipping import ship
from bench.training_runs import LaidRun, laid, runs
from poolwise.model.efficiency import EVERY, Calibration
from poolwise.model.training.step import NINE_IN_TEN, step_seconds
from poolwise.tables import Tables, load
from poolwise.tables.efficiencies import EfficiencyRow

HEADER = """Constants of the training step: shares of a reachable rate, seconds.
Written by `python -m bench.fit.training --write`."""
PHASE = "training"
SOURCE = "train_measured, 11 sources (dgxc-benchmarking, Megatron-Bridge, llm-foundry, MLPerf, ...)"
SHARE = 1.0
FAMILY, ACCELERATOR = 0.12, 0.08
"""Widths of the levels of ``products``: how far families and accelerators differ, as ln."""
ENOUGH = 20
"""Rows at which an accelerator's own spread counts as much as everybody's."""

CONSTANTS = (
    Constant(
        PHASE,
        "products",
        start=0.85,
        width=0.15,
        formats=("bf16", "fp8", "nvfp4", "fp16", "fp32"),
        family_width=FAMILY,
        accelerator_width=ACCELERATOR,
        most=1.1,
    ),
    Constant(PHASE, "attention", 0.5, 0.3, family_width=0.25),
    Constant(PHASE, "unhidden", 0.3, 0.7, most=SHARE),
    Constant(PHASE, "experts", 0.6, 0.4, family_width=0.15, most=1.2),
    Constant(PHASE, "experts_half_tokens", 200.0, 1.0),
    Constant(PHASE, "elementwise_traffic", 1.5, 0.4, ("bf16", "fp8", "nvfp4", EVERY)),
    Constant(PHASE, "layer_launch_seconds", 1.5e-4, 0.5),
    Constant(PHASE, "expert_launch_seconds", 2e-4, 0.7),
    Constant(PHASE, "step_overhead_seconds", 0.02, 1.0),
    Constant(PHASE, "exposed_tensor", 0.5, 0.5, most=SHARE),
    Constant(PHASE, "exposed_expert", 0.7, 0.5, most=SHARE),
    Constant(PHASE, "expert_overlap", 0.7, 0.3, most=SHARE),
    Constant(PHASE, "exposed_context", 0.2, 0.7, most=SHARE),
    Constant(PHASE, "exposed_pipeline", 0.3, 0.7, most=SHARE),
    Constant(PHASE, "exposed_data", 0.1, 0.7, most=SHARE),
    Constant(PHASE, "data_overlap", 0.7, 0.3, most=SHARE),
)

CPU = "cpu"
SPECIFIED = (
    ("bandwidth", EVERY, 0.85, 0.1, "STREAM-like copies reach 80 to 92 % of the data sheet"),
    ("bandwidth", CPU, 0.75, 0.2, "STREAM triad on two-socket servers"),
    ("custom", EVERY, 0.45, 0.3, "ResNet-50 in MLPerf: 0.3 to 0.45 of the ceiling on A100, H100"),
    ("custom", CPU, 0.3, 0.4, "oneDNN convolutions; the data sheet itself is good to 20 %"),
    ("products", CPU, 0.5, 0.4, "oneDNN products in bf16; the data sheet is good to 20 %"),
    ("attention", CPU, 0.3, 0.4, "as products, unfused"),
)
"""Term, scope, value, spread, source of what no run in the tables measures."""


def laid_runs(folder: Path, tables: Tables) -> list[LaidRun]:
    """All usable runs; sizes that a source left out are chosen with the shipped constants."""
    calibration = Calibration(tables.efficiencies)
    rows = measured_tables.read(folder, "train_measured")
    return [found for run in runs(rows, tables) if (found := laid(run, calibration)) is not None]


def residuals(several: Sequence[LaidRun], calibration: Calibration) -> Vector:
    """ln(predicted / measured) of the step times."""
    predicted = [
        step_seconds(each.run.work, each.layout, each.run.machine, calibration) for each in several
    ]
    errors: Vector = np.log(
        np.array(predicted) / np.array([each.run.step_seconds for each in several])
    )
    return errors


def not_fitted(tables: Tables) -> list[EfficiencyRow]:
    """Rows of other phases, and the specified ones of this."""
    others = [row for row in tables.efficiencies if row.phase != PHASE]
    return [*others, *map(_specified, SPECIFIED)]


def fit(several: Sequence[LaidRun], fixed: Iterable[EfficiencyRow]) -> tuple[Pool, Vector]:
    """Constants that meet these runs best."""
    pool = Pool(CONSTANTS, [each.run.machine.device for each in several])
    return pool, pool.fit(lambda calibration: residuals(several, calibration), fixed)


def out_of_fold(several: Sequence[LaidRun], fixed: Sequence[EfficiencyRow]) -> Vector:
    """Residual of each run under constants that its group had no part in."""
    found = np.zeros(len(several))
    for others, inside in folds([each.run.group for each in several]):
        pool, parameters = fit([several[index] for index in others], fixed)
        calibration = pool.calibration(parameters, fixed)
        found[inside] = residuals([several[index] for index in inside], calibration)
    return found


def spreads(several: Sequence[LaidRun], errors: Vector) -> Callable[[str, str], float]:
    """Spread by term and scope, so that nine in ten lie within 1.645 of them.

    An accelerator's is that of its own rows, drawn towards everybody's by :data:`ENOUGH` rows; one
    that only its family, or nobody, speaks for may also differ by what families and accelerators
    differ by.
    """
    names = np.array([each.run.machine.device.name for each in several])
    sparse = np.array([each.run.is_sparse for each in several])

    def spread(term: str, scope: str) -> float:
        chosen = sparse if term == "experts" else ~sparse
        everybody = _spread(errors[chosen])
        own = errors[chosen & (names == scope)]
        if len(own):
            weight = len(own) / (len(own) + ENOUGH)
            return math.sqrt(weight * _spread(own) ** 2 + (1 - weight) * everybody**2)
        if scope == EVERY:
            return math.hypot(everybody, FAMILY, ACCELERATOR)
        return math.hypot(everybody, ACCELERATOR)

    return spread


def _spread(errors: Vector) -> float:
    return float(np.percentile(np.abs(errors), 90)) / NINE_IN_TEN


def _specified(figures: tuple[str, str, float, float, str]) -> EfficiencyRow:
    name, scope, value, spread, source = figures
    return EfficiencyRow(
        phase=PHASE,
        term=name,
        scope=scope,
        value=value,
        spread=spread,
        count=0,
        provenance="specification",
        source=source,
    )


def _summary(name: str, errors: Vector) -> str:
    wrong = 100 * np.abs(np.exp(-errors) - 1)
    return f"{name}: {len(errors)} runs, MdAPE {np.median(wrong):.1f} %, mean {wrong.mean():.1f} %"


def main() -> None:
    """Fit, report, and write where asked."""
    asked = arguments(__doc__ or "")
    tables = load()
    several = laid_runs(asked.data, tables)
    fixed = not_fitted(tables)
    pool, parameters = fit(several, fixed)
    print(_summary("in sample", residuals(several, pool.calibration(parameters, fixed))))
    errors = out_of_fold(several, fixed)
    print(_summary("out of fold", errors))
    formats = [each.run.work.precision for each in several]
    rows = pool.rows(parameters, formats, lambda _: 0.0, SOURCE)
    if asked.write:
        spread = spreads(several, errors)
        rows = [row.model_copy(update={"spread": spread(row.term, row.scope)}) for row in rows]
        kept = [row for row in fixed if row.phase == PHASE]
        ship(PHASE, HEADER, [*kept, *rows])


if __name__ == "__main__":
    main()
