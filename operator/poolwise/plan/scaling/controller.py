"""The decision: how many replicas a service needs, on which pools, and why.

What a look teaches goes into the memory (:mod:`.lessons`), demand is foreseen until a start would
end (:mod:`.prospect`) and compared with what had been foreseen for now (:mod:`.hindsight`), the
least number of replicas is found with which few enough requests are expected to be late
(:mod:`.sizing`), and what speaks against a change holds it back (:mod:`.restraint`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from poolwise.plan.scaling import account, lengths, portfolio
from poolwise.plan.scaling.capability import Capability, capability, rounded_slowness
from poolwise.plan.scaling.decision import Decision, Remark
from poolwise.plan.scaling.felt import felt_seconds
from poolwise.plan.scaling.hindsight import with_bin
from poolwise.plan.scaling.intake import Intake, intake
from poolwise.plan.scaling.lessons import learned
from poolwise.plan.scaling.memory import Memory
from poolwise.plan.scaling.outlook import LEAST_RATE, Outlook
from poolwise.plan.scaling.portfolio import PoolOffer
from poolwise.plan.scaling.prospect import prospect
from poolwise.plan.scaling.restraint import Held, hold_seconds, restrained
from poolwise.plan.scaling.seen import Phase, Seen
from poolwise.plan.scaling.service import Pool, Service
from poolwise.plan.scaling.sizing import need, ratios, whole
from poolwise.plan.wording import three_digits

IDLE_STARTS, LEAST_IDLE_SECONDS, MOST_IDLE_SECONDS = 5.0, 300.0, 1800.0
"""Without any request before the last replica leaves, where something holds the next one: so many
times what a start takes, which is what the next request waits. Whoever comes at the worst of all
moments then waits for a sixth of the time at most (up to starts of six minutes), and who has been
away for five starts has rarely just left for a moment. Five to ten minutes are what others take
(KEDA, WVA)."""
UNLIMITED = 10**9


@dataclass(frozen=True)
class _Situation:
    """One look with what follows from it."""

    service: Service
    seen: Seen
    taken: Intake
    able: Mapping[str, Capability]
    offers: tuple[PoolOffer, ...]

    @property
    def first(self) -> Capability:
        """Of the pool that demand is counted in."""
        return self.able[self.service.first.name]

    @property
    def held(self) -> int:
        """Replicas that are there or start."""
        return sum(each.held for each in self.offers)


@dataclass(frozen=True, slots=True)
class _Choice:
    """From a wish to what is asked for."""

    wanted: float
    """Full replicas of the first pool."""
    counts: Mapping[str, int]
    """By pool, inside all bounds."""
    paced: Mapping[str, int]
    """Of these, what may start now."""


def decide(service: Service, memory: Memory, seen: Seen) -> Decision:
    """The least number of replicas whose predicted tails meet all targets when a start would end.

    Deterministic: equal arguments give equal decisions. ``memory`` is that of the decision before,
    or ``Memory()``. The number never falls while metrics are missing or broken.
    """
    able = _able(service, memory)
    serves = {pool: each.requests_per_second for pool, each in able.items()}
    taken = intake(memory, seen, serves)
    memory = learned(service, memory, seen, taken, able)
    memory = _with_mix(service.first, memory)
    able = _able(service, memory)
    situation = _Situation(service, seen, taken, able, _offers(service, seen, able))
    ahead = prospect(service, memory, seen, taken, able)
    if taken.seconds > 0.0:
        ready = portfolio.worth(_counts(seen, Phase.READY), situation.offers)
        memory = with_bin(memory, seen.now_seconds, taken, ahead, situation.first, ready)
    return _decided(situation, memory, ahead)


def idle_seconds(start_seconds: float) -> float:
    """Without any request, before the last replica leaves."""
    return min(max(IDLE_STARTS * start_seconds, LEAST_IDLE_SECONDS), MOST_IDLE_SECONDS)


def _able(service: Service, memory: Memory) -> dict[str, Capability]:
    """Of each pool, at the present mix, slowness and balance."""
    return {
        pool.name: capability(
            pool.predictor,
            memory.mix_of(service),
            service.targets,
            rounded_slowness(memory.log_slowness.get(pool.name, 0.0)),
            memory.balance.routed,
        )
        for pool in service.pools
    }


def _with_mix(pool: Pool, memory: Memory) -> Memory:
    """A new one only where it differs: working out capabilities takes long."""
    now = lengths.mix(pool.predictor.prior_mix, memory)
    return memory if memory.mix and memory.mix.is_near(now) else replace(memory, mix=now)


def _offers(service: Service, seen: Seen, able: Mapping[str, Capability]) -> tuple[PoolOffer, ...]:
    first = max(able[service.first.name].requests_per_second, LEAST_RATE)
    there = _counts(seen, Phase.READY, Phase.STARTING)
    return tuple(
        PoolOffer(
            pool.name,
            able[pool.name].requests_per_second / first if index else 1.0,
            pool.cost_per_replica_hour,
            there.get(pool.name, 0),
            UNLIMITED if pool.most_replicas is None else pool.most_replicas,
            service.is_even,
        )
        for index, pool in enumerate(service.pools)
    )


def _counts(seen: Seen, *phases: Phase) -> dict[str, int]:
    counts: dict[str, int] = {}
    for each in seen.replicas:
        if each.phase in phases:
            counts[each.pool] = counts.get(each.pool, 0) + 1
    return counts


def _decided(situation: _Situation, memory: Memory, ahead: Outlook) -> Decision:
    service, offers = situation.service, situation.offers
    there = portfolio.worth(portfolio.held(offers), offers)
    needed = need(service, memory, ahead, ratios(service, memory, situation.first, ahead))
    wanted = needed.of(there) if memory.has_seen_enough else there
    least = _least(situation, memory)
    wanted = _whole(max(wanted, _for_held(situation)), least, offers) if least else 0.0
    if not _may_shrink(situation, memory):
        wanted = max(wanted, there)
    hold = hold_seconds(service.start_seconds, felt_seconds(situation.first)) if least else 0.0
    result = restrained(memory, situation.seen.now_seconds, there, wanted, hold)
    if not result.why:
        result = replace(result, why=_at_zero(situation, least))
    counts = _counts_for(situation, result.replicas, there, least)
    choice = _Choice(wanted, counts, _paced(situation, counts))
    return _told(situation, result, ahead, needed.borne, choice)


def _whole(wanted: float, least: int, offers: tuple[PoolOffer, ...]) -> float:
    """Of one pool there are only whole replicas; several are rounded when they are mixed."""
    return float(max(whole(wanted), least)) if len(offers) == 1 else wanted


def _least(situation: _Situation, memory: Memory) -> int:
    """0 only where something holds requests and none has come for a while."""
    service, seen = situation.service, situation.seen
    idle = memory.idle_since_seconds
    enough = idle_seconds(service.start_seconds)
    is_idle = idle is not None and seen.now_seconds - idle >= enough
    is_at_zero = all(each.phase is Phase.DRAINING for each in seen.replicas)
    if service.can_scale_to_zero and not seen.held_requests and (is_idle or is_at_zero):
        return 0
    return max(service.least_replicas, 1)


def _for_held(situation: _Situation) -> float:
    """Full replicas that take all requests which are held into their batches, while none serves
    any: what they will turn out to ask for, only its looks can tell."""
    if situation.taken.ready or not situation.seen.held_requests:
        return 0.0
    return situation.seen.held_requests / max(situation.first.in_flight, 1.0)


def _at_zero(situation: _Situation, least: int) -> str:
    """What a number at zero, or from there, follows from: no rate of arrivals."""
    held = situation.seen.held_requests
    if not least:
        return "nothing comes, and a gateway holds what may"
    if held and not situation.taken.ready:
        return f"a gateway holds {held:g} requests"
    return ""


def _may_shrink(situation: _Situation, memory: Memory) -> bool:
    """Not while metrics are missing or broken, while nobody serves, or right at the beginning."""
    taken = situation.taken
    is_young = memory.is_young(situation.seen.now_seconds)
    return taken.may_shrink and taken.ready > 0 and not is_young


def _counts_for(situation: _Situation, wanted: float, there: float, least: int) -> dict[str, int]:
    """By pool, inside all bounds."""
    service, offers = situation.service, situation.offers
    most = max(service.most_replicas, least)
    counts = portfolio.held(offers)
    if wanted > there or situation.held < least:
        counts = portfolio.grown(offers, max(wanted, 0.0), most, service.most_cost_per_hour)
    elif wanted < there:
        counts = portfolio.shrunk(offers, wanted, least)
    # What a user allows no longer goes at once, unless metrics are missing.
    while sum(counts.values()) > most and situation.taken.may_shrink:
        counts = _without_dearest(counts, offers)
    return portfolio.filled(counts, offers, least)


def _without_dearest(counts: Mapping[str, int], offers: tuple[PoolOffer, ...]) -> dict[str, int]:
    dearest = max((each for each in offers if counts[each.pool]), key=lambda each: each.price)
    return {**counts, dearest.pool: counts[dearest.pool] - 1}


def _paced(situation: _Situation, counts: Mapping[str, int]) -> dict[str, int]:
    """Without starts that would only slow the loading of those that start already."""
    starting = _counts(situation.seen, Phase.STARTING)
    paced = dict(counts)
    for pool, offer in zip(situation.service.pools, situation.offers, strict=True):
        if pool.loading is not None and counts[pool.name] > offer.held:
            free = max(int(pool.loading.most_at_once) - starting.get(pool.name, 0), 0)
            paced[pool.name] = min(counts[pool.name], offer.held + free)
    return paced


def _told(
    situation: _Situation,
    result: Held,
    ahead: Outlook,
    borne: float,
    choice: _Choice,
) -> Decision:
    service, memory, able, offers = (
        situation.service, result.memory, situation.first, situation.offers,
    )  # fmt: skip
    replicas = sum(choice.paced.values())
    fullest = portfolio.hardest(choice.paced, offers) or offers[0]
    remarks = dict(account.remarks(service, memory, situation.taken, able))
    remarks |= _limits(situation, choice)
    return Decision(
        replicas=replicas,
        memory=memory,
        reason=account.sentence(able, ahead, borne, situation.held, replicas, result.why),
        by_pool=choice.paced,
        weights=portfolio.weights(_counts(situation.seen, Phase.READY), offers),
        limiting=able.limiting,
        forecast=account.forecast(ahead, situation.seen.now_seconds),
        tails=account.tails(
            service, memory, situation.able[fullest.pool], ahead, replicas, fullest.worth
        ),
        capacity_requests_per_second=able.requests_per_second * borne,
        cost_per_hour=portfolio.cost_per_hour(choice.paced, offers),
        token_ratio=account.token_ratio(service, memory, situation.seen.now_seconds),
        remarks=remarks,
    )


def _is_at_cost_limit(situation: _Situation, counts: Mapping[str, int]) -> bool:
    """Whether there is room for one more somewhere, and no money for any."""
    offers, limit = situation.offers, situation.service.most_cost_per_hour
    has_room = any(counts[each.pool] < each.most for each in offers)
    return has_room and not any(portfolio.affordable(counts, offers, limit).values())


def _limits(situation: _Situation, choice: _Choice) -> dict[Remark, str]:
    """What kept a wish from coming true."""
    service, offers, remarks = situation.service, situation.offers, {}
    counts, chosen = choice.counts, sum(choice.counts.values())
    if portfolio.worth(counts, offers) < choice.wanted - portfolio.SLACK:
        needed = f"{choice.wanted:.3g} full replicas are needed"
        if chosen >= service.most_replicas:
            remarks[Remark.AT_MAXIMUM] = f"{needed}, maxReplicas is {service.most_replicas}"
        elif _is_at_cost_limit(situation, counts):
            limit = three_digits(service.most_cost_per_hour)
            remarks[Remark.AT_COST_LIMIT] = f"{needed}, an hour may cost {limit}"
        elif service.is_even or all(counts[each.pool] >= each.most for each in offers):
            remarks[Remark.AT_CAPACITY] = f"{needed}, and there is room for {chosen}"
    more = chosen - sum(choice.paced.values())
    if more > 0:
        remarks[Remark.STARTS_PACED] = f"{more} more start when others have loaded their weights"
    return remarks
