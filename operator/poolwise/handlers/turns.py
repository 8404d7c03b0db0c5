"""What there is to look at: the services that run, each with its replicas and its metrics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import structlog

from poolwise.api import InferenceServiceSpec
from poolwise.cluster.cache import Cache
from poolwise.cluster.resources import DISRUPTION_BUDGETS
from poolwise.cluster.scraping import Target
from poolwise.errors import PoolwiseError
from poolwise.handlers.gateways import Gateways
from poolwise.handlers.kinds import Kinds
from poolwise.handlers.planner import Planner
from poolwise.handlers.seen import seen_of
from poolwise.handlers.turn import Known, Turn
from poolwise.plan.children.metadata import key_of
from poolwise.plan.children.replica import Replica
from poolwise.plan.children.serving import least_replicas
from poolwise.plan.decision import Key, Kind, PlacementRecord, Plan, chosen_pool
from poolwise.plan.gateway.fronts import pod_labels
from poolwise.plan.live.look import Mode
from poolwise.plan.live.seen import asked_for, serving_pods
from poolwise.plan.live.service import Placed
from poolwise.plan.names import child_name
from poolwise.plan.observed import Object
from poolwise.plan.pool import Pool
from poolwise.plan.reading import mapping, number
from poolwise.plan.requests.reading import workload
from poolwise.plan.requests.request import ServingRequest
from poolwise.plan.status.workload import is_paused
from poolwise.settings import Settings
from poolwise.tables import Tables

_log = structlog.get_logger(__name__)


class Turns:
    """Turns of services, as the cache and the newest plans have them; ``known`` gets what is read
    of each."""

    def __init__(
        self,
        cache: Cache,
        planner: Planner,
        kinds: Kinds,
        known: dict[Key, Known],
        settings: Settings,
        tables: Tables,
    ) -> None:
        self._cache = cache
        self._planner = planner
        self._kinds = kinds
        self._known = known
        self._settings = settings
        self._tables = tables

    def of(self, services: Iterable[Object]) -> Iterator[Turn]:
        """Services that run; what cannot be read is told of by its plan."""
        gateways = Gateways(self._cache)
        pools = self._planner.decisions.places
        for resource in services:
            key = key_of(resource)
            outcome = self._planner.outcome_of(resource)
            plan = outcome.running if isinstance(outcome, Plan) else None
            if is_paused(resource) or plan is None or plan.record is None:
                continue
            pool = chosen_pool(plan, pools)
            if pool is None or pool.machine is None:
                continue
            try:
                yield self._turn(resource, plan, pool, gateways)
            except (PoolwiseError, ValueError) as error:
                _log.info("not looked at", workload=str(key), problem=str(error))

    def _turn(self, resource: Object, plan: Plan, pool: Pool, gateways: Gateways) -> Turn:
        key, spec = plan.key, InferenceServiceSpec.model_validate(resource["spec"])
        assert plan.record is not None
        placed = Placed(str(key), self._request(key, resource), plan.record, pool)
        parts, offers = self._kinds.elsewhere(placed, plan, spec)
        port = Replica(key, spec, plan.record, pool, self._settings).metrics_port
        pods = tuple(serving_pods(seen_of(self._cache, resource).pods))
        targets = (Target.of(pod, port, spec.engine.type, key.namespace) for pod in pods)
        spans_nodes, on = plan.record.nodes_per_replica > 1, (placed, *parts)
        labels = [pod_labels(key, each.pool.name, spans_nodes) for each in on]
        by_maker = self._kinds.by_maker(key)
        return Turn(
            key=key,
            resource=resource,
            placed=placed,
            parts=parts,
            offers=offers,
            rooms=self._kinds.rooms(key),
            by_maker=by_maker,
            asked=asked_for(
                self._cache.children_of(resource["metadata"]["uid"]), by_maker, pool.name
            ),
            mode=Mode(spec.scaling.mode),
            standstill=plan.standstill,
            pods=pods,
            targets=tuple(filter(None, targets)),
            gateway=gateways.before(key, labels),
            left=self._left(plan.record, plan),
        )

    def _left(self, record: PlacementRecord, plan: Plan) -> int | None:
        name = plan.key.namespace, child_name(plan.key.name)
        budget = self._cache.get(DISRUPTION_BUDGETS, *name)
        told = number(mapping(budget or {}, "spec"), "minAvailable")
        return None if told is None else least_replicas(record, int(told), plan.further_replicas)

    def _request(self, key: Key, resource: Object) -> ServingRequest:
        """What is asked for, read once for each generation."""
        known = self._known.get(key) or Known()
        version = (resource["metadata"]["uid"], resource["metadata"].get("generation", 0))
        if known.request is None or known.version != version:
            read = workload(resource, Kind.INFERENCE_SERVICE, self._tables, self._settings, {})
            assert isinstance(read.request, ServingRequest)
            known.request, known.version = read.request, version
            self._known[key] = known
        return known.request
