"""``python -m bench.autoscale.courses [--data DIR]``: loads that rise and fall by a curve.

The recorded traces jump and burst, and have few slow rises. Here requests with their lengths
arrive by chance (Poisson) at a rate that goes up and down smoothly, climbs, or steps. ``ours``, the
mean of a few seeds, beside the best static fleet and the HPA on running requests, both tuned in
hindsight.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np

from bench.autoscale import drawn, suite
from bench.autoscale.document import of_one, of_seeds
from bench.autoscale.drawn import TRACES
from bench.autoscale.numbers import count
from bench.autoscale.outcome import Outcome
from bench.autoscale.scene import Scene
from bench.autoscale.tuning import BEST_STATIC
from bench.programs import ends_on_bad_input
from bench.tables import DEFAULT_FOLDER
from poolwise.sim.serving.requests import Floats

SECONDS = 4500.0
"""Longer than an hour, so that a wave of an hour has risen twice."""
PEAK_REPLICAS = 20.0
SEEDS = (0, 1)
RIVALS = (BEST_STATIC, "hpa_running")


def wave(period_seconds: float) -> Callable[[Floats], Floats]:
    """Between a quarter of its peak and that."""
    return lambda seconds: 0.625 + 0.375 * np.sin(2.0 * np.pi * seconds / period_seconds)


COURSES: dict[str, Callable[[Floats], Floats]] = {
    "wave of 20 min": wave(1200.0),
    "wave of 60 min": wave(3600.0),
    "climb": lambda seconds: 0.2 + 0.8 * seconds / SECONDS,
    "15 min low, 15 min high": lambda seconds: np.where(seconds % 1800.0 < 900.0, 0.3, 1.0),
    "level": np.ones_like,
}
"""Share of the peak, by time."""


@dataclass(frozen=True, slots=True)
class Found:
    """What became of one course with the lengths of one trace."""

    trace: str
    course: str
    ours: tuple[Outcome, ...]
    """By seed."""
    rivals: tuple[Outcome, ...]
    """Of the first seed."""


@ends_on_bad_input
def main() -> int:
    """Replay all of them and tell."""
    parser = argparse.ArgumentParser(prog="python -m bench.autoscale.courses", description=__doc__)
    parser.add_argument("--data", type=Path, default=DEFAULT_FOLDER, help="folder of the traces")
    parser.add_argument("--processes", type=count, default=suite.PROCESSES)
    asked = parser.parse_args()
    print(text(run(asked.data, asked.processes)))
    return 0


def run(data: Path, processes: int) -> list[Found]:
    """All courses with all lengths."""
    with ProcessPoolExecutor(processes) as pool:
        return list(pool.map(partial(replayed, data), *zip(*product(TRACES, COURSES), strict=True)))


def replayed(data: Path, trace: str, course: str) -> Found:
    """One course under all."""
    scenes = [scene(data, trace, course, seed) for seed in SEEDS]
    ours = tuple(suite.result(each, suite.OURS).outcome for each in scenes)
    rivals = tuple(suite.result(scenes[0], name).outcome for name in RIVALS)
    return Found(trace, course, ours, rivals)


def scene(data: Path, trace: str, course: str, seed: int) -> Scene:
    """Arrivals by chance at the rate of the course."""
    of, draw = drawn.measured(data, trace), np.random.default_rng(seed)
    moments = np.linspace(0.0, SECONDS, round(SECONDS) + 1)
    rates = PEAK_REPLICAS * drawn.per_second(of) * COURSES[course](moments)
    # Seconds of equal rate are short enough; as many come as a Poisson process has until the end.
    came = np.concatenate(([0.0], np.cumsum((rates[1:] + rates[:-1]) / 2.0)))
    arrivals = np.interp(draw.uniform(0.0, came[-1], draw.poisson(came[-1])), came, moments)
    initial = round(PEAK_REPLICAS * float(COURSES[course](moments[:1])[0])) + 1
    return replace(drawn.arriving(of, arrivals, draw, course, initial), seed=seed)


def text(found: Iterable[Found]) -> str:
    """A table: a row for each trace and course."""
    head = (
        "| lengths of | course | ours % (least of the seeds) | replica-h | best static % "
        "| replica-h | hpa_running % | replica-h |",
        "|---|---|---|---|---|---|---|---|",
    )
    return "\n".join([*head, *(f"| {' | '.join(_cells(each))} |" for each in found)])


def _cells(found: Found) -> Iterator[str]:
    yield found.trace
    yield found.course
    yield from of_seeds(found.ours)
    for each in found.rivals:
        yield from of_one(each)


if __name__ == "__main__":
    sys.exit(main())
