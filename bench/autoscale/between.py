"""``python -m bench.autoscale.between [--data DIR]``: how many are late, where no bucket ends.

Engines count latencies in buckets, and a target is mostly inside one. Fixed fleets of three sizes
answer each trace of the page, and every minute's requests are counted in vLLM's buckets. At targets
that 0.1 to 20 % of them miss, late ones are estimated by a straight line between both bounds, and
as the controller does; told is how many times as many as were late.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from bench.autoscale import suite
from bench.autoscale.grid import USUAL, Case, scene_of
from bench.autoscale.numbers import count
from bench.autoscale.policies.static import Static
from bench.autoscale.replay import played
from bench.programs import ends_on_bad_input
from bench.tables import DEFAULT_FOLDER
from poolwise.model.work import Metric, Target
from poolwise.plan.scaling.learning import observed_late_share
from poolwise.plan.signals.sample import Histogram
from poolwise.sim.serving.metrics import GAP_BOUNDS_SECONDS, TTFT_BOUNDS_SECONDS, Tally
from poolwise.sim.serving.requests import Floats

SHARES_OF_PEAK = (0.7, 0.9, 1.15)
"""Replicas of the fixed fleets, over what the busiest minute needs."""
TARGETS_SECONDS = {
    Metric.TTFT: (0.15, 0.35, 0.6, 0.85, 1.5, 2.0, 3.0, 4.0, 6.0, 8.5, 15.0),
    Metric.TPOT: (0.015, 0.02, 0.03, 0.035, 0.04, 0.06, 0.085, 0.12, 0.17, 0.25),
}
"""Inside vLLM's buckets."""
BOUNDS_SECONDS = {Metric.TTFT: TTFT_BOUNDS_SECONDS, Metric.TPOT: GAP_BOUNDS_SECONDS}
MINUTE_SECONDS, FEWEST = 60.0, 50
LEAST_SHARE, MOST_SHARE = 1e-3, 0.2


@dataclass(frozen=True, slots=True)
class Estimated:
    """Shares of late ones, over minutes and targets."""

    late: float
    straight: float
    ours: float


@ends_on_bad_input
def main() -> int:
    """A line per trace and latency."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.autoscale.between",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data", type=Path, default=DEFAULT_FOLDER, help="folder of the traces")
    parser.add_argument("--processes", type=count, default=suite.PROCESSES)
    asked = parser.parse_args()
    print(text(run(asked.data, asked.processes)))
    return 0


def run(data: Path, processes: int, cases: Sequence[Case] = USUAL) -> list[str]:
    """Rows of all traces."""
    with ProcessPoolExecutor(processes) as pool:
        return [row for rows in pool.map(partial(_rows, data), cases) for row in rows]


def text(rows: Iterable[str]) -> str:
    """A table."""
    head = "| trace | late by | minutes and targets | straight line | ours |"
    return "\n".join((head, "|---|---|---|---|---|", *rows))


def _rows(data: Path, case: Case) -> list[str]:
    found: dict[Metric, list[Estimated]] = {latency: [] for latency in TARGETS_SECONDS}
    for share in SHARES_OF_PEAK:
        for latency, minutes in _minutes(data, case, max(round(share * case.peak_replicas), 1)):
            found[latency] += minutes
    return [_row(case.trace, latency, each) for latency, each in found.items() if each]


def _row(trace: str, latency: Metric, minutes: list[Estimated]) -> str:
    late = sum(each.late for each in minutes)
    straight, ours = sum(each.straight for each in minutes), sum(each.ours for each in minutes)
    return f"| {trace} | {latency} | {len(minutes)} | {straight / late:.2f} | {ours / late:.2f} |"


def _minutes(data: Path, case: Case, replicas: int) -> Iterator[tuple[Metric, list[Estimated]]]:
    """Of a fixed fleet."""
    scene = replace(scene_of(data, case), initial_replicas=replicas)
    requests = scene.trace.requests
    fleet, _ = played(scene, Static(replicas))
    answers, first = fleet.answers(), int(scene.warm_up_seconds // MINUTE_SECONDS)
    minute = (requests.arrival_seconds // MINUTE_SECONDS).astype(int)
    seen = {
        Metric.TTFT: answers.ttft_seconds(requests),
        Metric.TPOT: answers.tpot_seconds(requests),
    }
    for latency, seconds in seen.items():
        is_there = np.isfinite(seconds) & (seconds > 0.0)
        groups = (seconds[is_there & (minute == each)] for each in range(first, minute.max()))
        yield latency, [told for group in groups for told in _estimated(latency, group)]


def _estimated(latency: Metric, seconds: Floats) -> Iterator[Estimated]:
    """At each target that few enough of a minute's requests miss."""
    if len(seconds) < FEWEST:
        return
    tally = Tally(BOUNDS_SECONDS[latency])
    for each in seconds.tolist():
        tally.observe(each)
    counts = np.cumsum(tally.counts)
    seen = Histogram(tally.upper_bounds, tuple(counts.tolist()), tally.total)
    bounds, shares = np.array(tally.bounds), counts[:-1] / counts[-1]
    for target in TARGETS_SECONDS[latency]:
        late = float(np.mean(seconds > target))
        if LEAST_SHARE <= late <= MOST_SHARE:
            straight = 1.0 - float(np.interp(target, bounds, shares))
            ours = observed_late_share(seen, Target(latency, 99.0, target))
            yield Estimated(late, straight, ours)


if __name__ == "__main__":
    sys.exit(main())
