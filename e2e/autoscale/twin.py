"""The same service in the simulator: its engine, its controller, its circumstances."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from bench.autoscale.engine import Engine, of_layout
from bench.autoscale.ours import POOL, Ours
from bench.autoscale.outcome import Outcome
from bench.autoscale.replay import replay
from bench.autoscale.scene import Scene, Scraping
from e2e.controlplane.client import Client, Object
from e2e.workloads import API
from poolwise.cluster.cache import is_discovered
from poolwise.handlers.decider import decider
from poolwise.model.calibration import shipped
from poolwise.plan.children.metadata import key_of
from poolwise.plan.decision import Kind, Plan, chosen_pool
from poolwise.plan.live.service import Placed
from poolwise.plan.observed import Observed
from poolwise.plan.requests.reading import workload
from poolwise.plan.requests.request import ServingRequest
from poolwise.plan.scaling.service import Service
from poolwise.settings import Settings
from poolwise.tables import load

PHASES = 5
CHILDREN = "app.kubernetes.io/managed-by=poolwise"


class NotPlaced(LookupError):
    """The operator has not placed the service, or a reader of the cluster cannot tell where."""


@dataclass(frozen=True, slots=True)
class Twin:
    """One service as it is placed."""

    placed: Placed
    engine: Engine
    free_accelerators: int | None
    """Of its pool."""

    def service(self, start_seconds: float, interval_seconds: float) -> Service:
        """As the operator's controller sees it."""
        calibration = self.engine.calibration
        predictor = self.placed.predictor(calibration)
        found = self.placed.service(
            predictor, start_seconds, self.free_accelerators, interval_seconds
        )
        return replace(found, pools=tuple(replace(each, name=POOL) for each in found.pools))

    def outcomes(self, scene: Scene, idle_seconds: float) -> Iterator[tuple[float, Outcome]]:
        """When the whole trace begins, and what becomes of it. The operator asks at moments of its
        own, so it begins at several moments between two of them. Who spreads requests by chance
        does so differently each time.

        :param idle_seconds: for which the first replica was looked at before the trace began.
        """
        interval_seconds = scene.scraping.interval_seconds
        for phase in range(PHASES):
            policy = Ours(self.service(scene.start_delay_seconds, interval_seconds))
            policy.interval_seconds = interval_seconds
            begins_seconds = idle_seconds + interval_seconds * phase / PHASES
            yield begins_seconds, replay(later(replace(scene, seed=phase), begins_seconds), policy)


def later(scene: Scene, seconds: float) -> Scene:
    """The same, its requests so much later."""
    requests = scene.trace.requests
    moved = replace(requests, arrival_seconds=requests.arrival_seconds + seconds)
    return replace(
        scene,
        trace=replace(scene.trace, requests=moved),
        warm_up_seconds=scene.warm_up_seconds + seconds,
    )


def scraping(interval_seconds: float) -> Scraping:
    """The operator looks before each decision, and engines tell no noise."""
    return Scraping(interval_seconds, noise=0.0)


def twin(client: Client, service: Object, settings: Settings) -> Twin:
    """Read from the cluster, as the operator reads it; raises :class:`NotPlaced`."""
    name, namespace = service["metadata"]["name"], service["metadata"]["namespace"]
    resource = client.get(API, "InferenceService", name, namespace)
    if resource is None:
        raise NotPlaced(f"there is no InferenceService {name}")
    decisions = decider(settings)(_observed(client, [resource]))
    plan = decisions.outcomes[key_of(resource)]
    pool = chosen_pool(plan, {each.name: each for each in decisions.pools})
    if not isinstance(plan, Plan) or plan.record is None or pool is None or pool.machine is None:
        raise NotPlaced(f"{name} runs nowhere yet: {plan.reason}")
    tables = load()
    request = workload(resource, Kind.INFERENCE_SERVICE, tables, settings, {}).request
    assert isinstance(request, ServingRequest)
    placed = Placed(name, request, plan.record, pool)
    engine = of_layout(request.work.model, placed.layout, pool.machine, shipped(tables))
    return Twin(placed, engine, decisions.free_accelerators.get(pool.name))


def _observed(client: Client, services: Sequence[Object]) -> Observed:
    return Observed(
        nodes=client.list("v1", "Node"),
        pods=client.list("v1", "Pod"),
        pools=[pool for pool in client.list(API, "AcceleratorPool") if not is_discovered(pool)],
        inference_services=services,
        children=client.list("apps/v1", "Deployment", label_selector=CHILDREN),
    )
