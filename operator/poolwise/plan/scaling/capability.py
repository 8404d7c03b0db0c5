"""What one replica of a pool serves inside all targets, at a mix of requests and a slowness.

A replica all of whose times are f times as long serves at rate r what the model says of f * r, with
targets f times as tight; so slowness needs no search of its own (:mod:`poolwise.model.corrected`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from poolwise.model.serving.capacity import KV_CACHE
from poolwise.model.serving.latency import latencies
from poolwise.model.serving.load import Replica, State, decode_seconds, state
from poolwise.model.serving.queueing import Lengths
from poolwise.model.serving.routing import Routed
from poolwise.model.work import Metric, Target
from poolwise.plan.scaling.balance import Balance
from poolwise.plan.scaling.mix import Mix
from poolwise.plan.scaling.service import Predictor
from poolwise.plan.scaling.tails import floor_seconds, holds, late_share, lone_load, tail_seconds

HOPELESS = 0.9
"""Share of late ones even alone from which on a target asks for no replicas: none would help."""
BISECTIONS = 13
"""To 0.01 % of the largest load."""
COARSE = 0.125
"""Of a load, that this is too much of: where answers are of a token or two, hardly anybody is
between the first and the last, however many requests come."""
LEAST_LOADS = 64.0
"""Of one request that is alone: taken to be borne where targets hold at no load."""
LEAST_PROMPTS_SHARE = 0.05
"""Of the time; where steps take as long as their target, prompts are not what delays."""
DISPERSION = 1.0
"""Of the arrivals at one replica: variance over mean, as by chance (Poisson). What routers smooth
of it and what a fleet's own bursts add is learned (:mod:`poolwise.plan.scaling.fragility`). With
1.5, services that miss first tokens take 5 to 8 % more replicas (Mooncake, llm-d's stages), others
as many; with 0.6 they are late more often than they may."""
UNSEEN = Balance().routed
"""How requests are taken to come before looks tell."""


@dataclass(frozen=True, eq=False)
class Capability:
    """One replica at the most that it serves inside its targets."""

    served: Replica
    """As the model has it; its times are to be multiplied by the slowness."""
    slowness: float
    at: State
    """By the model's clock, at the highest load at which all targets hold."""
    limiting: str
    limit: Target | None
    """The target that stops it, or whose requests wait for a slot."""
    arrivals_share: float
    """Of the strain on the limiting target that follows the arrivals at once; the rest follows
    what is in flight."""
    prompts_per_second: float
    """Beyond which reading prompts delays tokens too much, however empty the cache is."""
    unreachable: tuple[tuple[Target, float], ...]
    """Targets that even a lone request misses, with the least seconds that it takes."""
    floors: tuple[float, ...]
    """Shares of requests that are late even alone, by target."""

    @property
    def requests_per_second(self) -> float:
        """At the highest load."""
        return self.at.requests_per_second / self.slowness

    def helped(self, targets: tuple[Target, ...]) -> tuple[Target, ...]:
        """Of the service's targets, those that replicas can keep; all where they can keep none."""
        told = zip(targets, self.floors, strict=True)
        return tuple(target for target, floor in told if floor < HOPELESS) or targets

    @property
    def is_of_gaps(self) -> bool:
        """Whether gaps between tokens are what is late first."""
        return self.limit is not None and not self.limit.metric.is_from_arrival

    @property
    def is_of_prompts(self) -> bool:
        """Whether first tokens are what is late first, since prompts wait for each other: not for
        a slot."""
        is_first = self.limit is not None and self.limit.metric is Metric.TTFT
        return is_first and self.arrivals_share >= 1.0

    @cached_property
    def most_per_second(self) -> float:
        """Requests that it serves while others wait for it, late or not."""
        return state(self.served, highest_load(self.served, ())).requests_per_second / self.slowness

    @cached_property
    def in_flight(self) -> float:
        """Requests at the highest load, those that are read included."""
        return self.at.in_flight + self.requests_per_second * self.prefill_seconds

    @property
    def token_seconds(self) -> float:
        """Between two tokens at the highest load."""
        return self.at.token_seconds * self.slowness

    @cached_property
    def prefill_seconds(self) -> float:
        """From arrival to the first token, on average."""
        mean = latencies(self.served, self.at).ttft.mean_seconds * self.slowness
        return mean if math.isfinite(mean) else 0.0

    def left_after(self, seconds: float) -> float:
        """Share of what is in flight now that still is: the residual time of a request.

        In a steady state that is ``1 - E[min(R, seconds)] / E[R]`` for residence times R.
        """
        mean = self.in_flight / max(self.requests_per_second, 1e-12)
        if mean <= 0.0:
            return 0.0
        stay = Lengths(mean, self.served.generated.scv)
        ended = seconds + mean - stay.mean_of_at_least(max(seconds, 1e-9))
        return min(max(1.0 - ended / mean, 0.0), 1.0)


@lru_cache(maxsize=512)
def capability(
    predictor: Predictor,
    mix: Mix,
    targets: tuple[Target, ...],
    slowness: float,
    routed: Routed = UNSEEN,
) -> Capability:
    """At the highest load; remembered, so all arguments should come rounded."""
    served = replica_under(predictor, mix, routed)
    asked = tuple(replace(each, seconds=each.seconds / slowness) for each in targets)
    floors = [_floor(served, each) for each in asked]
    unreachable = tuple(
        (target, floor_seconds(served, each) * slowness)
        for target, each, floor in zip(targets, asked, floors, strict=True)
        if floor > each.allowed_share
    )
    helped = [index for index, floor in enumerate(floors) if floor < HOPELESS]
    reachable = tuple(_beside_floor(asked[index], floors[index]) for index in helped)
    load = highest_load(served, reachable)
    at = state(served, max(load, LEAST_LOADS * lone_load(served)))
    nearest = _nearest(served, at, reachable)
    limit = targets[helped[reachable.index(nearest)]] if nearest else None
    slots = _slots(served, at, nearest)
    return Capability(
        served,
        slowness,
        at,
        slots or (str(limit) if limit else "Rate"),
        limit,
        0.0 if slots else _arrivals_share(served, at, nearest),
        _prompts_per_second(served, at, asked) / slowness,
        unreachable,
        tuple(floors),
    )


def replica_under(predictor: Predictor, mix: Mix, routed: Routed = UNSEEN) -> Replica:
    """One replica as requests come to it, with as many slots as contexts of their length leave."""
    served = replace(predictor.replica(mix), arrival_dispersion=DISPERSION, routed=routed)
    if not mix.context_tokens or not served.generates:
        return served
    slots = served.cache_slots * served.context_tokens / mix.context_tokens
    return replace(served, cache_slots=slots, context_tokens=mix.context_tokens)


@lru_cache(maxsize=1024)
def relative_strength(able: Capability, target: Target, seconds: float) -> float:
    """How much less load makes as many requests late beyond a shorter time than the target's; 0
    where any load does."""
    shorter = replace(target, seconds=seconds / able.slowness)
    if late_share(able.served, able.at, shorter) <= shorter.allowed_share:
        return 1.0
    load = highest_load(able.served, (shorter,))
    if load <= 0.0:
        return 0.0
    return state(able.served, load).requests_per_second / able.at.requests_per_second


def _floor(served: Replica, target: Target) -> float:
    if served.largest_load <= 0.0:
        return 1.0
    return late_share(served, state(served, lone_load(served)), target)


def _beside_floor(target: Target, floor: float) -> Target:
    """Of those that are in time alone, load may make the allowed share late."""
    in_time = (1.0 - floor) * (1.0 - target.allowed_share)
    return replace(target, percentile=100.0 * max(in_time, 1.0 - HOPELESS))


def highest_load(served: Replica, targets: tuple[Target, ...]) -> float:
    """At which all targets hold; 0 where none does."""
    most = served.largest_load
    if most <= 0.0:
        return 0.0
    if holds(served, state(served, most), targets):
        return most
    low, high, bisections = 0.0, most, 0
    while bisections < BISECTIONS or (high - low > COARSE * high and high > lone_load(served)):
        bisections, middle = bisections + 1, (low + high) / 2.0
        if holds(served, state(served, middle), targets):
            low = middle
        else:
            high = middle
    return low


def _nearest(served: Replica, at: State, targets: tuple[Target, ...]) -> Target | None:
    """The target that the load is nearest to missing."""
    return max(
        targets, key=lambda each: tail_seconds(served, at, each) / each.seconds, default=None
    )


def _slots(served: Replica, at: State, nearest: Target | None) -> str:
    """What slots are made of, where they are all taken or waiting for one is what takes long."""
    ceiling = KV_CACHE if served.cache_slots <= served.batch_slots else "Batch"
    if served.generates and at.in_flight >= served.largest_load * (1.0 - 1e-6):
        return ceiling
    if nearest is None or not nearest.metric.is_from_arrival:
        return ""
    times = latencies(served, at)
    return ceiling if times.slot_wait.high_seconds > times.queue.high_seconds else ""


def _arrivals_share(served: Replica, at: State, limit: Target | None) -> float:
    """By the elasticities of a token's time, ``D(b) / (1 - busy)``, in the arrivals and in b."""
    if limit is None or not served.generates or limit.metric.is_from_arrival:
        return 1.0
    busy = min(1.0 - at.decode.seconds / max(at.token_seconds, 1e-12), 0.99)
    of_arrivals = busy / (1.0 - busy)
    more = decode_seconds(served, at.in_flight * 1.01) / at.decode.seconds - 1.0
    return of_arrivals / (of_arrivals + more / 0.01 + 1e-9)


def _prompts_per_second(served: Replica, at: State, asked: Sequence[Target]) -> float:
    """At which tokens, ``D / (1 - rate * added)``, take as long as their target on average."""
    most = 1.0 / max(at.prompt_service_seconds, 1e-12)
    added = at.added_seconds * served.interference
    gaps = [each.seconds for each in asked if not each.metric.is_from_arrival]
    if not gaps or not served.generates or added <= 0.0:
        return most
    share = max(1.0 - at.decode.seconds / min(gaps), LEAST_PROMPTS_SHARE)
    return min(share / added, most)


def rounded_slowness(log_slowness: float) -> float:
    """To 2 %: capabilities are remembered by it."""
    return math.exp(round(log_slowness * 50.0) / 50.0)
