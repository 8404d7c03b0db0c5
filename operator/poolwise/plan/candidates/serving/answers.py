"""What the model answers about one service on one pool, remembered."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from poolwise.model.bottleneck import BUYABLE, bottleneck
from poolwise.model.corrected import ServingEstimates, asked_targets, corrected_serving
from poolwise.model.efficiency import Calibration
from poolwise.model.hardware import Machine, Resource
from poolwise.model.prediction import Bottleneck, ServingPrediction
from poolwise.model.serving.capacity import (
    NOTHING,
    Capacity,
    highest,
    sustained_requests_per_second,
)
from poolwise.model.serving.memory import footprint
from poolwise.model.serving.prediction import SearchedLayout, predict_serving
from poolwise.model.serving.replica import by_formulas
from poolwise.model.serving.slowness import as_slow
from poolwise.model.work import Metric, ServingLayout, ServingWork, Target
from poolwise.plan.candidates.machines import felt_by_replica
from poolwise.plan.candidates.serving.groups import remark, why_not_over_nodes
from poolwise.plan.candidates.serving.layouts import (
    NoReplicaShape,
    ReplicaShape,
    ServingSearch,
)
from poolwise.plan.candidates.serving.sizes import Node
from poolwise.plan.candidates.situation import Situation
from poolwise.plan.children.engines import ENGINES
from poolwise.plan.memo import Page
from poolwise.plan.pool import Pool
from poolwise.plan.requests.request import FixedReplica, ServingRequest

MOST_SATURATION = 0.9
"""Of the rate at which waiting has no end: a single-server queue then waits 9 services (M/M/1,
rho / (1 - rho))."""


@dataclass(frozen=True, slots=True)
class ServingAnswers:
    """Answers that depend on the service and the machine, and on no free capacity."""

    search: ServingSearch
    """Asked for what the model must reach, so that corrected times reach the targets."""
    page: Page
    """What no rate matters to."""
    rated: Page
    """What is asked at the service's own rate, on replicas as slow as they are measured now."""
    measured: ServingEstimates
    """What this model's tokens took on this pool, beside what the model says."""
    remark: str = ""
    """Where no layout starts: what would make one possible."""

    def layouts(self) -> list[ServingLayout] | NoReplicaShape:
        """Sizes that start, the smallest first."""
        return self.page.get("layouts", self.search.layouts)

    def shape(self, layout: ServingLayout) -> ReplicaShape:
        """A layout with its capacity."""
        return self._corrected(self.page.get(("shape", layout), lambda: self.search.shape(layout)))

    def tuned(self, layout: ServingLayout) -> ReplicaShape:
        """A layout with its best chunk of prompts, and its capacity."""
        found = self.page.get(("tuned", layout), lambda: self.search.tuned(layout))
        self.page.get(("shape", found.layout), lambda: found)
        return self._corrected(found)

    def planned_requests_per_second(self, shape: ReplicaShape) -> float:
        """That a replica is planned for: all that it serves inside its targets, or where none of
        them feels the queue, most of what leaves the queue an end."""
        if any(target.metric.is_from_arrival for target in self.search.work.targets):
            return shape.capacity_requests_per_second
        found = self.page.get(("sustained", shape.layout), lambda: self._sustained(shape.layout))
        return MOST_SATURATION * found / self._slowdown

    def predicted(self, layout: ServingLayout, requests_per_second: float) -> ServingPrediction:
        """One replica at a rate."""
        asked = requests_per_second * self._slowdown
        return corrected_serving(self._uncorrected(layout, asked), self.measured)

    def bounded(
        self, shape: ReplicaShape, requests_per_second: float
    ) -> tuple[ServingLayout, ServingPrediction]:
        """The layout with no more sequences than its targets let it work on, at a rate: the same
        times and the same cache, but buffers of that batch."""
        asked = requests_per_second * self._slowdown
        layout, found = self.rated.get(
            ("bounded", shape.layout, shape.in_flight, asked), lambda: self._bounded(shape, asked)
        )
        return layout, corrected_serving(found, self.measured)

    def alone_seconds(self, layout: ServingLayout, target: Target) -> float:
        """The metric of a target, at its percentile, for a lone request."""
        work = replace(self.search.work, targets=(target,))
        found = self.page.get(
            ("alone", layout, target), lambda: self._predict(work, layout, 0.0, NOTHING)
        )
        prediction = corrected_serving(found, self.measured)
        of_metric = {
            Metric.TTFT: prediction.ttft_seconds,
            Metric.ITL: prediction.itl_seconds,
            Metric.TPOT: prediction.tpot_seconds,
            Metric.E2E: prediction.e2e_seconds,
        }
        told = of_metric[target.metric]
        assert told is not None, "what is asked for is predicted"
        return told.mid

    def bottleneck(self, layout: ServingLayout) -> Bottleneck:
        """Elasticities of the capacity."""
        return self.page.get(("bottleneck", layout), lambda: self._bottleneck(layout))

    @property
    def _slowdown(self) -> float:
        return self.measured.slowdown(self.search.work.model.generates)

    def _corrected(self, shape: ReplicaShape) -> ReplicaShape:
        if self._slowdown == 1.0:
            return shape
        rate = shape.capacity_requests_per_second / self._slowdown
        return replace(shape, capacity=replace(shape.capacity, requests_per_second=rate))

    def _capacity(self, layout: ServingLayout) -> Capacity:
        """As the model has it, without any correction."""
        return self.page.get(("shape", layout), lambda: self.search.shape(layout)).capacity

    def _sustained(self, layout: ServingLayout) -> float:
        replica = self.search.replica(layout)
        return sustained_requests_per_second(replica, self._capacity(layout).load)

    def _uncorrected(self, layout: ServingLayout, requests_per_second: float) -> ServingPrediction:
        return self.rated.get(
            ("predicted", layout, requests_per_second),
            lambda: self._predict(
                self.search.work, layout, requests_per_second, self._capacity(layout)
            ),
        )

    def _bounded(
        self, shape: ReplicaShape, requests_per_second: float
    ) -> tuple[ServingLayout, ServingPrediction]:
        search, found = self.search, self._uncorrected(shape.layout, requests_per_second)
        layout = search.bounded(shape)
        taken = footprint(search.work, layout, search.machine, search.calibration)
        return layout, replace(found, memory=taken.under_load(found.memory.kv_cache_bytes))

    def _predict(
        self, work: ServingWork, layout: ServingLayout, requests_per_second: float, most: Capacity
    ) -> ServingPrediction:
        search, known = self.search, SearchedLayout(self.search.replica(layout), most)
        return predict_serving(
            work, layout, search.machine, search.calibration, requests_per_second, known
        )

    def _bottleneck(self, layout: ServingLayout) -> Bottleneck:
        """Of the formulas alone: what measured runs add is kept as it is. It follows from how a
        step is made up, so that by a tenth more bandwidth a replica could seem to lose."""
        search, base = self.search, self._capacity(layout)

        def rate(machine: Machine) -> float:
            if machine is search.machine:
                return base.requests_per_second
            other = by_formulas(search.work, layout, machine, search.calibration)
            grown = as_slow(other, search.replica(layout))
            return highest(grown, search.work.targets, near=base.load).requests_per_second

        return bottleneck(rate, search.machine, list(_felt(layout)))


