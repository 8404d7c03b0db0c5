"""What a replay came to: attainment, cost, calm and recovery."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.autoscale.reach import aim
from bench.autoscale.scene import Scene
from poolwise.sim.serving.fleet import Fleet
from poolwise.sim.serving.requests import Floats

Counts = NDArray[np.integer[Any]]

RECOVERY_BIN_SECONDS = 15.0
RECOVERED_BINS = 4
"""A minute: with as many in time in it as shall be the service is back inside its targets."""
CHANCE = 1e-9
"""Of sums."""
STEP_SECONDS = 120.0
"""Of arrivals before and after the largest step."""


@dataclass(frozen=True, slots=True)
class Step:
    """An answer of the policy, inside its bounds."""

    at_seconds: float
    wanted: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """Of one replay, without its warm-up."""

    attainment: float
    """Share of requests that met both targets."""
    ttft_attainment: float
    itl_attainment: float
    replica_hours: float
    average_replicas: float
    direction_changes_per_hour: float
    seconds_to_recover: float | None
    """From the largest step of the trace; 0 when nothing was missed, None: not until the end."""
    requests: int
    p99_ttft_seconds: float
    p99_tpot_seconds: float
    preemptions: int
    refused: int
    digest: str
    """Of every request's times: the same seed gives the same one."""
    steps: tuple[Step, ...] = ()


def outcome(scene: Scene, fleet: Fleet, steps: Sequence[Step]) -> Outcome:
    """Of a fleet that has answered everything."""
    requests, answers = scene.trace.requests, fleet.answers()
    first, tokens = scene.targets.met(requests, answers)
    scored = requests.arrival_seconds >= scene.warm_up_seconds
    begin, end = scene.warm_up_seconds, scene.trace.seconds
    paid = fleet.replica_seconds(begin, end)
    return Outcome(
        attainment=_share(first & tokens, scored),
        ttft_attainment=_share(first, scored),
        itl_attainment=_share(tokens, scored),
        replica_hours=paid / 3600.0,
        average_replicas=paid / max(end - begin, 1e-9),
        direction_changes_per_hour=direction_changes(steps, begin, end)
        / max((end - begin) / 3600.0, 1e-9),
        seconds_to_recover=seconds_to_recover(scene, first & tokens),
        requests=int(scored.sum()),
        p99_ttft_seconds=_p99(answers.ttft_seconds(requests)[scored]),
        p99_tpot_seconds=_p99(answers.tpot_seconds(requests)[scored]),
        preemptions=int(answers.preemptions.sum()),
        refused=fleet.refused,
        digest=answers.digest(),
        steps=tuple(steps),
    )


def _share(met: NDArray[np.bool_], scored: NDArray[np.bool_]) -> float:
    return float(met[scored].mean()) if scored.any() else 1.0


def _p99(seconds: Floats) -> float:
    """A request without an answer took longer than any."""
    if not len(seconds):
        return 0.0
    known = np.where(np.isnan(seconds), np.inf, seconds)
    return float(np.quantile(known, 0.99, method="higher"))


def direction_changes(steps: Sequence[Step], begin: float, end: float) -> int:
    """How often a fleet that grew shrinks next, or the other way round."""
    wanted = [step.wanted for step in steps if begin <= step.at_seconds <= end]
    moves = [after - before for before, after in itertools.pairwise(wanted) if after != before]
    return sum((after > 0) != (before > 0) for before, after in itertools.pairwise(moves))


def largest_step_seconds(scene: Scene) -> float:
    """When the work that arrives rose most from two minutes to the next two."""
    bin_seconds = RECOVERY_BIN_SECONDS
    needed = scene.needed_replicas(bin_seconds)
    width = int(STEP_SECONDS / bin_seconds)
    first = max(int(scene.warm_up_seconds / bin_seconds), width)
    if len(needed) < first + width + 1:
        return scene.warm_up_seconds
    sums = np.concatenate(([0.0], np.cumsum(needed)))
    moments = np.arange(first, len(needed) - width + 1)
    rises = sums[moments + width] - 2.0 * sums[moments] + sums[moments - width]
    return float(moments[int(np.argmax(rises))]) * bin_seconds


def seconds_to_recover(scene: Scene, met: NDArray[np.bool_]) -> float | None:
    """From the largest step until a minute begins in which as many are in time as shall be."""
    arrivals, begin = scene.trace.requests.arrival_seconds, largest_step_seconds(scene)
    after = arrivals >= begin
    if not after.any():
        return 0.0
    bins = ((arrivals[after] - begin) / RECOVERY_BIN_SECONDS).astype(np.int64)
    place = first_good_minute(np.bincount(bins), np.bincount(bins, met[after]), aim(scene))
    return None if place is None else place * RECOVERY_BIN_SECONDS


def first_good_minute(came: Counts, good: Counts, aim_share: float) -> int | None:
    """The first bin with so many in time, in itself and together with those after it.

    Of the minute and not of each of its bins: a service that is in time for 99 % on the whole is
    below that in every second bin.

    :param came: requests by bin.
    :param good: of these, in time.
    """
    spare = good - aim_share * came
    if len(spare) < RECOVERED_BINS:
        return None
    minutes = np.convolve(spare, np.ones(RECOVERED_BINS), "valid")
    found = np.flatnonzero((minutes >= -CHANCE) & (spare[: len(minutes)] >= -CHANCE))
    return int(found[0]) if len(found) else None
