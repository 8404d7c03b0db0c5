"""The loop that measures runs: look at rank 0 of each, and tell what it told.

Nothing is decided here. What is told goes into the status, from which the next planning pass takes
corrections, remaining times and what a stop would lose. A run that tells nothing, or nonsense, is
planned as if nobody had asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import structlog

from poolwise.api import TrainingJobSpec
from poolwise.cluster import clock
from poolwise.cluster.cache import Cache
from poolwise.cluster.resources import TRAINING_JOBS
from poolwise.cluster.scraping import Reply, Source, Target
from poolwise.cluster.under_way import UnderWay
from poolwise.errors import PoolwiseError
from poolwise.handlers.planner import Planner
from poolwise.handlers.rounds import forget, rounds
from poolwise.handlers.seen import seen_of
from poolwise.handlers.turn import LOOKS_UNTIL_TOLD
from poolwise.model.work import Execution, TrainingLayout, TrainingWork
from poolwise.plan.children.metadata import key_of
from poolwise.plan.decision import Key, Kind, PlacementRecord, Plan
from poolwise.plan.gateway.reading import PickerTold
from poolwise.plan.learning import Rated, is_undescribed
from poolwise.plan.learning.corrections import alike, name_of, workload_of
from poolwise.plan.live.telling import MeasuredStatus
from poolwise.plan.observed import Object
from poolwise.plan.reading import mapping
from poolwise.plan.requests.reading import workload
from poolwise.plan.requests.request import TrainingRequest
from poolwise.plan.signals.adapters import Fault
from poolwise.plan.signals.failing import Failing
from poolwise.plan.signals.sample import Sample
from poolwise.plan.status.workload import is_paused
from poolwise.plan.steps.progress import Progress, Rhythm
from poolwise.plan.steps.rank import life, rank_zero
from poolwise.plan.steps.reading import ENGINE
from poolwise.plan.steps.sample import RunSample
from poolwise.plan.steps.telling import PORT, RunLook, measured_run
from poolwise.plan.steps.told import Basis, measured, model_step_seconds
from poolwise.settings import Settings
from poolwise.tables import load

_log = structlog.get_logger(__name__)


@dataclass
class _Known:
    """What is known of one run between two looks."""

    of: tuple[str, int]
    """Uid and generation of the object that ``request`` was read from."""
    request: TrainingRequest
    port: int | None
    progress: Progress
    place: tuple[str, str] | None = None
    """Pool, and what is the same for runs alike, that ``progress`` was measured of."""
    failures: Failing = field(default_factory=Failing)
    """Looks in a row that told nothing."""
    told: MeasuredStatus | None = None
    """What the status says of the last look."""


@dataclass(frozen=True, slots=True)
class _Turn:
    """One run in one round."""

    key: Key
    resource: Object
    known: _Known
    record: PlacementRecord
    pod: Object | None
    target: Target | None


class Measurer:
    """Looks and tells; ``looks`` is what comes of it."""

    def __init__(
        self,
        cache: Cache,
        planner: Planner,
        source: Source,
        looks: dict[Key, RunLook],
        settings: Settings,
    ) -> None:
        self._cache = cache
        self._planner = planner
        self._source = source
        self._looks = looks
        self._settings = settings
        self._rhythm = Rhythm.of(settings.training_interval_seconds)
        self._known: dict[Key, _Known] = {}
        self._tables = load()
        self.under_way: UnderWay[str] = UnderWay()
        """The round."""

    async def run(self) -> None:
        """Round after round, for ever."""
        await rounds(self.step, self._settings.training_interval_seconds, "measuring")

    async def step(self) -> None:
        """One round: all runs together, so that one that hangs costs one timeout."""
        with self.under_way.during("round"):
            await self._look()

    async def _look(self) -> None:
        turns = list(self._turns())
        for gone in forget((self._known, self._looks), {turn.key for turn in turns}):
            self._planner.look_again(gone, 0)  # its status tells what was seen of its pods
        told = await self._source([turn.target for turn in turns if turn.target is not None])
        for turn in turns:
            try:
                self._take(turn, told)
            except Exception:
                _log.exception("measuring failed on one run", workload=str(turn.key))

    def forget(self, key: Key) -> None:
        """Another run has the name now."""
        self._known.pop(key, None)
        self._looks.pop(key, None)

    def _turns(self) -> Iterator[_Turn]:
        """Runs that have a place; what cannot be read is told of by its plan."""
        for resource in self._cache.stores[TRAINING_JOBS]:
            key = key_of(resource)
            plan = self._planner.outcome_of(resource)
            if is_paused(resource) or not isinstance(plan, Plan) or plan.record is None:
                continue
            if not plan.kept or not plan.placed:
                continue
            try:
                yield self._turn(key, resource, plan.record)
            except (PoolwiseError, ValueError) as error:
                _log.info("not measured", workload=str(key), problem=str(error))

    def _turn(self, key: Key, resource: Object, record: PlacementRecord) -> _Turn:
        known, pod = self._read(key, resource), rank_zero(seen_of(self._cache, resource).pods)
        target = None
        if pod is not None and known.port is not None:
            target = Target.of(pod, known.port, ENGINE, key.namespace)
        return _Turn(key, resource, known, record, pod, target)

    def _read(self, key: Key, resource: Object) -> _Known:
        """What is asked for, read once for each generation; what an earlier process told of it."""
        metadata = resource["metadata"]
        version = (metadata["uid"], metadata.get("generation", 0))
        known = self._known.get(key)
        if known is None or known.of != version:
            spec = TrainingJobSpec.model_validate(resource["spec"])
            read = workload(resource, Kind.TRAINING_JOB, self._tables, self._settings, {})
            assert isinstance(read.request, TrainingRequest)
            port = next((p.container_port for p in spec.run.ports if p.name == PORT), None)
            same = known is not None and known.of[0] == version[0]
            before = known if same else _recalled(version, read.request, resource)
            assert before is not None
            known = replace(before, of=version, request=read.request, port=port)
            self._known[key] = known
        return known

    def _take(self, turn: _Turn, told: Mapping[Target, Reply]) -> None:
        known, basis = turn.known, self._basis(turn)
        if self._known.get(turn.key) is not known:
            return  # it went while it was asked
        if known.place != (basis.pool, basis.alike):
            known.place, known.progress = (basis.pool, basis.alike), known.progress.moved()
        look = told.get(turn.target) if turn.target is not None else None
        assert not isinstance(look, Sample | PickerTold), "runs are no engines, and no gateways"
        now_seconds = clock.utc_now().timestamp()
        if isinstance(look, Fault):
            known.failures = known.failures.after(look.reason, now_seconds)
            look = Fault(known.failures.reason)
        else:
            known.failures = Failing()
        if 0 < known.failures.looks < LOOKS_UNTIL_TOLD:
            return  # packets get lost
        if isinstance(look, RunSample) and turn.pod is not None:
            batch = known.request.work.global_batch_samples
            known.progress = known.progress.after(look, life(turn.pod), batch, self._rhythm)
        is_eager = known.request.work.execution is Execution.EAGER
        self._tell(turn, RunLook(known.progress, basis, look, known.port is not None, is_eager))

    def _tell(self, turn: _Turn, look: RunLook) -> None:
        """Ask for a look at the status where it would say something else."""
        self._looks[turn.key] = look
        interval_seconds = self._settings.training_interval_seconds
        says = measured_run(look, mapping(turn.resource, "status"), interval_seconds)
        if says != turn.known.told:
            turn.known.told = says
            self._planner.look_again(turn.key, 0)

    def _basis(self, turn: _Turn) -> Basis:
        work, layout = turn.known.request.work, turn.record.training_layout
        plan = mapping(turn.resource, "status", "plan")
        is_here = plan.get("pool") == turn.record.pool
        return Basis(
            model=name_of(work.model),
            alike=alike(work, layout),
            pool=turn.record.pool,
            steps=work.steps,
            model_step_seconds=model_step_seconds(plan) if is_here else None,
            rated=_rated(work, layout),
        )


def _rated(work: TrainingWork, layout: TrainingLayout) -> Rated | None:
    if not is_undescribed(work.model):
        return None
    return Rated(workload_of(work), work.precision, layout.count, work.global_batch_samples)


def _recalled(of: tuple[str, int], request: TrainingRequest, resource: Object) -> _Known:
    """What an earlier process told of a run, or this one before it moved."""
    told = measured(resource)
    if told is None:
        return _Known(of, request, None, Progress())
    return _Known(of, request, None, told.progress, (told.basis.pool, told.basis.alike))