def serving_answers(request: ServingRequest, pool: Pool, situation: Situation) -> ServingAnswers:
    """Answers about a service on a pool that is not excluded: about replicas within a node, and
    only where none starts there about replicas that span nodes."""
    within = _answers(request, pool, situation, over_nodes=False)
    if isinstance(within.layouts(), list) or pool.is_cpu or pool.is_mig:
        return within
    beyond = _answers(request, pool, situation, over_nodes=True)
    found = beyond.layouts()
    if isinstance(found, NoReplicaShape):
        return within
    problem = why_not_over_nodes(request, situation.apis)
    if problem is None:
        return beyond
    fewest = min(pool.nodes_of(layout.count) for layout in found)
    return replace(within, remark=remark(fewest, pool, problem))


def _answers(
    request: ServingRequest, pool: Pool, situation: Situation, over_nodes: bool
) -> ServingAnswers:
    assert pool.machine is not None, "pools without a machine are excluded"
    measured = situation.corrections.serving(request.work.model, pool.name, situation.now)
    machine = felt_by_replica(pool.machine, keeps_to_node=not over_nodes)
    subject = _asked(request.work, measured), request.fixed, machine, _node(pool)
    page = situation.memo.page((*subject, situation.calibration, over_nodes))
    search = page.get("search", lambda: _search(*subject, situation.calibration, over_nodes))
    slowdown = measured.slowdown(request.work.model.generates)
    rated = situation.memo.page((page, request.work.requests_per_second, slowdown))
    return ServingAnswers(search, page, rated, measured)


def _search(
    work: ServingWork,
    fixed: FixedReplica,
    machine: Machine,
    node: Node,
    calibration: Calibration,
    over_nodes: bool,
) -> ServingSearch:
    engine = ENGINES.get(work.engine)
    may_pipeline = engine is None or engine.splits_pipeline
    return ServingSearch(work, fixed, machine, node, calibration, may_pipeline, over_nodes)


@lru_cache(maxsize=1024)
def _asked(work: ServingWork, measured: ServingEstimates) -> ServingWork:
    """What the model is asked, whatever the rate; one value for all pools without measurements."""
    targets = asked_targets(work.targets, measured, work.model.generates)
    return replace(work, requests_per_second=None, targets=targets)


def _node(pool: Pool) -> Node:
    """What of the pool's largest node a replica may take: on accelerators, no cores by itself."""
    accelerators = 1 if pool.is_mig else pool.accelerators_per_node
    if not pool.is_cpu:
        return Node(accelerators, 0.0, 0.0)
    nodes = pool.usable_nodes
    return Node(
        accelerators=accelerators,
        cores=max(node.cores for node in nodes),
        memory_bytes=max(node.memory_bytes for node in nodes),
    )


def _felt(layout: ServingLayout) -> Iterator[Resource]:
    """Resources that a replica may be held back by: it reads no samples, and one device alone
    talks to nobody."""
    for each in BUYABLE:
        is_silent = each is Resource.INTERCONNECT and layout.tensor * layout.pipeline == 1
        if each is not Resource.INPUT and not is_silent:
            yield each
