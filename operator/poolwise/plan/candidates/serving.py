"""One pool as a candidate for a service: its best replica and how many, or what is against it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from poolwise.model.prediction import ServingPrediction
from poolwise.model.work import Metric, ServingLayout, ServingWork, Target
from poolwise.plan.candidates.exclusions import Exclusion, excluded, exclusion
from poolwise.plan.candidates.reasons import Verdict
from poolwise.plan.candidates.serving_answers import ServingAnswers, serving_answers
from poolwise.plan.candidates.serving_layouts import NoReplicaShape, ReplicaShape, bounded
from poolwise.plan.candidates.situation import Situation
from poolwise.plan.candidates.training import memory_clause
from poolwise.plan.capacity import Gang, packs
from poolwise.plan.decision import Candidate
from poolwise.plan.pool import Pool
from poolwise.plan.requests.request import Goal, ServingRequest
from poolwise.plan.wording import duration, money, plural, three_digits

HOUR_SECONDS = 3600.0
MOST_SATURATION = 0.9
"""Of the saturated rate: a single-server queue then waits 9 services (M/M/1, rho / (1 - rho))."""


@dataclass(frozen=True, slots=True)
class Offer:
    """One replica shape on one pool, as often as the traffic needs it."""

    shape: ReplicaShape
    replicas: int
    load_requests_per_second: float
    """Of each replica at the peak; at most what it can serve, where somebody set too few."""
    price_share: float
    """Nodes' worth of what one replica holds."""
    cost_per_hour: float | None
    """Of all replicas."""


def serving_candidate(request: ServingRequest, pool: Pool, situation: Situation) -> Candidate:
    """The pool at its best replica, or the first reason against it."""
    against = exclusion(request, pool, situation.settings)
    if against:
        return excluded(pool, against)
    answers = serving_answers(request, pool, situation.calibration, situation.memo)
    return _Assessment(request, pool, situation, answers).candidate()


def gang_of_replicas(replicas: int, layout: ServingLayout, request: ServingRequest) -> Gang:
    """Pods of a service: one per replica; on CPU each asks for its cores and memory."""
    return Gang(
        pods=replicas,
        accelerators=layout.count,
        cores=layout.cpu_cores or request.pod.cores,
        memory_bytes=layout.cpu_memory_bytes or request.pod.memory_bytes,
        packs=packs(layout.count, request.redundancy),
    )


def planned_capacity(shape: ReplicaShape, work: ServingWork) -> float:
    """Requests per second that a replica is planned for.

    Without a target that feels the queue, the capacity is saturation, where waiting has no end.
    """
    feels_queue = any(target.metric is not Metric.ITL for target in work.targets)
    return shape.capacity_requests_per_second * (1.0 if feels_queue else MOST_SATURATION)


