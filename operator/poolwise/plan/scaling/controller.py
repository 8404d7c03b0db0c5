"""The decision: how many replicas a service needs, and why."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from poolwise.plan.scaling import fragility, learning, surprise
from poolwise.plan.scaling.capability import Capability, capability, rounded_slowness
from poolwise.plan.scaling.decision import Decision, Forecast, Remark
from poolwise.plan.scaling.intake import Intake, intake
from poolwise.plan.scaling.level import LONGEST_SECONDS, expected, level
from poolwise.plan.scaling.memory import Bin, Memory
from poolwise.plan.scaling.outlook import LEAST_RATE, Flow, Outlook, outlook
from poolwise.plan.scaling.restraint import restrained
from poolwise.plan.scaling.seen import Phase, Seen
from poolwise.plan.scaling.service import Pool, Service
from poolwise.plan.signals.window import Delta

SPENT_SHARES = (1.0, 0.7, 0.5)
"""Of the allowance, expected to be late: more are started above the first, and as many as come to
the second; one is taken away where it would still be the third without it."""
LEAST_STEPS = 2
"""Looks before anything is decided."""
HOLD_SECONDS = 60.0
"""Beside a start: for how long a replica must not have been needed before it leaves."""
MOST_LAG_SECONDS = 300.0
SLOPE_SECONDS, LEAST_SLOPE_STEPS = 120.0, 5
KEPT_SECONDS = 2.0 * LONGEST_SECONDS
LONGER = 3.0
"""Times as long as on average some requests stay."""


def decide(service: Service, memory: Memory, seen: Seen) -> Decision:
    """The least number of replicas whose predicted tails meet all targets when a start would end.

    Deterministic: equal arguments give equal decisions. ``memory`` is that of the decision before,
    or ``Memory()``. The number never falls while metrics are missing or broken.
    """
    pool = service.pools[0]
    taken = intake(memory, seen)
    held = sum(each.phase is not Phase.DRAINING for each in seen.replicas)
    able = _capability(pool, service, memory)
    memory = _with_mix(pool, _learned(service, pool, memory, taken, seen, able))
    able = _capability(pool, service, memory)
    ahead = _outlook(service, pool, memory, taken, seen, able)
    if taken.seconds > 0.0:
        memory = _with_bin(memory, seen, taken, ahead, able)
    ratios = _ratios_for(service, memory, ahead)
    wanted = _wanted(service, held, ahead, ratios) if len(memory.bins) >= LEAST_STEPS else held
    if not taken.may_shrink:
        wanted = max(wanted, held)
    wanted = min(max(wanted, service.least_replicas), service.most_replicas)
    result = restrained(memory, seen.now_seconds, held, wanted, pool.start_seconds + HOLD_SECONDS)
    return Decision(
        replicas=result.replicas,
        memory=result.memory,
        reason=f"{ahead} {ratios.aim:.3f} {fragility.summary(memory.belief)} {result.why}",
        by_pool={pool.name: result.replicas},
        limiting=able.limiting,
        forecast=_forecast(ahead, seen),
        capacity_requests_per_second=able.requests_per_second,
        remarks=_remarks(able, taken),
    )


def _wanted(service: Service, held: int, ahead: Outlook, ratios: Ratios) -> int:
    """More where too many would be late, fewer where even then hardly any were."""
    at_least = math.ceil(ahead.coming / ratios.most) + service.redundancy
    if at_least > held:
        return math.ceil(ahead.coming / ratios.aim) + service.redundancy
    down = math.ceil(max(ahead.settled, ahead.coming) / ratios.least) + service.redundancy
    return max(at_least, min(down, held))


@dataclass(frozen=True, slots=True)
class Ratios:
    """Of demand to replicas: at which as many are expected to be late as :data:`SPENT_SHARES`."""

    most: float
    aim: float
    least: float


def _ratios_for(service: Service, memory: Memory, ahead: Outlook) -> Ratios:
    shares = surprise.shares(memory.errors, ahead.coming, round(ahead.horizon_seconds))
    allowed, floor = service.allowed_share, fragility.expected_floor(memory.belief)
    highest = fragility.bearable(memory.belief, surprise.LOG_ERRORS, shares, allowed)
    return Ratios(*(highest(max(each * allowed - floor, each * allowed / 2.0))
                    for each in SPENT_SHARES))  # fmt: skip


def _learned(
    service: Service, pool: Pool, memory: Memory, taken: Intake, seen: Seen, able: Capability
) -> Memory:
    delta, seconds = taken.warm, taken.seconds
    if seconds <= 0.0 or delta is None:
        return replace(memory, samples=taken.samples)
    usual = memory.usual_arrivals or taken.arrivals
    slowness = learning.log_slowness(
        memory.log_slowness.get(pool.name, 0.0),
        able.served,
        delta,
        (taken.in_flight - taken.waiting) / max(taken.ready, 1),
        seconds,
    )
    belief = fragility.faded(memory.belief, seconds)
    load = _load(memory, seen.now_seconds, able, delta)
    for each in learning.lateness(service, delta, able):
        belief = fragility.observed(belief, load, each, usual, service.allowed_share)
    return replace(
        learning.with_lengths(memory, delta, seconds),
        samples=taken.samples,
        context_tokens=learning.context_tokens(
            memory.context_tokens, taken.samples.values(), able.served, seconds
        ),
        log_slowness={**memory.log_slowness, pool.name: slowness},
        belief=belief,
        usual_arrivals=0.98 * usual + 0.02 * taken.arrivals,
    )


def _load(memory: Memory, now_seconds: float, able: Capability, delta: Delta) -> fragility.Load:
    """Of those whose latencies were told just now: over the time that they were here."""
    capacity = max(able.requests_per_second, LEAST_RATE)
    stay = able.in_flight / capacity
    first = delta.ttft_seconds
    waited = first.total / first.count if first and first.count else 0.0
    mean = _ratios(memory, now_seconds - min(max(stay, 15.0), MOST_LAG_SECONDS), capacity)
    longest = min(max(LONGER * (stay + waited), 30.0), MOST_LAG_SECONDS)
    worst = _ratios(memory, now_seconds - longest, capacity)
    return fragility.Load(sum(mean) / max(len(mean), 1), max(worst, default=0.0))


def _ratios(memory: Memory, since_seconds: float, capacity: float) -> list[float]:
    return [
        each.demand * each.capacity / capacity / each.ready
        for each in memory.bins
        if each.at_seconds >= since_seconds and each.ready > 0.0
    ]


def _with_bin(
    memory: Memory, seen: Seen, taken: Intake, ahead: Outlook, able: Capability
) -> Memory:
    last = Bin(
        seen.now_seconds,
        taken.seconds,
        taken.arrivals,
        ahead.coming - ahead.backlog,
        ahead.present,
        float(taken.ready),
        ahead.filled,
        able.requests_per_second,
    )
    before = seen.now_seconds - ahead.horizon_seconds
    early = [each for each in memory.bins if each.at_seconds <= before][-1:]
    errors = memory.errors
    for each in early:
        came = ahead.present * able.requests_per_second / max(each.capacity, LEAST_RATE)
        errors = surprise.observed(errors, each.foreseen, came, taken.seconds)
    kept = (each for each in memory.bins if seen.now_seconds - each.at_seconds <= KEPT_SECONDS)
    return replace(memory, bins=(*kept, last), errors=errors)


def _outlook(
    service: Service, pool: Pool, memory: Memory, taken: Intake, seen: Seen, able: Capability
) -> Outlook:
    bins = memory.bins
    if taken.seconds > 0.0:
        bins = (*bins, Bin(seen.now_seconds, taken.seconds, taken.arrivals))
    strength, _ = fragility.summary(memory.belief)
    flow = Flow(
        bins[-1].arrivals / bins[-1].seconds if bins else 0.0,
        taken.in_flight,
        taken.waiting,
        learning.observed_gap_seconds(taken.warm) if taken.warm else None,
        able.requests_per_second * strength * taken.ready,
        _filling(memory, seen.now_seconds, able),
    )
    coming = expected(level(bins), seen.expected_requests_per_second)
    return outlook(able, coming, flow, pool.start_seconds + service.interval_seconds)


def _filling(memory: Memory, now_seconds: float, able: Capability) -> float:
    """Slope of what is in flight over the last minutes, less what the noise of looks makes of it.

    Where answers take minutes it foretells more than arrivals do.
    """
    recent = [each for each in memory.bins if now_seconds - each.at_seconds <= SLOPE_SECONDS]
    if len(recent) < LEAST_SLOPE_STEPS:
        return 0.0
    capacity = max(able.requests_per_second, LEAST_RATE)
    times = np.array([each.at_seconds for each in recent])
    values = np.array([each.filled * each.capacity / capacity for each in recent])
    times -= times.mean()
    slope = float(times @ values / (times @ times))
    rest = values - values.mean() - slope * times
    error = math.sqrt(float(rest @ rest) / (len(recent) - 2) / float(times @ times))
    return max(slope - 2.0 * error, 0.0)


def _with_mix(pool: Pool, memory: Memory) -> Memory:
    """A new one only where it differs: working out capabilities takes long."""
    now = learning.mix(pool.predictor.prior_mix, memory)
    return memory if memory.mix and memory.mix.is_near(now) else replace(memory, mix=now)


def _capability(pool: Pool, service: Service, memory: Memory) -> Capability:
    slowness = rounded_slowness(memory.log_slowness.get(pool.name, 0.0))
    mix = memory.mix or pool.predictor.prior_mix
    return capability(pool.predictor, mix, service.targets, slowness)


def _forecast(ahead: Outlook, seen: Seen) -> Forecast:
    mid, deviation = ahead.level.mid, ahead.level.deviation
    at_seconds = seen.now_seconds + ahead.horizon_seconds
    return Forecast(at_seconds, max(mid - deviation, 0.0), mid, mid + deviation)


def _remarks(able: Capability, taken: Intake) -> dict[Remark, str]:
    remarks = {}
    for target, floor in able.unreachable:
        remarks[Remark.SLO_UNREACHABLE] = (
            f"{target} is {target.seconds:g} s, and a lone request takes {floor:.3g} s"
        )
    if not taken.may_shrink:
        remarks[Remark.METRICS_MISSING] = taken.reason
    return remarks
