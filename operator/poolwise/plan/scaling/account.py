"""What a decision tells of itself: predicted tails, remarks, and one sentence."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache

from poolwise.model.serving.load import State as ModelState
from poolwise.model.serving.load import state_at_rate
from poolwise.model.work import Target
from poolwise.plan.scaling import fragility
from poolwise.plan.scaling.capability import Capability
from poolwise.plan.scaling.decision import Forecast, Remark, Tail
from poolwise.plan.scaling.intake import Intake
from poolwise.plan.scaling.learning import SLOWNESS_HALF_LIFE_SECONDS
from poolwise.plan.scaling.memory import Memory
from poolwise.plan.scaling.outlook import Outlook
from poolwise.plan.scaling.service import Service
from poolwise.plan.scaling.tails import tail_seconds
from poolwise.plan.signals.percentile import samples_needed
from poolwise.plan.signals.state import State

DEVIATIONS = 2.0
TOLD_HALF_LIVES = 5.0
"""After which 3 % of a measured speed are still what was predicted."""
LOADS_PER_UNIT = 50.0
"""Loads are rounded to 2 % of a full replica: tails are remembered by them."""


def tails(
    service: Service,
    memory: Memory,
    able: Capability,
    ahead: Outlook,
    replicas: int,
    worth: float,
) -> tuple[Tail, ...]:
    """Predicted at one replica fewer, as decided, and one more; ``able`` is of the replicas that
    are fullest, each worth so many of the first pool's."""
    strength, _ = fragility.summary(memory.belief)
    counts = [each for each in (replicas - 1, replicas, replicas + 1) if each > 0]
    loads = {each: ahead.lasting / each / strength / max(worth, 1e-6) for each in counts}
    return tuple(
        Tail(target, {count: _tail(able, target, _rounded(load)) for count, load in loads.items()})
        for target in service.targets
    )


def _rounded(load: float) -> float:
    return math.ceil(load * LOADS_PER_UNIT) / LOADS_PER_UNIT


@lru_cache(maxsize=2048)
def _tail(able: Capability, target: Target, load: float) -> float:
    """At a load of one replica, in full ones as they have turned out to be."""
    at = _state(able, load)
    return math.inf if at is None else tail_seconds(able.served, at, target) * able.slowness


@lru_cache(maxsize=1024)
def _state(able: Capability, load: float) -> ModelState | None:
    return state_at_rate(able.served, load * able.at.requests_per_second)


def token_ratio(service: Service, memory: Memory, now_seconds: float) -> float | None:
    """Measured over predicted time of a token at the batch that is seen, on the first pool.

    It begins as predicted, so nothing is told while that still weighs in it, nor of engines that
    do not tell gaps between tokens.
    """
    learned = memory.log_slowness.get(service.first.name, 0.0)
    is_young = memory.age_seconds(now_seconds) < TOLD_HALF_LIVES * SLOWNESS_HALF_LIFE_SECONDS
    return None if is_young or not learned else math.exp(learned)


def forecast(ahead: Outlook, now_seconds: float) -> Forecast:
    """Requests per second when a start would end."""
    mid, deviation = ahead.level.mid, DEVIATIONS * ahead.level.deviation
    at_seconds = now_seconds + ahead.horizon_seconds
    return Forecast(at_seconds, max(mid - deviation, 0.0), mid, mid + deviation)


def remarks(
    service: Service, memory: Memory, taken: Intake, able: Capability
) -> Iterator[tuple[Remark, str]]:
    """What a user should know whatever the number is."""
    for target, floor in able.unreachable:
        yield (
            Remark.SLO_UNREACHABLE,
            f"{target} is to be {target.seconds:g} s, and takes {floor:.3g} s for a request alone",
        )
    if taken.state is State.BROKEN:
        yield Remark.METRICS_BROKEN, taken.reason
    elif taken.state is State.UNKNOWN:
        yield Remark.METRICS_MISSING, taken.reason
    for target in service.targets:
        told = memory.observed.get(target.metric.value)
        needed = samples_needed(target.percentile)
        if told is not None and 0.0 < told.count < needed:
            yield (
                Remark.TOO_FEW_SAMPLES,
                f"{target}: {told.count:.0f} samples of the {needed:.0f} that it takes to speak of "
                "it; the model is followed",
            )
            return


def sentence(
    able: Capability, ahead: Outlook, borne: float, held: int, replicas: int, why: str
) -> str:
    """For people: from the load to the number."""
    load = (
        f"{ahead.level.mid:.3g} requests/s now, {ahead.lasting:.3g} full replicas' worth in "
        f"{ahead.horizon_seconds:.0f} s; one replica bears {borne:.2f} of a full one's "
        f"{able.requests_per_second:.3g}/s ({able.limiting})"
    )
    queue = f"; {ahead.backlog:.1f} more work off the queue" if ahead.backlog >= 0.1 else ""
    change = f"{held} to {replicas}" if replicas != held else f"{replicas} as before"
    return f"{change}: {load}{queue}{f'; {why}' if why else ''}"
