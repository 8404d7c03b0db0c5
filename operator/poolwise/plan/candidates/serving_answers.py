"""What the model answers about one service on one pool, remembered."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeVar

from poolwise.model.bottleneck import bottleneck
from poolwise.model.efficiency import Calibration
from poolwise.model.hardware import Machine
from poolwise.model.prediction import Bottleneck, ServingPrediction
from poolwise.model.serving.memory import footprint
from poolwise.model.serving.prediction import capacity_requests_per_second, predict_serving
from poolwise.model.work import Metric, ServingLayout, ServingWork, Target
from poolwise.plan.candidates.memo import Memo, Page
from poolwise.plan.candidates.serving_layouts import (
    Node,
    NoReplicaShape,
    ReplicaShape,
    ServingSearch,
)
from poolwise.plan.children.engines import ENGINES
from poolwise.plan.pool import Pool
from poolwise.plan.requests.request import ServingRequest

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ServingAnswers:
    """Answers that depend on the service and the machine, and on no rate or free capacity."""

    search: ServingSearch
    page: Page

    def layouts(self) -> list[ServingLayout] | NoReplicaShape:
        """Sizes that start, the smallest first."""
        return self.page.get("layouts", self.search.layouts)

    def shape(self, layout: ServingLayout) -> ReplicaShape:
        """A layout with its capacity."""
        return self.page.get(("shape", layout), lambda: self.search.shape(layout))

    def tuned(self, layout: ServingLayout) -> ReplicaShape:
        """A layout with its best chunk of prompts, and its capacity."""
        return self.page.get(("tuned", layout), lambda: self.search.tuned(layout))

    def predicted(self, layout: ServingLayout, requests_per_second: float) -> ServingPrediction:
        """One replica at a rate."""
        return self.page.get(
            ("predicted", layout, requests_per_second),
            lambda: self._predict(self.search.work, layout, requests_per_second),
        )

    def with_memory_of(
        self, layout: ServingLayout, prediction: ServingPrediction
    ) -> ServingPrediction:
        """The same times and the same cache, but the buffers of a batch as ``layout`` bounds it."""
        search = self.search
        taken = footprint(search.work, layout, search.machine, search.calibration)
        return replace(prediction, memory=taken.with_cache(prediction.memory.kv_cache_bytes))

    def alone_seconds(self, layout: ServingLayout, target: Target) -> float:
        """The metric of a target, at its percentile, for a lone request."""
        work = replace(self.search.work, targets=(target,))
        prediction = self.page.get(
            ("alone", layout, target), lambda: self._predict(work, layout, 0.0)
        )
        of_metric = {
            Metric.TTFT: prediction.ttft_seconds,
            Metric.ITL: prediction.itl_seconds,
            Metric.E2E: prediction.e2e_seconds,
        }
        return of_metric[target.metric].mid

    def bottleneck(self, shape: ReplicaShape) -> Bottleneck:
        """Elasticities of the capacity."""
        return self.page.get(("bottleneck", shape), lambda: self._bottleneck(shape))

    def _predict(
        self, work: ServingWork, layout: ServingLayout, requests_per_second: float
    ) -> ServingPrediction:
        search = self.search
        return predict_serving(
            work, layout, search.machine, search.calibration, requests_per_second
        )

    def _bottleneck(self, shape: ReplicaShape) -> Bottleneck:
        search, layout = self.search, shape.layout

        def capacity(machine: Machine) -> float:
            if _is_alike(machine, search.machine, layout):
                return shape.capacity_requests_per_second
            return capacity_requests_per_second(search.work, layout, machine, search.calibration)

        return bottleneck(capacity, search.machine)


def serving_answers(
    request: ServingRequest, pool: Pool, calibration: Calibration, memo: Memo
) -> ServingAnswers:
    """Answers about a service on a pool that is not excluded."""
    assert pool.machine is not None, "pools without a machine are excluded"
    nodes, engine = pool.usable_nodes, ENGINES.get(request.work.engine)
    search = ServingSearch(
        work=replace(request.work, requests_per_second=None),
        fixed=request.fixed,
        machine=pool.machine,
        node=Node(
            accelerators=1 if pool.is_mig else pool.accelerators_per_node,
            cores=max(node.cores for node in nodes),
            memory_bytes=max(node.memory_bytes for node in nodes),
        ),
        calibration=calibration,
        may_pipeline=engine is None or engine.splits_pipeline,
    )
    subject = (search.work, search.fixed, search.node, search.may_pipeline)
    return ServingAnswers(search, memo.page((*subject, repr(pool.machine), calibration)))


def _is_alike(changed: Machine, machine: Machine, layout: ServingLayout) -> bool:
    """Whether a replica feels no difference: it reads no samples, and alone it talks to nobody."""
    same_links = layout.tensor * layout.pipeline == 1 or (
        changed.interconnect == machine.interconnect
    )
    same_host = changed.host.dispatch_speed == machine.host.dispatch_speed
    return same_links and same_host and changed.device == machine.device
