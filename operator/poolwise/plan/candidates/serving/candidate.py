"""One pool as a candidate for a service: its best replica and how many, or what is against it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from operator import itemgetter

from poolwise.model.correction import Phase
from poolwise.model.prediction import NINE_IN_TEN, Bottleneck, ServingPrediction
from poolwise.model.ranges import capacity_range, limiting_phase, own_spread
from poolwise.model.work import ServingLayout, Target
from poolwise.plan.candidates.exclusions import (
    Exclusion,
    excluded,
    exclusion,
    quantization_remark,
    too_dear,
)
from poolwise.plan.candidates.reasons import Verdict
from poolwise.plan.candidates.serving.answers import ServingAnswers, serving_answers
from poolwise.plan.candidates.serving.groups import gang_of_replicas, wish_of_replicas
from poolwise.plan.candidates.serving.layouts import NoReplicaShape, ReplicaShape
from poolwise.plan.candidates.serving.offers import ALIKE, ServingOffer, preferred
from poolwise.plan.candidates.serving.replicas import (
    assumed_load,
    is_load_assumed,
    replicas_needed,
    replicas_paid,
    replicas_weighed,
)
from poolwise.plan.candidates.situation import Situation
from poolwise.plan.candidates.smallest import memory_clause
from poolwise.plan.decision import Candidate
from poolwise.plan.pool import Pool
from poolwise.plan.requests.request import Goal, ServingRequest
from poolwise.plan.wording import duration, plural, three_digits

HOUR_SECONDS = 3600.0
NEAR = 0.8
"""Of a target, from where a lone request's latency is told beside the replicas that it asks for."""


def serving_candidate(request: ServingRequest, pool: Pool, situation: Situation) -> Candidate:
    """The pool at its best replica, or the first reason against it."""
    against = exclusion(request, pool, situation.settings)
    if against:
        return excluded(pool, against)
    answers = serving_answers(request, pool, situation)
    found = _Assessment(request, pool, situation, answers).candidate()
    remark = quantization_remark(request.fixed.quantization, answers.search.machine.device)
    return replace(found, reason="; ".join(filter(None, (found.reason, remark))))


