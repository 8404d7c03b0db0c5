"""Each workload with what is known of it before anything is placed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from poolwise.errors import InvalidInput
from poolwise.plan.candidates.reasons import Verdict
from poolwise.plan.conditions import Reason
from poolwise.plan.decision import Candidate, Key, Kind, Outcome, PlacementRecord, Plan, Rejection
from poolwise.plan.kueue.entry import InQueue
from poolwise.plan.observed import Observed
from poolwise.plan.reading import mapping, moment_of
from poolwise.plan.records.running import Children, State
from poolwise.plan.records.runtimes import check_runtime
from poolwise.plan.requests.reading import identity, priority_classes, workload
from poolwise.plan.requests.request import Identity, ServingRequest, Workload
from poolwise.plan.steps.ahead import with_history
from poolwise.settings import Settings
from poolwise.tables import Tables

_LATEST = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Entry:
    """One object with what is known of it before anything is placed."""

    identity: Identity
    state: State
    wanted: Workload | InvalidInput
    started: datetime | None = None
    """When its pods had all started."""
    queue: InQueue | None = None
    """Where Kueue decides when it runs."""
    is_untold: bool = False
    """Whether it runs, and its status does not tell what was predicted of it."""

    @property
    def holds(self) -> PlacementRecord | None:
        """What it runs as, and therefore holds."""
        if self.state.is_being_deleted or self.state.end is not None:
            return None
        if isinstance(self.wanted, Workload) and (
            self.wanted.is_suspended or self.wanted.is_plan_only
        ):
            return None
        if self.queue is not None and not self.queue.holds:
            return None
        return self.state.record

    @property
    def parts(self) -> tuple[PlacementRecord, ...]:
        """What a service runs on further pools, and therefore holds."""
        return self.state.parts if self.holds is not None else ()

    def settled(self) -> Outcome | None:
        """The outcome that needs no placement; None for what is open, or being deleted."""
        if self.state.is_being_deleted:
            return None
        if self.state.end is not None:
            return self._ended(self.state.end)
        if isinstance(self.wanted, InvalidInput):
            return Rejection(*self._who, Reason.INVALID_SPEC, str(self.wanted))
        record = self.holds
        if record is not None and not self._is_planned_again(record):
            return self.kept(record)
        if self.wanted.is_suspended:
            return self._idle(Reason.SUSPENDED, "suspended: holds nothing until it is resumed")
        if self.state.is_paused:
            return self._idle(
                Reason.PAUSED_BY_ANNOTATION, "paused by its annotation: nothing is written"
            )
        if self.queue is not None and self.queue.refusal is not None:
            return self._idle(*self.queue.refusal)
        return None

    def is_open(self) -> bool:
        """Whether it is to be placed in this pass."""
        return not self.state.is_being_deleted and self.settled() is None

    @property
    def workload(self) -> Workload:
        """What is wanted, of an entry that is open."""
        assert isinstance(self.wanted, Workload), "what cannot be read is not open"
        return self.wanted

    @property
    def serving(self) -> ServingRequest | None:
        """What a service asks for that can be read."""
        request = self.wanted.request if isinstance(self.wanted, Workload) else None
        return request if isinstance(request, ServingRequest) else None

    def asking(self, request: ServingRequest) -> Entry:
        """The same service with another request."""
        return replace(self, wanted=replace(self.workload, request=request))

    def order(self) -> tuple[int, datetime, tuple[str, str, str]]:
        """By priority, age, namespace and name."""
        key, created = self.identity.key, self.workload.created or _LATEST
        return -self.workload.priority.value, created, (key.namespace, key.name, key.kind.value)

    def _is_planned_again(self, record: PlacementRecord) -> bool:
        """A service whose spec moved, unless a person asked for no writes; a job never is.

        What an older decision left on a further pool counts too: its end or its new record may
        still be under way, or got lost with the process that was to write it.
        """
        is_service = self.identity.key.kind is Kind.INFERENCE_SERVICE
        decided = {each.generation for each in (record, *self.parts)}
        moved = decided != {self.identity.generation}
        return is_service and moved and not self.state.is_paused

    @property
    def _who(self) -> tuple[Key, str, int]:
        return self.identity.key, self.identity.uid, self.identity.generation

    def kept(self, record: PlacementRecord) -> Plan:
        """The plan that it was placed by: it stays there."""
        return replace(self.kept_on(record), parts=tuple(map(self.kept_on, self.parts)))

    def kept_on(self, record: PlacementRecord) -> Plan:
        """The same of one pool."""
        chosen = Candidate(
            pool=record.pool,
            accelerator=record.accelerator,
            feasible=True,
            reason="runs there already",
            reason_code=Verdict.CHOSEN,
            count=record.count,
            replicas=record.replicas,
            layout=record.layout,
            chosen=True,
        )
        told = f"runs on {record.pool}, as planned for generation {record.generation}"
        return Plan(
            *self._who,
            placed=True,
            reason=told,
            reason_code=Reason.PLACED,
            chosen=chosen,
            candidates=(chosen,),
            claim=record.claim,
            kept=True,
            record=record,
        )

    def _ended(self, end: Reason) -> Plan:
        """A job that ended holds nothing, and is never run again."""
        told = "ran to its end" if end is Reason.COMPLETED else "failed, and its retries are spent"
        return self._idle(end, told, kept=True)

    def _idle(self, code: str, reason: str, kept: bool = False) -> Plan:
        return Plan(
            *self._who,
            placed=False,
            reason=reason,
            reason_code=code,
            chosen=None,
            candidates=(),
            kept=kept,
        )


def entries(observed: Observed, tables: Tables, settings: Settings) -> Iterator[Entry]:
    """All workloads, also those that cannot be read."""
    children = Children(observed.children)
    priorities = priority_classes(observed.priority_classes)
    of_kind = {
        Kind.TRAINING_JOB: observed.training_jobs,
        Kind.INFERENCE_SERVICE: observed.inference_services,
    }
    for kind, resources in of_kind.items():
        for resource in resources:
            who = identity(resource, kind)
            state = children.state_of(resource, who.key, who.uid)
            wanted: Workload | InvalidInput
            try:
                asked = workload(resource, kind, tables, settings, priorities)
                wanted = with_history(asked, resource, settings.currency)
                if state.record is None:
                    check_runtime(resource, observed)
            except InvalidInput as error:
                wanted = error
            started = moment_of(mapping(resource, "status", "observed").get("startTime"))
            is_told = bool(mapping(resource, "status", "plan").get("predicted"))
            yield Entry(who, state, wanted, started, is_untold=state.is_live and not is_told)
