"""One pass over the whole cluster: what is observed in, a decision for every workload out.

What runs is kept where it is. What does not run yet is placed by priority, then age, then
namespace and name; each placement takes its nodes from the one ledger before the next workload
is looked at. A gang that does not fit waits whole and holds nothing, so smaller ones behind it may
pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from poolwise.errors import InvalidInput
from poolwise.model.efficiency import Calibration
from poolwise.plan.candidates.memo import Memo
from poolwise.plan.candidates.reasons import Verdict
from poolwise.plan.candidates.situation import Situation
from poolwise.plan.capacity import Ledger, ledger
from poolwise.plan.capacity_pods import settled, usage_by_node
from poolwise.plan.conditions import Reason
from poolwise.plan.decision import (
    Candidate,
    Claim,
    Key,
    Kind,
    Outcome,
    PlacementRecord,
    Plan,
    Rejection,
)
from poolwise.plan.observed import Decisions, Object, Observed
from poolwise.plan.placement import Placement
from poolwise.plan.pool import Pool
from poolwise.plan.pools.gathering import pools
from poolwise.plan.requests.reading import identity, priority_values, workload
from poolwise.plan.requests.request import Identity, Workload
from poolwise.plan.running import Children, State
from poolwise.settings import Settings
from poolwise.tables import Tables

_LATEST = datetime.max.replace(tzinfo=UTC)


def decide(
    observed: Observed,
    tables: Tables,
    settings: Settings,
    calibration: Calibration,
    now: datetime,
    memo: Memo | None = None,
) -> Decisions:
    """Pools, and an outcome for every workload that is not being deleted.

    ``memo`` makes later passes faster and changes no answer.
    """
    known = pools(observed.nodes, observed.pools, tables, settings)
    entries = list(_entries(observed, tables, settings))
    book, claims = _ledger(known, observed.pods, entries)
    remembered = Memo() if memo is None else memo
    situation = Situation(book, calibration, remembered, settings, now, observed.corrections)
    outcomes = {
        entry.identity.key: outcome for entry in entries if (outcome := entry.settled()) is not None
    }
    for entry in sorted(filter(_Entry.is_open, entries), key=_Entry.order):
        plan, situation = _placed(entry, known, situation, claims)
        outcomes[plan.key] = plan
    free = {pool.name: book.free(pool) for pool in known if not pool.is_cpu}
    return Decisions(known, dict(sorted(outcomes.items(), key=lambda item: str(item[0]))), free)


@dataclass(frozen=True, slots=True)
class _Entry:
    """One object with what is known of it before anything is placed."""

    identity: Identity
    state: State
    wanted: Workload | InvalidInput

    @property
    def holds(self) -> PlacementRecord | None:
        """What it runs as, and therefore holds."""
        if self.state.is_being_deleted or self.state.end is not None:
            return None
        if isinstance(self.wanted, Workload) and (
            self.wanted.is_suspended or self.wanted.is_plan_only
        ):
            return None
        return self.state.record

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
            return self._kept(record)
        if self.wanted.is_suspended:
            return self._idle(Reason.SUSPENDED, "suspended: holds nothing until it is resumed")
        if self.state.is_paused:
            return self._idle(
                Reason.PAUSED_BY_ANNOTATION, "paused by its annotation: nothing is written"
            )
        return None

    def is_open(self) -> bool:
        """Whether it is to be placed in this pass."""
        return not self.state.is_being_deleted and self.settled() is None

    def order(self) -> tuple[bool, int, datetime, tuple[str, str, str]]:
        """What runs already goes first, then by priority, age, namespace and name."""
        assert isinstance(self.wanted, Workload), "what cannot be read is not open"
        created = self.wanted.created or _LATEST
        key = self.identity.key
        name = (key.namespace, key.name, key.kind.value)
        return self.holds is None, -self.wanted.priority, created, name

    def _is_planned_again(self, record: PlacementRecord) -> bool:
        """A service whose spec moved, unless a person asked for no writes; a job never is."""
        is_service = self.identity.key.kind is Kind.INFERENCE_SERVICE
        moved = record.generation != self.identity.generation
        return is_service and moved and not self.state.is_paused

    @property
    def _who(self) -> tuple[Key, str, int]:
        return self.identity.key, self.identity.uid, self.identity.generation

    def _kept(self, record: PlacementRecord) -> Plan:
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


def _entries(observed: Observed, tables: Tables, settings: Settings) -> Iterator[_Entry]:
    children = Children(observed.children)
    priorities = priority_values(observed.priority_classes)
    of_kind = {
        Kind.TRAINING_JOB: observed.training_jobs,
        Kind.INFERENCE_SERVICE: observed.inference_services,
    }
    for kind, resources in of_kind.items():
        for resource in resources:
            who = identity(resource, kind)
            wanted: Workload | InvalidInput
            try:
                wanted = workload(resource, kind, tables, settings, priorities)
            except InvalidInput as error:
                wanted = error
            yield _Entry(who, children.state_of(resource, who.key, who.uid), wanted)


def _ledger(
    known: Sequence[Pool], pods: Sequence[Object], entries: Sequence[_Entry]
) -> tuple[Ledger, Mapping[Key, Claim]]:
    """Free capacity beside foreign pods and what our own workloads hold, and their claims."""
    held = {entry.identity.key: record for entry in entries if (record := entry.holds)}
    foreign, ours = usage_by_node(pods, held)
    book = ledger(known, foreign)
    claims = {
        key: settled(record.claim, record.resource, ours.get(key, {}))
        for key, record in held.items()
    }
    for claim in claims.values():
        book = book.with_claim(claim)
    return book, claims


def _placed(
    entry: _Entry, known: Sequence[Pool], situation: Situation, claims: Mapping[Key, Claim]
) -> tuple[Plan, Situation]:
    """The plan of an open entry, and what the next one finds.

    A service that is planned again plans with what it holds itself; where its new spec has no
    place, it goes on as it is and holds what it held.
    """
    assert isinstance(entry.wanted, Workload), "what cannot be read is not open"
    own = claims.get(entry.identity.key)
    free = situation.ledger.without_claim(own) if own else situation.ledger
    alone = situation.with_ledger(free)
    plan = Placement(entry.wanted, known, alone, current=entry.holds).plan()
    if plan.claim is None:
        return plan, situation
    return plan, situation.with_ledger(free.with_claim(plan.claim))
