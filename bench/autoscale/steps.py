"""``python -m bench.autoscale.steps [--data DIR] [--json]``: back inside targets after a step.

Requests with the lengths of a recorded trace arrive by chance (Poisson), at first as many as so
many replicas serve, then at once as many as so many more do. Told is the time from the step until
as many are in time again as shall be (:func:`.outcome.seconds_to_recover`), of a few seeds. What is
asked for at the next scrape serves a start later, so no law is back sooner than that.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

import numpy as np

from bench.autoscale import drawn, suite
from bench.autoscale.drawn import TRACES
from bench.autoscale.numbers import count
from bench.autoscale.ours import Ours, service
from bench.autoscale.replay import replay
from bench.autoscale.scene import Scene
from bench.programs import ends_on_bad_input
from bench.tables import DEFAULT_FOLDER

STEPS = ((4, 6), (4, 8), (4, 12), (2, 8))
"""Replicas' worth of load before and after."""
SEEDS = 3
BEFORE_SECONDS, AFTER_SECONDS = 1500.0, 1200.0


@dataclass(frozen=True, slots=True)
class Case:
    """One step."""

    data: Path
    """Folder of the traces."""
    trace: str
    """That lengths are drawn from."""
    before: int
    after: int
    seed: int


@dataclass(frozen=True, slots=True)
class Found:
    """What became of it."""

    case: Case
    seconds_to_recover: float | None
    average_replicas: float


@ends_on_bad_input
def main() -> int:
    """Run all steps and tell."""
    parser = argparse.ArgumentParser(prog="python -m bench.autoscale.steps", description=__doc__)
    parser.add_argument("--data", type=Path, default=DEFAULT_FOLDER, help="folder of the traces")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--processes", type=count, default=suite.PROCESSES)
    asked = parser.parse_args()
    found = run(asked.data, asked.processes)
    print(json.dumps([_listed(each) for each in found]) if asked.json else text(found))
    return 0


def run(data: Path, processes: int) -> list[Found]:
    """All cases, in their order."""
    cases = [
        Case(data, trace, *step, seed) for trace, step, seed in product(TRACES, STEPS, range(SEEDS))
    ]
    with ProcessPoolExecutor(processes) as pool:
        return list(pool.map(recovered, cases))


def recovered(case: Case) -> Found:
    """One replay of ours."""
    scene = _scene(case)
    seen = replay(scene, Ours(service(scene)))
    return Found(case, seen.seconds_to_recover, seen.average_replicas)


def text(found: Sequence[Found]) -> str:
    """A table: a row for each trace and step."""
    head = (
        "| lengths of | load, in replicas | back after s, median | worst |",
        "|---|---|---|---|",
    )
    return "\n".join([*head, *_rows(found)])


def _rows(found: Sequence[Found]) -> Iterator[str]:
    for start in range(0, len(found), SEEDS):
        group = found[start : start + SEEDS]
        case, times = group[0].case, [_seconds(each) for each in group]
        worst = f"{max(times):.0f}" if max(times) < AFTER_SECONDS else "never"
        step = f"{case.before} to {case.after}"
        yield f"| {case.trace} | {step} | {statistics.median(times):.0f} | {worst} |"


def _seconds(found: Found) -> float:
    return AFTER_SECONDS if found.seconds_to_recover is None else found.seconds_to_recover


def _listed(found: Found) -> dict[str, object]:
    case = found.case
    return {
        "trace": case.trace,
        "before": case.before,
        "after": case.after,
        "seed": case.seed,
        "seconds_to_recover": found.seconds_to_recover,
        "average_replicas": found.average_replicas,
    }


def _scene(case: Case) -> Scene:
    of = drawn.measured(case.data, case.trace)
    draw, one = np.random.default_rng(case.seed), drawn.per_second(of)
    arrivals = [
        draw.uniform(begin, begin + seconds, draw.poisson(replicas * one * seconds))
        for replicas, begin, seconds in (
            (case.before, 0.0, BEFORE_SECONDS),
            (case.after, BEFORE_SECONDS, AFTER_SECONDS),
        )
    ]
    scene = drawn.arriving(of, np.concatenate(arrivals), draw, "step", case.before + 1)
    return replace(scene, seed=case.seed)


if __name__ == "__main__":
    sys.exit(main())
