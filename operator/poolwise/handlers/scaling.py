"""The loop that keeps services inside their targets: look at all replicas, decide, carry out.

In mode Direct the decided number goes into the next planning pass, which finds room for it; else it
is told alone. A service whose metrics break, whose decision fails, or that somebody else scales too
keeps its replicas, and no other service waits for it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import structlog

from poolwise.api import InferenceServiceSpec
from poolwise.cluster import clock
from poolwise.cluster.cache import Cache
from poolwise.cluster.resources import AUTOSCALERS, INFERENCE_SERVICES
from poolwise.cluster.scraping import Look as Told
from poolwise.cluster.scraping import Source, Target
from poolwise.errors import PoolwiseError
from poolwise.handlers.planner import Planner
from poolwise.handlers.reconciler import pool_of
from poolwise.handlers.story import seen_of
from poolwise.model.calibration import shipped
from poolwise.plan.children.metadata import key_of
from poolwise.plan.children.replica import Replica
from poolwise.plan.decision import Key, Kind, PlacementRecord, Plan
from poolwise.plan.live.keeping import Record
from poolwise.plan.live.rivals import rival
from poolwise.plan.live.seen import replica_seen, serving_pods, start_seconds
from poolwise.plan.live.service import Placed
from poolwise.plan.live.telling import Look, Measured, Mode, measured
from poolwise.plan.observed import Object
from poolwise.plan.pool import Pool
from poolwise.plan.requests.reading import workload
from poolwise.plan.requests.request import ServingRequest
from poolwise.plan.scaling.controller import decide
from poolwise.plan.scaling.decision import Decision
from poolwise.plan.scaling.memory import Memory
from poolwise.plan.scaling.seen import Phase, Seen
from poolwise.plan.scaling.service import Predictor, Service
from poolwise.plan.signals.adapters import Fault
from poolwise.plan.signals.sample import Sample
from poolwise.plan.status.figures import part
from poolwise.plan.status.workload import is_paused
from poolwise.settings import Settings
from poolwise.tables import load

_log = structlog.get_logger(__name__)

LOOKS_UNTIL_TOLD = 3
"""Failed looks at a replica in a row before a condition speaks of it: packets get lost. The number
of replicas does not fall from the first one on."""


LEAST_LOOKS = 2


@dataclass
class _Memory:
    """What is known of one service between two looks."""

    of: tuple[Any, ...] = ()
    """The placement that ``request`` and ``predictor`` are of."""
    request: ServingRequest | None = None
    predictor: Predictor | None = None
    memory: Memory = field(default_factory=Memory)
    failures: dict[str, int] = field(default_factory=dict)
    """Failed looks in a row, by uid of the pod."""
    record: Record = field(default_factory=Record)
    looks: int = 0
    """Made by this process: a single one tells of no load."""
    told: Measured | None = None
    """What the status says of the last look."""


@dataclass(frozen=True, slots=True)
class _Turn:
    """One service in one round."""

    key: Key
    resource: Object
    placed: Placed
    mode: Mode
    pods: tuple[Object, ...]
    targets: tuple[Target, ...]
    unaddressed: tuple[str, ...]
    """Uids of pods that have no address yet."""


class Scaler:
    """Looks and decides; ``looks`` and ``cache.scaling`` are what comes of it."""

    def __init__(
        self,
        cache: Cache,
        planner: Planner,
        source: Source,
        looks: dict[Key, Look],
        settings: Settings,
    ) -> None:
        self._cache = cache
        self._planner = planner
        self._source = source
        self._looks = looks
        self._settings = settings
        self._known: dict[Key, _Memory] = {}
        self._tables = load()
        self._calibration = shipped(self._tables)
        self.samples: dict[str, Sample] = {}
        """Newest look at each replica, by uid of its pod: who has least work left."""

    async def run(self) -> None:
        """Round after round, for ever."""
        while True:
            started = time.monotonic()
            try:
                await self.step()
            except Exception:
                _log.exception("a round of scaling failed; tried again with the next")
            spent = time.monotonic() - started
            await asyncio.sleep(max(self._settings.scaling_interval_seconds - spent, 0.1))

    async def step(self) -> None:
        """One round: all services together, so that one that hangs costs one timeout."""
        turns = list(self._turns())
        self._forget({turn.key for turn in turns})
        told = await self._source([target for turn in turns for target in turn.targets])
        self.samples.clear()
        self.samples.update(
            (target.uid, look) for target, look in told.items() if isinstance(look, Sample)
        )
        for turn in turns:
            try:
                await self._take(turn, told)
            except Exception:
                _log.exception("scaling failed on one service", workload=str(turn.key))

    def _forget(self, present: set[Key]) -> None:
        for known in (self._known, self._looks, self._cache.scaling):
            for key in [key for key in known if key not in present]:
                del known[key]

    def _turns(self) -> Iterator[_Turn]:
        """Services that run; what cannot be read is told of by its plan."""
        for resource in self._cache.stores[INFERENCE_SERVICES]:
            key = key_of(resource)
            plan = self._planner.decisions.outcomes.get(key)
            if is_paused(resource) or not isinstance(plan, Plan) or plan.record is None:
                continue
            pool = pool_of(plan, self._planner.decisions)
            if not plan.kept or pool is None or pool.machine is None or not plan.placed:
                continue
            try:
                yield self._turn(key, resource, plan.record, pool)
            except (PoolwiseError, ValueError) as error:
                _log.info("not looked at", workload=str(key), problem=str(error))

    def _turn(self, key: Key, resource: Object, record: PlacementRecord, pool: Pool) -> _Turn:
        spec = InferenceServiceSpec.model_validate(resource["spec"])
        placed = Placed(str(key), self._request(key, resource), record, pool)
        port = Replica(key, spec, record, pool, self._settings).metrics_port
        pods = tuple(serving_pods(seen_of(self._cache, resource)[1]))
        found = [(pod, (pod.get("status") or {}).get("podIP")) for pod in pods]
        return _Turn(
            key=key,
            resource=resource,
            placed=placed,
            mode=Mode(spec.scaling.mode),
            pods=pods,
            targets=tuple(
                Target(
                    pod["metadata"]["uid"],
                    pod["metadata"]["name"],
                    address,
                    port,
                    spec.engine.type,
                    key.namespace,
                )
                for pod, address in found
                if address
            ),
            unaddressed=tuple(pod["metadata"]["uid"] for pod, address in found if not address),
        )

    def _request(self, key: Key, resource: Object) -> ServingRequest:
        """What is asked for, read once for each generation."""
        known = self._known.setdefault(key, _Memory())
        version = (resource["metadata"]["uid"], resource["metadata"].get("generation", 0))
        if known.request is None or known.of[:2] != version:
            read = workload(resource, Kind.INFERENCE_SERVICE, self._tables, self._settings, {})
            assert isinstance(read.request, ServingRequest)
            known.request, known.of = read.request, version
        return known.request

    async def _take(self, turn: _Turn, told: Mapping[Target, Told]) -> None:
        known = self._known[turn.key]
        seen, failing = self._seen(turn, told, known)
        service = self._service(turn, known)
        decision = await asyncio.to_thread(decide, service, known.memory, seen)
        if seen.broken:  # whatever was decided: who is not seen is not taken away
            least = turn.placed.record.replicas or 0
            decision = replace(decision, replicas=max(decision.replicas, least))
        known.memory = decision.memory
        known.record = known.record.after(seen.samples, seen.now_seconds)
        kept = known.record.signals(service.targets, seen.now_seconds)
        known.looks += 1
        if known.looks < (LOOKS_UNTIL_TOLD if known.failures else LEAST_LOOKS):
            return  # what was decided and told before a restart stands till then
        held = sum(each.phase is not Phase.DRAINING for each in seen.replicas)
        self._looks[turn.key] = look = Look(
            decision=replace(decision, signals=kept),
            mode=turn.mode,
            held=held,
            told=len(seen.samples),
            failing=failing,
            conflict=rival(turn.key, turn.mode, self._cache.stores[AUTOSCALERS]),
            now=clock.utc_now(),
        )
        self._carry_out(turn, look, decision)

    def _carry_out(self, turn: _Turn, look: Look, decision: Decision) -> None:
        """Ask for another pass where the number differs, and for a look at the status in any
        case: it is written where it says something else."""
        scaling = self._cache.scaling
        if turn.mode is Mode.DIRECT and not look.conflict and look.told:
            scaling[turn.key] = decision.replicas
        else:
            scaling.pop(turn.key, None)
        if scaling.get(turn.key, turn.placed.record.replicas) != turn.placed.record.replicas:
            self._planner.want(turn.key)
        elif self._says_more(turn, look):
            self._planner.look_again(turn.key, 0)

    def _says_more(self, turn: _Turn, look: Look) -> bool:
        """Whether the status would tell something else."""
        told = measured(look, part(part(turn.resource, "status"), "scaling"))
        known = self._known[turn.key]
        before, known.told = known.told, told
        return before != told

    def _service(self, turn: _Turn, known: _Memory) -> Service:
        placed = turn.placed
        of = (*known.of[:2], placed.pool.name, placed.layout, placed.pool.machine)
        if known.predictor is None or known.of != of:
            known.predictor, known.of = placed.predictor(self._calibration), of
        budget_seconds = float(placed.record.start_budget_seconds or 0)
        free = self._planner.decisions.free_accelerators.get(placed.pool.name)
        return placed.service(
            known.predictor,
            start_seconds(turn.pods, budget_seconds),
            free,
            self._settings.scaling_interval_seconds,
        )

    def _seen(
        self, turn: _Turn, told: Mapping[Target, Told], known: _Memory
    ) -> tuple[Seen, Mapping[str, str]]:
        """What is seen, and which replicas have not told for several looks in a row."""
        replicas = {
            pod["metadata"]["uid"]: replica_seen(pod, turn.placed.pool.name) for pod in turn.pods
        }
        looks: dict[str, Told] = {target.uid: told[target] for target in turn.targets}
        looks |= dict.fromkeys(turn.unaddressed, Fault("has no address yet"))
        ready = {uid for uid, each in replicas.items() if each.phase is Phase.READY}
        faults = {
            uid: look.reason
            for uid, look in looks.items()
            if isinstance(look, Fault) and uid in ready
        }
        known.failures = {uid: known.failures.get(uid, 0) + 1 for uid in faults}
        seen = Seen(
            now_seconds=clock.utc_now().timestamp(),
            replicas=tuple(replicas.values()),
            samples={look.replica: look for look in looks.values() if isinstance(look, Sample)},
            broken={replicas[uid].name: reason for uid, reason in faults.items()},
        )
        lasting = _lasting(known.failures)
        return seen, {replicas[uid].name: faults[uid] for uid in lasting}


def _lasting(failures: Mapping[str, int]) -> Iterable[str]:
    return (uid for uid, count in failures.items() if count >= LOOKS_UNTIL_TOLD)