@dataclass(frozen=True, slots=True)
class _Assessment:
    request: ServingRequest
    pool: Pool
    situation: Situation
    answers: ServingAnswers

    def candidate(self) -> Candidate:
        found = self.answers.layouts()
        if isinstance(found, NoReplicaShape):
            return self._no_shape(found)
        best = self._best_of(found)
        if best:
            return self._judged(best)
        return self._too_weak(found) or self._target_missed(found)

    def _best_of(self, layouts: list[ServingLayout]) -> ServingOffer | None:
        """The best of all sizes, each at its best chunk of prompts.

        No size is inferred from another: cache grows faster than devices, replicas are whole, and
        so the cost of a size has no single valley. One that cannot come near the cheapest even
        with the fewest replicas is not tuned.
        """
        offers: list[ServingOffer] = []
        fewest = replicas_needed(self.request, math.inf)
        least_held = [(self._price_share(layout) * fewest, layout) for layout in layouts]
        for least, layout in sorted(least_held, key=itemgetter(0)):
            if self._is_beyond(least, offers):
                continue
            shape = self.answers.tuned(layout)
            if shape.serves and self._bears(shape):
                offers.append(self._offer(shape))
        return preferred(offers, self._objective)

    def _bears(self, shape: ReplicaShape) -> bool:
        least = self.request.least_requests_per_second
        return self.answers.planned_requests_per_second(shape) >= least

    def _too_weak(self, layouts: list[ServingLayout]) -> Candidate | None:
        """What the largest replica bears, where each must bear more; None: none has to."""
        least = self.request.least_requests_per_second
        shapes = [self.answers.tuned(layout) for layout in layouts] if least else []
        most = max((self.answers.planned_requests_per_second(each) for each in shapes), default=0.0)
        if not most:
            return None
        told = f"a replica bears {three_digits(most)} requests/s, and each gets"
        told = f"{told} {three_digits(least)} where several pools share the load"
        weak = Exclusion(Verdict.TARGET_UNREACHABLE, told, least / most)
        return excluded(self.pool, weak)

    def _is_beyond(self, least_held: float, offers: list[ServingOffer]) -> bool:
        """Whether an offer with room costs surely less than a size that holds so much can."""
        if self.request.goal is not Goal.COST:
            return False
        return any(offer.has_room and offer.held * ALIKE < least_held for offer in offers)

    def _judged(self, offer: ServingOffer) -> Candidate:
        where = offer.gang, self.pool, offer.wish
        if offer.broken:
            return self._described(offer, self._explained(offer, offer.broken))
        if offer.has_room:
            broken = self.situation.breaks(*where)
            remark = "; ".join(filter(None, (self._remark(offer), broken.words())))
            return self._described(offer, Exclusion(Verdict.LOST, remark), broken.accelerators)
        never = self.situation.why_never(*where)
        if never:
            return self._described(offer, never)
        told = self.situation.why_no_room(*where)
        without_room = self._described(offer, Exclusion(Verdict.INSUFFICIENT_CAPACITY, told))
        return replace(without_room, waits=True)

    def _offer(self, shape: ReplicaShape) -> ServingOffer:
        planned = self.answers.planned_requests_per_second(shape)
        rate = self.request.work.requests_per_second or 0.0
        share = self._price_share(shape.layout)
        price = self.pool.price
        replicas = replicas_needed(self.request, planned)
        if self.request.given_replicas is not None:  # of what others ask, as many as are paid for
            replicas = max(self._paid(replicas, share), min(replicas, 1))
        cost = price.per_node_hour * share * replicas if price else None
        broken = self._limit_broken(replicas, planned, cost)
        asked = (replicas, shape.layout, self.request, self.pool)
        gang, wish = gang_of_replicas(*asked), wish_of_replicas(*asked)
        weighed = replicas_weighed(self.request, planned, shape.in_flight)
        is_short = weighed > replicas and not is_load_assumed(self.request)
        return ServingOffer(
            shape=shape,
            replicas=replicas,
            weighed=weighed,
            load_requests_per_second=min(rate / max(replicas, 1), planned),
            price_share=share,
            cost_per_hour=cost,
            gang=gang,
            wish=wish,
            broken=broken,
            has_room=broken is None and self.situation.has_room(gang, self.pool, wish),
            too_few=self._too_few(shape.layout, weighed) if is_short else "",
        )

    def _paid(self, replicas: int, price_share: float) -> int:
        price, limit = self.pool.price, self.request.max_cost_per_hour
        return replicas_paid(replicas, price.per_node_hour * price_share if price else 0.0, limit)

    def _too_few(self, layout: ServingLayout, weighed: int) -> str:
        """What is against the replicas that the targets need, where somebody set fewer: a larger
        number cannot come to help there."""
        if weighed > self.request.most_replicas:
            return f"scaling.maxReplicas is {self.request.most_replicas}"
        paid = self._paid(weighed, self._price_share(layout))
        if weighed > paid:
            return f"objective.maxCostPerHour pays {paid}"
        asked = (weighed, layout, self.request, self.pool)
        gang, wish = gang_of_replicas(*asked), wish_of_replicas(*asked)
        has_room = self.situation.has_room(gang, self.pool, wish)
        return "" if has_room else self.situation.why_no_room(gang, self.pool, wish)

    def _price_share(self, layout: ServingLayout) -> float:
        """Of a node: accelerators, or allocatable cores on CPU."""
        if self.pool.is_cpu:
            return layout.cpu_cores / max(node.cores for node in self.pool.usable_nodes)
        return layout.count / max(self.pool.accelerators_per_node, 1)

    def _objective(self, offer: ServingOffer) -> float:
        """What the goal minimises; nodes' worth stand for cost, which a pool may not know."""
        goal = self.request.goal
        if goal is Goal.COST:
            return offer.held
        prediction = self._predicted(offer)
        if goal is Goal.TIME:
            return prediction.e2e_seconds.mid
        return self._watts(offer, prediction, offer.weighed)

    def _predicted(self, offer: ServingOffer) -> ServingPrediction:
        """At the planned load."""
        return self.answers.predicted(offer.shape.layout, offer.load_requests_per_second)

    def _watts(self, offer: ServingOffer, prediction: ServingPrediction, replicas: int) -> float:
        devices = max(offer.shape.layout.count, 1) * replicas
        return prediction.power_watts * devices

    def _limit_broken(self, replicas: int, planned: float, cost: float | None) -> Exclusion | None:
        request, currency = self.request, self.situation.settings.currency
        if request.given_replicas is None and replicas > request.most_replicas:
            rate = request.work.requests_per_second or 0.0
            told = (
                f"needs {plural(replicas, 'replica')} for {three_digits(rate)} requests/s"
                f" at {three_digits(planned)} each,"
                f" scaling.maxReplicas is {request.most_replicas}"
            )
            over = replicas / max(request.most_replicas, 1)
            return Exclusion(Verdict.TOO_MANY_REPLICAS, told, over)
        limit, name = request.max_cost_per_hour, "maxCostPerHour"
        return too_dear(self.pool, cost, limit, name, currency, " per hour")

    def _explained(self, offer: ServingOffer, broken: Exclusion) -> Exclusion:
        """With the target that leaves next to no room for load, where that is why so many are
        needed."""
        if broken.reason_code != Verdict.TOO_MANY_REPLICAS or not self.request.work.targets:
            return broken
        of_target, told = self._worst_miss(offer.shape.layout)
        if of_target <= NEAR:
            return broken
        return replace(broken, reason=f"{broken.reason}; {told}, which leaves little for load")

    def _remark(self, offer: ServingOffer) -> str:
        """What a user must know who set fewer replicas than the targets need."""
        capacity = self.answers.planned_requests_per_second(offer.shape)
        rate = self.request.work.requests_per_second
        if self.request.given_replicas is None or rate is None or rate <= capacity * offer.replicas:
            return ""
        wanted = math.ceil(rate / capacity) + self.request.redundancy
        return (
            f"the targets need {plural(wanted, 'replica')} at {three_digits(rate)} requests/s,"
            f" there are to be {offer.replicas}"
        )

    def _described(
        self, offer: ServingOffer, told: Exclusion, broken_accelerators: int = 0
    ) -> Candidate:
        feasible, where = offer.has_room, (offer.gang, self.pool, offer.wish)
        rate = offer.load_requests_per_second
        layout, prediction = self.answers.bounded(offer.shape, rate)
        bottleneck = self.answers.bottleneck(offer.shape.layout)
        joules = self._watts(offer, prediction, offer.replicas) * HOUR_SECONDS
        price = self.pool.price
        weighed_cost = price.per_node_hour * offer.held if price else None
        values = {
            Goal.COST: weighed_cost,
            Goal.TIME: prediction.e2e_seconds.mid,
            Goal.ENERGY: self._watts(offer, prediction, offer.weighed) * HOUR_SECONDS,
        }
        return Candidate(
            pool=self.pool.name,
            accelerator=self.pool.accelerator,
            feasible=feasible,
            reason=told.reason,
            reason_code=told.reason_code,
            shortfall=told.shortfall,
            count=layout.count,
            replicas=offer.replicas,
            weighed_replicas=offer.weighed,
            assumed_load=assumed_load(self.request),
            layout=layout,
            prediction=prediction,
            bottleneck=bottleneck,
            cost_per_hour=offer.cost_per_hour,
            weighed_cost_per_hour=weighed_cost,
            energy_joules=joules,
            objective_value=values[self.request.goal],
            own_spread=self._own_spread(offer, prediction, bottleneck),
            wish=offer.wish,
            startup_seconds=self.situation.startup_seconds(*where) if feasible else 0.0,
            broken_accelerators=broken_accelerators,
            capacity_type=self.pool.capacity_type,
            too_few=offer.too_few,
        )

    def _own_spread(
        self, offer: ServingOffer, prediction: ServingPrediction, bottleneck: Bottleneck
    ) -> float:
        """Of the objective: of the latency, or of the replicas that the capacity asks for, which
        are whole and so often the same at both its ends."""
        if self.request.goal is Goal.TIME:
            phase = Phase.TOKEN if prediction.generates else Phase.FIRST_TOKEN
            return own_spread(prediction.e2e_seconds, phase, prediction.provenance)
        capacity = capacity_range(prediction, bottleneck)
        own = own_spread(capacity, limiting_phase(prediction), prediction.provenance)
        factor = math.exp(NINE_IN_TEN * own)
        planned = self.answers.planned_requests_per_second(offer.shape)
        in_flight = offer.shape.in_flight
        most, least = (
            replicas_weighed(self.request, planned * times, in_flight * times)
            for times in (1.0 / factor, factor)
        )
        return math.log(max(most, 1) / max(least, 1)) / (2 * NINE_IN_TEN)

    def _no_shape(self, found: NoReplicaShape) -> Candidate:
        told, smallest = found.problem, found.smallest
        if smallest is not None:
            told = memory_clause(smallest.memory, self.pool)
        against = excluded(self.pool, Exclusion(found.verdict, told + self.answers.remark))
        return against if smallest is None else smallest.shown(against)

    def _target_missed(self, layouts: list[ServingLayout]) -> Candidate:
        """What a lone request would take at the layout that comes nearest to its targets."""
        tuned = (self.answers.tuned(layout).layout for layout in layouts)
        misses = ((*self._worst_miss(layout), layout) for layout in tuned)
        of_target, told, layout = min(misses, key=itemgetter(0))
        if of_target <= 1.0:  # so few may be late that one more prompt makes too many of them so
            told += ", and it is missed as soon as a second request comes"
        missed = Exclusion(Verdict.TARGET_UNREACHABLE, told, of_target)
        return replace(
            excluded(self.pool, missed),
            count=layout.count,
            layout=layout,
            prediction=self.answers.predicted(layout, 0.0),
        )

    def _worst_miss(self, layout: ServingLayout) -> tuple[float, str]:
        misses = [self._miss(layout, target) for target in self.request.work.targets]
        return max(misses, default=(math.inf, "serves no request"))

    def _miss(self, layout: ServingLayout, target: Target) -> tuple[float, str]:
        reached = self.answers.alone_seconds(layout, target)
        told = f"{target} at one request is {duration(reached)}, target {duration(target.seconds)}"
        return reached / target.seconds, told
