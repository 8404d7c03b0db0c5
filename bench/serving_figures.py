"""Each scored figure of ``serve_measured``: a run, or why there is none; a value with its range.

for figure in figures(row, tables):
    found = figure.predicted(calibration)   # Interval, or a reason
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from bench.attempts import attempt
from bench.fit.serving_folds import RATIOS
from bench.fit.serving_samples import SCORED, THROUGHPUT, Target
from bench.serving_runs import Run, found
from bench.tables import Row, figure
from poolwise.model.efficiency import Calibration, Efficiency
from poolwise.model.prediction import Interval
from poolwise.model.residual import Residual
from poolwise.model.serving.memory import PHASE
from poolwise.model.serving.site import serving_site
from poolwise.model.site import Site
from poolwise.tables import Tables

STATED = ("model", "gpu", "n_gpus", "isl", "osl")


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of one row."""

    score: str
    """``tpot``, ``tpot_disagg`` or ``offline_throughput``."""
    row: Row
    target: Target
    run: Run | str
    """What ran, or why that cannot be known."""
    measured: float
    """Seconds, or generated tokens per second."""
    is_eligible: bool
    """Whether the row states model, accelerator, counts, lengths and precision."""

    def site(self, calibration: Calibration) -> Site | None:
        """Where it is predicted."""
        return None if isinstance(self.run, str) else site(self.run, calibration)

    def predicted(self, calibration: Calibration) -> Interval | str:
        """The model's answer with the range that holds nine in ten, or a reason."""
        if isinstance(self.run, str):
            return self.run
        value = self.target.predict(self.run, calibration.formulas)
        if not 0.0 < value < math.inf:
            return "no steady state"
        device, engine = self.run.machine.device, self.run.work.engine
        ratio = calibration.efficiency(PHASE, RATIOS[self.score][0], device, engine)
        residual = calibration.residual(self.score)
        is_rate = self.target.name == THROUGHPUT.name
        return told(value, ratio, residual, self.site(calibration), is_rate=is_rate)


def told(
    formula: float,
    ratio: Efficiency,
    residual: Residual | None,
    where: Site | None,
    *,
    is_rate: bool = False,
) -> Interval:
    """What the formulas say, times what runs alike tell where there are any; and its range."""
    if residual is None or where is None:
        return Interval.around(formula, ratio.spread)
    learnt = residual.at(where)
    slower = 1.0 / learnt.factor if is_rate else learnt.factor
    return Interval.around(formula * slower, learnt.spread_beside(ratio))


def figures(row: Row, tables: Tables) -> Iterator[Figure]:
    """All figures of a row that are scored."""
    for target in SCORED:
        value = figure(row, target.column)
        if row["mode"] == target.mode and value:
            run = attempt(partial(found, row, tables, target.column))
            measured = value if isinstance(run, str) else run.measured
            yield Figure(target.name, row, target, run, measured, is_eligible(row))


def site(run: Run, calibration: Calibration) -> Site:
    """Where a run is, as far as its residual may depend on it."""
    served = run.replica(calibration.formulas)
    return serving_site(run.work, run.layout, run.machine.device, served, run.in_flight)


def is_eligible(row: Row) -> bool:
    """Whether a row states all that a prediction needs."""
    precision = row["weight_precision"] or row["moe_precision"]
    sized = row["tp"] or row["decode_cfg"]
    return bool(precision and sized) and all(row[column] for column in STATED)
