"""The decision: how many replicas a service needs, and why."""

from __future__ import annotations

import math
from dataclasses import replace

from poolwise.plan.scaling.capability import Capability, capability, rounded_slowness
from poolwise.plan.scaling.decision import Decision, Forecast, Remark
from poolwise.plan.scaling.intake import Intake, intake
from poolwise.plan.scaling.memory import Bin, Memory
from poolwise.plan.scaling.seen import Phase, Seen
from poolwise.plan.scaling.service import Pool, Service

KEPT_SECONDS = 600.0
DISPERSION = 1.5


def decide(service: Service, memory: Memory, seen: Seen) -> Decision:
    """The least number of replicas whose predicted tails meet all targets when a start would end.

    Deterministic: equal arguments give equal decisions. ``memory`` is that of the decision before,
    or ``Memory()``. The number never falls while metrics are missing or broken.
    """
    taken = intake(memory, seen)
    held = sum(each.phase is not Phase.DRAINING for each in seen.replicas)
    memory = _remembered(memory, seen, taken)
    able = _capability(service.pools[0], service, memory)
    forecast = _forecast(memory, seen.now_seconds + service.pools[0].start_seconds)
    rate = able.requests_per_second
    needed = math.ceil(forecast.high / rate) + service.redundancy if rate > 0.0 else held
    if not taken.may_shrink:
        needed = max(needed, held)
    wanted = min(max(needed, service.least_replicas), service.most_replicas)
    return Decision(
        replicas=wanted,
        memory=memory,
        reason=f"{forecast.high:.2f} requests/s, {rate:.2f} from one replica: {wanted} replicas",
        by_pool={service.pools[0].name: wanted},
        limiting=able.limiting,
        forecast=forecast,
        capacity_requests_per_second=rate,
        remarks=_remarks(able, taken),
    )


def _remembered(memory: Memory, seen: Seen, taken: Intake) -> Memory:
    bins = memory.bins
    if taken.seconds:
        bins = (*bins, Bin(seen.now_seconds, taken.seconds, taken.arrivals))
    kept = tuple(each for each in bins if seen.now_seconds - each.at_seconds <= KEPT_SECONDS)
    return replace(memory, samples=taken.samples, bins=kept)


def _capability(pool: Pool, service: Service, memory: Memory) -> Capability:
    slowness = rounded_slowness(memory.log_slowness.get(pool.name, 0.0))
    mix = pool.predictor.prior_mix.rounded()
    return capability(pool.predictor, mix, service.targets, slowness, DISPERSION)


def _forecast(memory: Memory, at_seconds: float) -> Forecast:
    seconds = sum(each.seconds for each in memory.bins)
    arrivals = sum(each.arrivals for each in memory.bins)
    mid = arrivals / seconds if seconds else 0.0
    spread = 2.0 * math.sqrt(arrivals) / seconds if seconds else 0.0
    return Forecast(at_seconds, max(mid - spread, 0.0), mid, mid + spread)


def _remarks(able: Capability, taken: Intake) -> dict[Remark, str]:
    remarks = {}
    for target, floor in able.unreachable:
        remarks[Remark.SLO_UNREACHABLE] = (
            f"{target} is {target.seconds:g} s, and a lone request takes {floor:.3g} s"
        )
    if not taken.may_shrink:
        remarks[Remark.METRICS_MISSING] = taken.load.reason
    return remarks
