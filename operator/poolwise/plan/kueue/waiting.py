"""The plan of a job that waits for Kueue: where it would run, and in which shape.

Such a job holds nothing: its place in the queue is Kueue's, and what Poolwise keeps for it is only
a plan. So its child is made even where nothing is free now, as far as the queue's quota allows. The
plan becomes final with the quota: from then on the job holds its accelerators like any other.

While it waits, a plan that found no room carries our admission gate, so that quota is not taken for
pods that could not start. The gate is lifted once there is room, in the same pool or in another one
that runs the same pods; both are changes of the child in place, which keep its place in the queue.
It is lifted in any case after ``startTimeout``: then the order of the queue decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from poolwise.plan.candidates.exclusions import Exclusion, excluded
from poolwise.plan.candidates.reasons import Verdict
from poolwise.plan.candidates.situation import Situation
from poolwise.plan.decision import Candidate, Key, Kind, Outcome, PlacementRecord, Plan
from poolwise.plan.entries import Entry
from poolwise.plan.kueue.entry import InQueue, lobby
from poolwise.plan.kueue.pinning import Pin
from poolwise.plan.kueue.reading import books
from poolwise.plan.kueue.record import Queueing
from poolwise.plan.ledger.capacity import ledger
from poolwise.plan.observed import Observed
from poolwise.plan.pool import Pool
from poolwise.plan.requests.reading import identity
from poolwise.plan.requests.request import TrainingRequest, Workload
from poolwise.plan.selection.placement import Placement, none_can_run


def in_queues(
    everything: Iterable[Entry], observed: Observed, pools: Sequence[Pool]
) -> Iterator[Entry]:
    """The entries of a pass, with what Kueue has to say of them."""
    jobs = {identity(job, Kind.TRAINING_JOB).key: job for job in observed.training_jobs}
    known = lobby(observed, pools, books(observed.queues))
    for entry in everything:
        job = jobs.get(entry.identity.key)
        if job is None or not isinstance(entry.wanted, Workload):
            yield entry
        else:
            yield replace(entry, queue=known.entry(job, entry.wanted))


def waits_for_kueue(entry: Entry) -> bool:
    """Whether an open entry is planned here, and not with those that start at once."""
    return entry.queue is not None and entry.queue.is_planned_here


def admissions(
    entries: Iterable[Entry], outcomes: Mapping[Key, Outcome]
) -> Iterator[tuple[Key, Plan]]:
    """The outcomes of jobs in a queue, with what Kueue says of them."""
    for entry in entries:
        plan = outcomes.get(entry.identity.key)
        if entry.queue is not None and entry.queue.admission and isinstance(plan, Plan):
            yield plan.key, replace(plan, admission=entry.queue.admission)


def queued_plans(
    entries: Iterable[Entry], pools: Sequence[Pool], situation: Situation
) -> Iterator[Plan]:
    """Plans of jobs that wait for Kueue, in their order; what they plan on is taken from nobody but
    those behind them."""
    for entry in entries:
        assert entry.queue is not None, "only those in a queue come here"
        plan = _Turn(entry, entry.queue, pools, situation).plan()
        yield plan
        if plan.claim is not None and not (plan.record and plan.record.is_gated):
            situation = situation.with_claim(plan.claim)


@dataclass(frozen=True, slots=True)
class _Turn:
    """One job's."""

    entry: Entry
    queue: InQueue
    pools: Sequence[Pool]
    situation: Situation

    def plan(self) -> Plan:
        """The plan that stands, or a better one."""
        standing = self._standing()
        if standing is None:
            return self._fresh()
        now = self._now()
        if now is not None and self._has_room(now, standing):
            return self._kept(standing, is_gated=False)
        if now is not None and _is_same_run(now, standing):
            return now
        return self._kept(standing, is_gated=standing.is_gated and not self._is_overdue())

    @property
    def _request(self) -> TrainingRequest:
        request = self.entry.workload.request
        assert isinstance(request, TrainingRequest), "services are in no queue"
        return request

    def _standing(self) -> PlacementRecord | None:
        """What the child was made from, as far as that is still what is asked, and possible."""
        record = self.entry.state.record
        if record is None or record.generation != self.entry.identity.generation:
            return None
        pin = self.queue.pins.get(record.pool)
        return record if isinstance(pin, Pin) and record.count <= pin.most else None

    def _now(self) -> Plan | None:
        """Where it could run now: first where quota is free as well."""
        spare = {name: pin.spare for name, pin in self._pinned().items()}
        most = {name: pin.most for name, pin in self._pinned().items()}
        return self._attempt(self.situation, spare) or self._attempt(self.situation, most)

    def _fresh(self) -> Plan:
        """Where it could run now, else where it will; a refusal where it never can."""
        now = self._now()
        if now is not None:
            return now
        most = {name: pin.most for name, pin in self._pinned().items()}
        empty = self.situation.with_ledger(ledger(self.pools, {}))
        later = self._attempt(empty, most, is_gated=True)
        return later or self._impossible(empty, most)

    def _pinned(self) -> dict[str, Pin]:
        return {name: pin for name, pin in self.queue.pins.items() if isinstance(pin, Pin)}

    def _attempt(
        self, situation: Situation, most: Mapping[str, float], is_gated: bool = False
    ) -> Plan | None:
        """The best place within those quotas: on as many accelerators as the job may take."""
        limits = {min(limit, self._request.most) for limit in most.values()}
        for limit in sorted(limits, reverse=True):
            if limit < self._request.least:
                return None
            plan = self._within(situation, most, int(limit))
            if plan.placed:
                return replace(plan, queue=self._queueing(plan, is_gated))
        return None

    def _within(self, situation: Situation, most: Mapping[str, float], limit: int) -> Plan:
        """The best place among pools where so many accelerators are within the quota."""
        allowed = [pool for pool in self.pools if most.get(pool.name, 0) >= limit]
        request = replace(self._request, most=limit)
        workload = replace(self.entry.workload, request=request)
        plan = Placement(workload, allowed, situation).plan()
        barred = [self._barred(each, most) for each in self.pools if each not in allowed]
        return replace(plan, candidates=(*plan.candidates, *barred))

    def _barred(self, pool: Pool, most: Mapping[str, float]) -> Candidate:
        pin, least = self.queue.pins.get(pool.name), self._request.least
        if isinstance(pin, str):
            return excluded(pool, Exclusion(Verdict.POOL_LABEL_NOT_IN_FLAVOR, pin))
        if pin is None:
            told = "has no accelerators, and training runs on accelerators only"
            return excluded(pool, Exclusion(Verdict.CPU_POOL, told))
        of = f"of {' or '.join(pin.flavors)}"
        if pin.most < least:
            told = f"queue {self.queue.name} may use {pin.most:g} {of}, needs {least}"
            return excluded(pool, Exclusion(Verdict.EXCEEDS_QUOTA, told, least / max(pin.most, 1)))
        told = f"queue {self.queue.name} has {most[pool.name]:g} {of} left, needs {least}"
        return excluded(pool, Exclusion(Verdict.QUOTA_IN_USE, told))

    def _impossible(self, empty: Situation, most: Mapping[str, float]) -> Plan:
        """Why no pool that the queue leads to could ever run it."""
        plan = self._within(empty, most, self._request.least)
        if any(limit >= self._request.least for limit in most.values()):
            return plan
        told = none_can_run([each for each in plan.candidates if each.pool in most])
        return replace(plan, reason_code=Verdict.EXCEEDS_QUOTA, reason=told)

    def _queueing(self, plan: Plan, is_gated: bool) -> Queueing:
        assert plan.chosen is not None, "what is placed has a pool"
        pin = self._pinned()[plan.chosen.pool]
        queue = self.queue
        return Queueing(queue.name, pin.selector, queue.priority, queue.is_pod_priority, is_gated)

    def _has_room(self, now: Plan, standing: PlacementRecord) -> bool:
        """Whether the job could start where it is planned."""
        here = (each for each in now.candidates if each.pool == standing.pool)
        return any(each.feasible and each.count >= standing.count for each in here)

    def _kept(self, standing: PlacementRecord, is_gated: bool) -> Plan:
        queue = standing.queue or Queueing(self.queue.name)
        return self.entry.kept(replace(standing, queue=replace(queue, is_gated=is_gated)))

    def _is_overdue(self) -> bool:
        """Whether the order of the queue shall decide, room or not."""
        limit = _overdue_at(self.entry, self.situation)
        return limit is not None and self.situation.now >= limit


def gate_opens_at(entries: Iterable[Entry], situation: Situation) -> datetime | None:
    """When the next gate is lifted for its time alone."""
    gated = (each for each in entries if each.state.record and each.state.record.is_gated)
    limits = (_overdue_at(each, situation) for each in gated)
    return min((each for each in limits if each and each > situation.now), default=None)


def _overdue_at(entry: Entry, situation: Situation) -> datetime | None:
    """From when on the gate holds it back no more."""
    admission = entry.queue.admission if entry.queue else None
    if admission is None or admission.created is None:
        return None
    limit_seconds = entry.workload.start_timeout_seconds
    if limit_seconds is None:
        limit_seconds = situation.settings.start_timeout_seconds
    return admission.created + timedelta(seconds=limit_seconds)


def _is_same_run(plan: Plan, record: PlacementRecord) -> bool:
    """Whether the same pods would run there, so that the child need not be made anew."""
    chosen = plan.chosen
    if chosen is None or plan.claim is None:
        return False
    per_pod = {*plan.claim.accelerators_by_node.values()}
    return (
        chosen.layout == record.layout
        and per_pod == {record.accelerators_per_pod}
        and dict(plan.domain) == dict(record.domain)
    )
