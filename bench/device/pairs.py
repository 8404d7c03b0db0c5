"""``python -m bench.device.pairs [--data DIR]``: what a step takes more that is not fused.

Of workloads that were measured both ways: the traffic that explains the difference of their step
times, as the constants of :mod:`poolwise.model.training.eager`, and how well it is met, by models
that had no part in the fit too.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from scipy.optimize import nnls

from bench.programs import ends_on_bad_input
from bench.tables import OWN_FOLDER, Row, read
from bench.training_layouts import whole_layout
from bench.training_runs import Run, runs
from poolwise.model.calibration import shipped
from poolwise.model.efficiency import Calibration
from poolwise.model.shapes import Transformer
from poolwise.model.training.counts import passes
from poolwise.model.training.eager import Traffic, traffic_counts
from poolwise.model.training.rates import reachable
from poolwise.model.training.shard import shard
from poolwise.model.work import Execution
from poolwise.tables import Tables, load


@dataclass(frozen=True, slots=True)
class Pair:
    """One workload on one accelerator, fused and not."""

    model: str
    eager_seconds: float
    more_bytes: float
    """That the reachable bandwidth moves in what it takes longer."""
    bytes_per_second: float
    counts: Traffic
    """Over the whole step."""


def pairs(rows: Sequence[Row], tables: Tables, calibration: Calibration) -> Iterator[Pair]:
    """Of rows that are equal in all but how they ran."""
    found: dict[object, dict[Execution, Run]] = defaultdict(dict)
    for run in runs(rows, tables):
        alike = (run.row["gpu"], replace(run.work, execution=Execution.FUSED), run.fixed)
        found[alike][run.work.execution] = run
    for ways in found.values():
        if len(ways) == len(Execution):
            yield _pair(ways[Execution.FUSED], ways[Execution.EAGER], calibration)


def _pair(fused: Run, eager: Run, calibration: Calibration) -> Pair:
    speed = reachable(eager.work, eager.machine.device, calibration).products.bytes_per_second
    return Pair(
        eager.work.model.name,
        eager.step_seconds,
        (eager.step_seconds - fused.step_seconds) * speed,
        speed,
        _counts(eager),
    )


def _counts(run: Run) -> Traffic:
    work, shape = run.work, run.work.model.shape
    layout = whole_layout(run.fixed, run.interleave, run.count, work.global_batch_samples)
    if layout is None or not isinstance(shape, Transformer):
        raise ValueError(f"{run.row['row_id']}: states no layout")
    share = shard(work, layout)
    times = passes(work, layout.recompute).elementwise
    counts = traffic_counts(work, shape, layout, share, times)
    return Traffic(*(share.micro_batches * count for count in counts))


def fitted(several: Sequence[Pair]) -> np.ndarray:
    """Bytes per count, at least 0, with the least relative errors of what is moved more."""
    scale = np.array([1.0 / pair.more_bytes for pair in several])
    counts = np.array([pair.counts for pair in several])
    constants: np.ndarray = nnls(counts * scale[:, None], np.ones(len(several)))[0]
    return constants


def error(pair: Pair, constants: np.ndarray) -> float:
    """Of the eager step's seconds, where the fused one's are known."""
    more = float(np.dot(pair.counts, constants)) - pair.more_bytes
    return more / pair.bytes_per_second / pair.eager_seconds


@ends_on_bad_input
def main() -> None:
    """Print the constants and how well they do."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=OWN_FOLDER, help="folder of train_measured")
    tables = load()
    rows = read(parser.parse_args().data, "train_measured")
    several = list(pairs(rows, tables, shipped(tables)))
    constants = fitted(several)
    print(f"{len(several)} pairs; bytes per", Traffic(*constants.round(1).tolist()))
    within = [abs(error(pair, constants)) for pair in several]
    left_out = [
        abs(error(pair, fitted([each for each in several if each.model != pair.model])))
        for pair in several
    ]
    for words, errors in (("in the fit", within), ("model left out", left_out)):
        median, most = 100 * np.median(errors), 100 * max(errors)
        print(f"step time, {words}: median {median:.1f} %, most {most:.1f} %")


if __name__ == "__main__":
    sys.exit(main())
