"""``python -m bench.autoscale.hours [--data DIR]``: hours that no constant was chosen on at first.

The page's grid has the busiest hour of each trace; these begin elsewhere. ``ours`` on each, the
mean of a few seeds of the scrapes' noise, beside the best static fleet in hindsight.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from bench.autoscale import suite
from bench.autoscale.document import of_one, of_seeds
from bench.autoscale.grid import HOUR_SECONDS, sized, trace_of
from bench.autoscale.numbers import count
from bench.autoscale.outcome import Outcome
from bench.autoscale.reach import aim
from bench.autoscale.traces import window
from bench.autoscale.tuning import BEST_STATIC
from bench.programs import ends_on_bad_input
from bench.tables import DEFAULT_FOLDER

SEEDS = (0, 1)


@dataclass(frozen=True, slots=True)
class Hour:
    """One stretch of a trace."""

    trace: str
    begin_hours: float
    peak_replicas: float


HOURS = (
    Hour("servegen_r1_24h", 3.0, 20.0),
    Hour("servegen_r1_24h", 9.0, 20.0),
    Hour("servegen_r1_24h", 20.0, 10.0),
    Hour("servegen_mlarge_tail_day2", 0.0, 20.0),
    Hour("servegen_mlarge_tail_day2", 2.0, 10.0),
    Hour("servegen_msmall_tail_day2", 1.0, 10.0),
)


@dataclass(frozen=True, slots=True)
class Found:
    """What became of one."""

    hour: Hour
    aim: float
    ours: tuple[Outcome, ...]
    """By seed."""
    static: Outcome


@ends_on_bad_input
def main() -> int:
    """Replay all of them and tell."""
    parser = argparse.ArgumentParser(prog="python -m bench.autoscale.hours", description=__doc__)
    parser.add_argument("--data", type=Path, default=DEFAULT_FOLDER, help="folder of the traces")
    parser.add_argument("--processes", type=count, default=suite.PROCESSES)
    asked = parser.parse_args()
    print(text(run(asked.data, asked.processes)))
    return 0


def run(data: Path, processes: int, hours: Iterable[Hour] = HOURS) -> list[Found]:
    """All hours, in their order."""
    with ProcessPoolExecutor(processes) as pool:
        return list(pool.map(partial(replayed, data), hours))


def replayed(data: Path, hour: Hour) -> Found:
    """One hour under both."""
    stretch = window(trace_of(data, hour.trace), hour.begin_hours * HOUR_SECONDS, HOUR_SECONDS)
    scene = sized(stretch, hour.peak_replicas)
    seeded = (replace(scene, seed=seed) for seed in SEEDS)
    ours = tuple(suite.result(each, suite.OURS).outcome for each in seeded)
    return Found(hour, aim(scene), ours, suite.result(scene, BEST_STATIC).outcome)


def text(found: Iterable[Found]) -> str:
    """A table: a row for each hour."""
    head = (
        "| trace | from h | replicas at its peak | aim % | ours % (least of the seeds) "
        "| replica-h | best static % | replica-h |",
        "|---|---|---|---|---|---|---|---|",
    )
    return "\n".join([*head, *map(_row, found)])


def _row(found: Found) -> str:
    return f"| {' | '.join(_cells(found))} |"


def _cells(found: Found) -> Iterator[str]:
    yield found.hour.trace
    yield f"{found.hour.begin_hours:g}"
    yield f"{found.hour.peak_replicas:g}"
    yield f"{100 * found.aim:.2f}"
    yield from of_seeds(found.ours)
    yield from of_one(found.static)


if __name__ == "__main__":
    sys.exit(main())