def replicas_needed(request: ServingRequest, planned_requests_per_second: float) -> int:
    """Enough for the peak with ``redundancy`` to spare; the fewest while no traffic is known."""
    if request.given_replicas is not None:
        return request.given_replicas
    rate = request.work.requests_per_second
    least = max(request.least_replicas, 1)
    if rate is None:
        return least
    return max(least, math.ceil(rate / planned_requests_per_second) + request.redundancy)


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
        if best is None:
            return self._target_missed(found)
        return self._judged(self._offer(self.answers.tuned(best.shape.layout)))

    def _best_of(self, layouts: list[ServingLayout]) -> Offer | None:
        """The best size. What a larger replica gains over a smaller one only falls with its size,
        so that the search for the cheapest ends where it starts to cost more."""
        best: Offer | None = None
        for layout in layouts:
            shape = self.answers.shape(layout)
            if not shape.serves:
                shape = self.answers.tuned(layout)
            if not shape.serves:
                continue
            offer = self._offer(shape)
            if best is None or self._preference(offer) < self._preference(best):
                best = offer
            elif self.request.goal is Goal.COST and self._nodes(best) is not None:
                break
        return best

    def _judged(self, offer: Offer) -> Candidate:
        broken = self._limit_broken(offer)
        if broken:
            return self._described(offer, False, broken)
        if self._nodes(offer) is not None:
            return self._described(offer, True, Exclusion(Verdict.LOST, self._remark(offer)))
        gang, most = self._gang(offer), self._most_replicas(offer)
        told = self.situation.why_no_room(gang, self.pool, self.request.where)
        if most < gang.pods:
            told = f"has room for {plural(most, 'replica')} like this at most, needs {gang.pods}"
        without_room = self._described(offer, False, Exclusion(Verdict.INSUFFICIENT_CAPACITY, told))
        return replace(without_room, waits=most >= gang.pods)

    def _gang(self, offer: Offer) -> Gang:
        return gang_of_replicas(offer.replicas, offer.shape.layout, self.request)

    def _nodes(self, offer: Offer) -> dict[str, int] | None:
        """Where all replicas have room now; None also where a limit of the user is broken."""
        if self._limit_broken(offer) is not None:
            return None
        return self.situation.nodes_for(self._gang(offer), self.pool, self.request.where)

    def _most_replicas(self, offer: Offer) -> int:
        """How many the pool's nodes would hold if all were usable and empty."""
        gang = self._gang(offer)
        if gang.accelerators:
            return sum(node.accelerators // gang.accelerators for node in self.pool.nodes)
        return sum(int(node.cores // gang.cores) for node in self.pool.nodes)

    def _offer(self, shape: ReplicaShape) -> Offer:
        planned = planned_capacity(shape, self.request.work)
        replicas = replicas_needed(self.request, planned)
        rate = self.request.work.requests_per_second or 0.0
        share = self._price_share(shape.layout)
        price = self.pool.price
        return Offer(
            shape=shape,
            replicas=replicas,
            load_requests_per_second=min(rate / max(replicas, 1), planned),
            price_share=share,
            cost_per_hour=price.per_node_hour * share * replicas if price else None,
        )

    def _price_share(self, layout: ServingLayout) -> float:
        """Of a node: accelerators, or allocatable cores on CPU."""
        if self.pool.is_cpu:
            return layout.cpu_cores / max(node.cores for node in self.pool.usable_nodes)
        return layout.count / max(self.pool.accelerators_per_node, 1)

    def _preference(self, offer: Offer) -> tuple[float, float, float]:
        """Shapes with room inside the limits first, then by the objective, then the smaller."""
        goal, held = self.request.goal, offer.price_share * offer.replicas
        breaks = float(self._nodes(offer) is None)
        if goal is Goal.COST:
            return breaks, held, offer.price_share
        prediction = self._predicted(offer)
        if goal is Goal.TIME:
            return breaks, prediction.e2e_seconds.mid, held
        return breaks, self._watts(offer, prediction), held

    def _predicted(self, offer: Offer) -> ServingPrediction:
        """At the planned load."""
        return self.answers.predicted(offer.shape.layout, offer.load_requests_per_second)

    def _watts(self, offer: Offer, prediction: ServingPrediction) -> float:
        devices = max(offer.shape.layout.count, 1) * offer.replicas
        return prediction.power_watts * devices

    def _limit_broken(self, offer: Offer) -> Exclusion | None:
        request, currency = self.request, self.situation.settings.currency
        if request.given_replicas is None and offer.replicas > request.most_replicas:
            rate = request.work.requests_per_second or 0.0
            each = planned_capacity(offer.shape, request.work)
            told = (
                f"needs {plural(offer.replicas, 'replica')} for {three_digits(rate)} requests/s"
                f" at {three_digits(each)} each,"
                f" scaling.maxReplicas is {request.most_replicas}"
            )
            return Exclusion(Verdict.TOO_MANY_REPLICAS, told)
        cost, limit = offer.cost_per_hour, request.max_cost_per_hour
        if limit is not None and cost is not None and cost > limit:
            told = f"would cost {money(cost, currency)} per hour, maxCostPerHour is "
            return Exclusion(Verdict.TOO_EXPENSIVE, told + money(limit, currency))
        return None

    def _remark(self, offer: Offer) -> str:
        """What a user must know who set fewer replicas than the targets need."""
        capacity = planned_capacity(offer.shape, self.request.work)
        rate = self.request.work.requests_per_second
        if self.request.given_replicas is None or rate is None or rate <= capacity * offer.replicas:
            return ""
        wanted = math.ceil(rate / capacity) + self.request.redundancy
        return (
            f"the targets need {plural(wanted, 'replica')} at {three_digits(rate)} requests/s,"
            f" replicas is {offer.replicas}"
        )

    def _described(self, offer: Offer, feasible: bool, told: Exclusion) -> Candidate:
        prediction = self._predicted(offer)
        layout = bounded(offer.shape, self.request.work.arrival_dispersion)
        joules = self._watts(offer, prediction) * HOUR_SECONDS
        values = {
            Goal.COST: offer.cost_per_hour,
            Goal.TIME: prediction.e2e_seconds.mid,
            Goal.ENERGY: joules,
        }
        return Candidate(
            pool=self.pool.name,
            accelerator=self.pool.accelerator,
            feasible=feasible,
            reason=told.reason,
            reason_code=told.reason_code,
            count=layout.count,
            replicas=offer.replicas,
            layout=layout,
            prediction=prediction,
            bottleneck=self.answers.bottleneck(offer.shape),
            cost_per_hour=offer.cost_per_hour,
            energy_joules=joules,
            objective_value=values[self.request.goal],
        )

    def _no_shape(self, found: NoReplicaShape) -> Candidate:
        told = found.problem
        if found.smallest is not None:
            told = memory_clause(found.smallest, self.pool)
        return excluded(self.pool, Exclusion(found.verdict, told))

    def _target_missed(self, layouts: list[ServingLayout]) -> Candidate:
        """What a lone request would take at the layout that comes nearest to its targets."""
        told = min(map(self._worst_miss, layouts), key=lambda miss: miss[0])
        return excluded(self.pool, Exclusion(Verdict.TARGET_UNREACHABLE, told[1]))

    def _worst_miss(self, layout: ServingLayout) -> tuple[float, str]:
        misses = [self._miss(layout, target) for target in self.request.work.targets]
        return max(misses, default=(math.inf, "serves no request"))

    def _miss(self, layout: ServingLayout, target: Target) -> tuple[float, str]:
        reached = self.answers.alone_seconds(layout, target)
        told = (
            f"{target.metric} p{target.percentile:g} at one request is {duration(reached)},"
            f" target {duration(target.seconds)}"
        )
        return reached / target.seconds, told
