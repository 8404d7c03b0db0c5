"""``python -m bench.autoscale.shifts``: requests that become others from one moment to the next.

An application that starts to put documents before its questions sends as many requests as before,
and each of them takes many times as much. Requests come by chance (Poisson) for an hour; after half
of it prompts, answers or both have other lengths (log-normal). ``ours``, the mean of two seeds,
beside the best static fleet of the first. Who comes within a start of the change is late.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench.autoscale import sizing, suite
from bench.autoscale.document import of_one, of_seeds
from bench.autoscale.engine import engine
from bench.autoscale.numbers import count
from bench.autoscale.outcome import Outcome
from bench.autoscale.scene import Scene
from bench.autoscale.traces import Trace
from bench.autoscale.tuning import BEST_STATIC
from bench.programs import ends_on_bad_input
from poolwise.sim.serving.requests import Requests

SECONDS, CHANGE_SECONDS = 3600.0, 1800.0
HEAVIER_REPLICAS = 9.0
"""Full ones that the heavier half needs."""
FIRST_LOAD = 0.8
"""Of a replica at the beginning."""
SEEDS = (0, 1)
SAMPLE = 4000
"""Requests by which a kind is measured."""
PROMPT_SIGMA, ANSWER_SIGMA = 0.8, 0.7
"""Deviations of ln(tokens)."""
LONGEST_PROMPT, LONGEST_ANSWER = 30_000, 4_000

Kind = tuple[float, float]
"""Mean tokens of prompts and answers."""
SHIFTS: dict[str, tuple[Kind, Kind]] = {
    "prompts 500 to 6000": ((500.0, 200.0), (6000.0, 200.0)),
    "prompts 6000 to 500": ((6000.0, 200.0), (500.0, 200.0)),
    "prompts 1500 to 3000": ((1500.0, 250.0), (3000.0, 250.0)),
    "answers 100 to 800": ((800.0, 100.0), (800.0, 800.0)),
    "prompts 500 to 6000, answers 600 to 60": ((500.0, 600.0), (6000.0, 60.0)),
}


@dataclass(frozen=True, slots=True)
class Found:
    """What became of one change."""

    shift: str
    needed: tuple[float, float]
    """Full replicas before and after it."""
    ours: tuple[Outcome, ...]
    """By seed."""
    best_static: Outcome
    """Of the first seed."""


@ends_on_bad_input
def main() -> int:
    """Replay all of them and tell."""
    parser = argparse.ArgumentParser(prog="python -m bench.autoscale.shifts", description=__doc__)
    parser.add_argument("--processes", type=count, default=suite.PROCESSES)
    asked = parser.parse_args()
    print(text(run(None, asked.processes)))
    return 0


def run(_data: Path | None, processes: int) -> list[Found]:
    """All changes; they need no recorded trace, which the page's other programs take."""
    with ProcessPoolExecutor(processes) as pool:
        return list(pool.map(replayed, SHIFTS))


def replayed(shift: str) -> Found:
    """One change under both."""
    scenes = [scene(shift, seed) for seed in SEEDS]
    ours = tuple(suite.result(each, suite.OURS).outcome for each, _ in scenes)
    first, needed = scenes[0]
    return Found(shift, needed, ours, suite.result(first, BEST_STATIC).outcome)


def scene(shift: str, seed: int) -> tuple[Scene, tuple[float, float]]:
    """As many requests before the change as after, and the full replicas that each half needs."""
    before, after = SHIFTS[shift]
    draw, on, targets = np.random.default_rng(seed), engine(), sizing.Targets()
    served = [
        sizing.measured(on, _alike(each, draw), targets).requests_per_second
        for each in (before, after)
    ]
    rate = HEAVIER_REPLICAS * min(served)
    arrivals = np.sort(draw.uniform(0.0, SECONDS, draw.poisson(rate * SECONDS)))
    earlier = int(np.searchsorted(arrivals, CHANGE_SECONDS))
    lengths = [_lengths(before, earlier, draw), _lengths(after, len(arrivals) - earlier, draw)]
    prompts, answers = map(np.concatenate, zip(*lengths, strict=True))
    requests = Requests.of(arrivals, prompts, answers)
    work = sizing.measured(on, requests, targets)
    initial = max(1, round(rate / served[0] / FIRST_LOAD))
    built = Scene(Trace(shift, requests), on, targets, work)
    needed = (rate / served[0], rate / served[1])
    return replace(built, initial_replicas=initial, seed=seed), needed


def _alike(kind: Kind, draw: np.random.Generator) -> Requests:
    """Requests of one kind; when they come does not matter."""
    return Requests.of(np.arange(float(SAMPLE)), *_lengths(kind, SAMPLE, draw))


def _lengths(
    kind: Kind, requests: int, draw: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Tokens of prompts and of answers."""
    prompt, answer = kind
    return (
        _drawn(prompt, PROMPT_SIGMA, requests, LONGEST_PROMPT, draw),
        _drawn(answer, ANSWER_SIGMA, requests, LONGEST_ANSWER, draw),
    )


def _drawn(
    mean: float, sigma: float, requests: int, longest: int, draw: np.random.Generator
) -> NDArray[np.int64]:
    tokens = draw.lognormal(np.log(mean) - sigma**2 / 2.0, sigma, requests)
    return np.clip(tokens.astype(np.int64), 1, longest)


def text(found: Iterable[Found]) -> str:
    """A table: a row for each change."""
    head = (
        "| from one moment to the next | full replicas needed | ours % (least of the seeds) "
        "| replica-h | best static % | replica-h |",
        "|---|---|---|---|---|---|",
    )
    return "\n".join([*head, *(f"| {' | '.join(_cells(each))} |" for each in found)])


def _cells(found: Found) -> Iterator[str]:
    yield found.shift
    yield " to ".join(f"{each:.1f}" for each in found.needed)
    yield from of_seeds(found.ours)
    yield from of_one(found.best_static)


if __name__ == "__main__":
    sys.exit(main())
