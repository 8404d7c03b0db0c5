"""Measured serving runs, each with the function that predicts what was measured of it."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from bench.accuracy import Vector
from bench.serving_runs import (
    Run,
    generated_tokens_per_second,
    prompt_seconds,
    runs,
    token_seconds,
)
from bench.tables import Row
from poolwise.model.efficiency import Calibration
from poolwise.model.serving.experts import expert_format
from poolwise.model.serving.rates import arithmetic
from poolwise.model.serving.replica import replica
from poolwise.tables import Tables

Predictor = Callable[[Run, Calibration], float]
TABLE = "serve_measured"
ROWS_OF_GROUP = 16
"""In the fit: a group of 200 runs knows no more of the constants than one of 16."""


@dataclass(frozen=True, slots=True)
class Target:
    """Rows of one mode, by one column."""

    name: str
    mode: str
    column: str
    predict: Predictor


TOKEN = Target("tpot", "online-agg", "tpot_ms_mean", token_seconds)
THROUGHPUT = Target(
    "offline_throughput", "offline-max-throughput", "out_tok_s_total", generated_tokens_per_second
)
APART = Target("tpot_disagg", "online-disagg", "tpot_ms_mean", token_seconds)
FITTED = (
    TOKEN,
    APART,
    THROUGHPUT,
    Target("batch-1", "decode-bs1", "tpot_ms_mean", token_seconds),
    Target("static-batch", "static-batch", "out_tok_s_total", generated_tokens_per_second),
    Target("prefill", "prefill-latency", "ttft_ms_mean", prompt_seconds),
)
"""What the engine's step explains, and the share of clients that one of several workers has."""
SCORED = (
    TOKEN,
    Target("tpot", "online", "tpot_ms_mean", token_seconds),
    APART,
    THROUGHPUT,
    Target("offline_throughput", "mlperf-offline", "out_tok_s_total", generated_tokens_per_second),
)
"""What the protocol asks for; a row of MLPerf states no prompt length, so none is predicted."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One measured figure."""

    run: Run
    target: Target

    @property
    def unit(self) -> str:
        """Arithmetic of its products."""
        return arithmetic(self.run.layout.weight_format, self.run.machine.device)

    @property
    def expert_format(self) -> str:
        """Of its routed experts; that of dense models counts for nothing."""
        return expert_format(self.run.work, self.run.layout, self.run.machine.device)

    def holding(self, calibration: Calibration) -> Sample:
        """The same to be predicted often, by other constants of the step alone."""
        run = self.run
        held = replica(run.work, run.layout, run.machine, calibration)
        return replace(self, run=replace(run, held=held))

    def predicted(self, calibration: Calibration) -> float:
        """The figure by the model."""
        return self.target.predict(self.run, calibration)


def samples(rows: Sequence[Row], tables: Tables, targets: Iterable[Target]) -> list[Sample]:
    """Usable rows of some targets."""
    return [
        Sample(run, target)
        for target in targets
        for run in runs(rows, tables, [target.mode], target.column)
    ]


def thinned(several: Iterable[Sample]) -> list[Sample]:
    """At most :data:`ROWS_OF_GROUP` of each group, by chance, and none of them twice."""
    kept: list[Sample] = []
    counts: Counter[str] = Counter()
    seen: set[tuple[object, ...]] = set()
    for each in sorted(several, key=lambda one: zlib.crc32(one.run.row["row_id"].encode())):
        run = each.run
        key = (run.measured, run.in_flight, run.machine.device.name, run.work.engine)
        if key not in seen and counts[run.group] < ROWS_OF_GROUP:
            seen.add(key)
            counts[run.group] += 1
            kept.append(each)
    return kept


def residuals(chosen: Sequence[Sample], calibration: Calibration) -> Vector:
    """ln(predicted / measured)."""
    ratios = [each.predicted(calibration) / each.run.measured for each in chosen]
    return np.log(np.array(ratios, dtype=np.float64))
