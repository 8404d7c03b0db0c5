"""One pass over the whole cluster: what is observed in, a decision for every workload out.

What runs is kept where it is. What does not run yet is decided together
(:mod:`poolwise.plan.queueing.queue`): by priority, and among equals so that the delay of all is
least. Each placement takes its nodes from the one ledger before the next is looked at; a gang that
has to wait waits whole, and what is kept for it goes only to those who end before it starts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from poolwise.model.efficiency import Calibration
from poolwise.plan.candidates.assessment import candidates
from poolwise.plan.candidates.situation import Situation
from poolwise.plan.decision import (
    Candidate,
    Claim,
    Holding,
    Key,
    Outcome,
    PlacementRecord,
)
from poolwise.plan.entries import Entry, entries
from poolwise.plan.history.learned import Lesson, learned, of_runs, of_service, paces, speeds
from poolwise.plan.history.lost_records import with_records
from poolwise.plan.history.refused import not_refused
from poolwise.plan.history.retelling import retold
from poolwise.plan.history.succession import former_pools
from poolwise.plan.kueue.desk import answers, with_guests
from poolwise.plan.kueue.waiting import (
    admissions,
    gate_opens_at,
    in_queues,
    queued_plans,
    waits_for_kueue,
)
from poolwise.plan.learning import Accelerators, Paces
from poolwise.plan.learning.corrections import Corrections, name_of
from poolwise.plan.ledger.capacity import Ledger, ledger
from poolwise.plan.ledger.capacity_pods import settled, usage_by_node
from poolwise.plan.ledger.growth import grown
from poolwise.plan.ledger.idle import idle_nodes
from poolwise.plan.live.asleep import with_places
from poolwise.plan.live.beyond import asked_parts, fitted, followed, with_parts
from poolwise.plan.live.contested import as_declared, as_they_are, contested
from poolwise.plan.live.going_on import carried_on, going_on, parted
from poolwise.plan.live.rescaling import Wanted, rescaled, with_live_replicas
from poolwise.plan.live.surging import surging
from poolwise.plan.memo import Memo
from poolwise.plan.observed import Decisions, Object, Observed
from poolwise.plan.pool import Pool
from poolwise.plan.pools.gathering import pools
from poolwise.plan.provisioning.daemons import with_daemons
from poolwise.plan.provisioning.landing import landed
from poolwise.plan.provisioning.starts import FailedStarts, starts
from poolwise.plan.provisioning.telling import told
from poolwise.plan.queueing.holders import Holder, is_movable
from poolwise.plan.queueing.rounds import Carried, Rounds
from poolwise.plan.reading import mapping
from poolwise.plan.requests.request import Workload
from poolwise.plan.selection.placement import Placement
from poolwise.plan.standing import Standing
from poolwise.plan.steps.remaining import ends, unsaved_since
from poolwise.plan.steps.told import MeasuredRun, measured
from poolwise.settings import Settings
from poolwise.tables import Tables


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
    remembered = Memo() if memo is None else memo
    remembered.begin_pass()
    known = pools(observed.nodes, observed.pools, tables, settings, remembered)
    found = entries(observed, tables, settings)
    recorded = with_records(found, observed.children, observed.pods, known)
    kept = with_places(recorded, known)
    read = with_live_replicas(kept, observed.scaling)
    everything = in_queues(read, observed, known)
    start = starts(observed, everything, remembered.grown.each(known, grown), settings, now)
    book, claims = _ledger(start.pools, observed.pods, start.holders, remembered)
    book = with_guests(book, observed)
    runs = remembered.runs.each(observed.training_jobs, measured)
    situation = Situation(
        book,
        calibration,
        remembered,
        settings,
        now,
        _learned(observed, runs, start, remembered),
        ends(observed.training_jobs, now),
        unsaved_since(observed.training_jobs, runs, now),
        observed.apis,
    )
    wanted = Wanted(observed.scaling, observed.overflow)
    others = contested(observed, start.entries)
    turn = _Pass(start.pools, situation, start.entries, claims, wanted, others)
    decided = turn.decided(observed.standing)
    free = {pool.name: book.free(pool) for pool in known if not pool.is_cpu}
    workloads = (*observed.training_jobs, *observed.inference_services)
    idle = idle_nodes(known, book, not_refused(decided.outcomes, workloads))
    answered = answers(book, observed, decided.outcomes)
    decided = replace(decided, free_accelerators=free, idle_nodes=idle, answers=answered)
    return told(decided, known, start, claims, situation)


@dataclass(frozen=True, slots=True)
class _Pass:
    """What one pass knows before it places anything."""

    pools: Sequence[Pool]
    situation: Situation
    entries: Sequence[Entry]
    claims: Mapping[Holding, Claim]
    """Of what runs."""
    scaling: Wanted
    contested: Mapping[Key, Mapping[str, int]]
    """Replicas by pool of services that somebody else scales too."""

    def decided(self, standing: Standing) -> Decisions:
        """Services whose spec moved first, since they hold their place; then the queue. Who only
        asks is told what it would get if nobody else waited."""
        open_entries = sorted(filter(Entry.is_open, self.entries), key=Entry.order)
        moved = [each for each in open_entries if each.holds is not None]
        asking = [each for each in open_entries if each.workload.is_plan_only]
        guests = [each for each in open_entries if waits_for_kueue(each)]
        apart = (*moved, *asking, *guests)
        queued = [each for each in open_entries if each not in apart]
        outcomes: dict[Key, Outcome] = {
            entry.identity.key: outcome
            for entry in self.entries
            if (outcome := entry.settled()) is not None
        }
        ours = [each for each in self.entries if each.identity.key not in self.contested]
        left, ours = parted(ours, self.situation.ledger)
        situation = as_declared(self.entries, self.claims, self.contested, outcomes, self.situation)
        situation = followed(ours, self.claims, outcomes, situation)
        situation, rooms = rescaled(ours, self.claims, self.scaling, outcomes, situation)
        situation, more = carried_on(left, self.claims, self.scaling, outcomes, situation)
        situation = self._placed(as_they_are(moved, self.contested), situation, outcomes)
        for entry in asking:
            self._placed([entry], situation, outcomes)
        of_what_runs = situation.ledger
        carried = self._carried_out(queued, situation, standing)
        situation = carried.situation
        outcomes |= carried.outcomes
        outcomes |= {plan.key: plan for plan in queued_plans(guests, self.pools, situation)}
        moments = carried.asks_at, self._settled_at(), gate_opens_at(guests, situation)
        outcomes |= dict(admissions(self.entries, outcomes))
        outcomes |= surging(self.entries, self.claims, outcomes, of_what_runs)
        outcomes |= dict(retold(self.entries, self.claims, outcomes, self.situation))
        ordered = sorted(outcomes.items(), key=lambda item: str(item[0]))
        return Decisions(
            tuple(self.pools),
            dict(ordered),
            standing=carried.standing,
            look_again_at=min(filter(None, moments), default=None),
            rooms=rooms | more,
            former=self.situation.ledger.former,
        )

    def _settled_at(self) -> datetime | None:
        """When the next run may be moved, or stopped for others."""
        situation, settings = self.situation, self.situation.settings
        if not (settings.may_move or settings.may_preempt):
            return None
        settles = (
            entry.started + timedelta(seconds=settings.settle_seconds)
            for entry in self.entries
            if entry.started and entry.holds and is_movable(entry, situation)
        )
        return min((each for each in settles if each > situation.now), default=None)

    def _placed(
        self, entries: Iterable[Entry], situation: Situation, outcomes: dict[Key, Outcome]
    ) -> Situation:
        """Place one by one; what is left.

        A service that is planned again plans with what it holds itself; where its new spec has no
        place, it goes on as it is and holds what it held.
        """
        for entry in entries:
            own = self.claims.get(entry.identity.key)
            alone = situation.without_claim(own)
            fit = fitted(entry, alone)
            plan = Placement(fit.entry.workload, self.pools, alone, current=entry.holds).plan()
            if plan.claim is not None:
                situation = alone.with_ledger(alone.ledger.with_update(own, plan.claim))
                plan, situation = with_parts(fit, plan, self.claims, situation)
            elif entry.holds is None:
                plan = asked_parts(fit, plan, alone)
            else:
                plan, situation = going_on(entry, plan, self.claims, self.scaling, situation)
            outcomes[plan.key] = plan
        return situation

    def _carried_out(
        self, entries: Sequence[Entry], situation: Situation, standing: Standing
    ) -> Carried:
        if not entries and not situation.settings.may_move:
            return Carried(Standing(), situation, {})
        holders = list(self._holders(situation))
        return Rounds(self.pools, self.claims).carried_out(entries, holders, situation, standing)

    def _holders(self, situation: Situation) -> Iterator[Holder]:
        """What runs; with where else it could be, where that is looked for."""
        for entry in self.entries:
            claim = self.claims.get(entry.identity.key)
            if entry.holds is None or claim is None or claim.pool not in situation.ledger.pools:
                continue
            found: tuple[Candidate, ...] = ()
            if situation.settings.may_move and is_movable(entry, situation):
                alone = situation.without_claim(claim)
                found = candidates(entry.workload.request, self.pools, alone)
            yield Holder(entry, claim, found)


def _learned(
    observed: Observed, runs: Sequence[MeasuredRun | None], start: FailedStarts, memo: Memo
) -> Corrections:
    """What statuses tell of runs and services, worked out again where any tells something else."""
    lessons = [*of_runs(runs), *_of_services(observed, start.entries, memo)]
    measured_paces, known = tuple(paces(runs)), observed.corrections
    accelerators = tuple(
        Accelerators(pool.name, pool.machine.device)
        for pool in start.pools
        if pool.machine and not (pool.is_cpu or pool.is_mig)
    )
    told = [known.known, measured_paces, accelerators, *lessons]
    return memo.learned.of(
        told, lambda: learned(lessons, Paces(measured_paces, accelerators), known)
    )


def _of_services(observed: Observed, everything: Sequence[Entry], memo: Memo) -> Iterator[Lesson]:
    models = {
        entry.identity.uid: name_of(entry.wanted.request.work.model)
        for entry in everything
        if isinstance(entry.wanted, Workload)
    }
    services = observed.inference_services
    for service, by_pool in zip(services, memo.speeds.each(services, speeds), strict=True):
        model = models.get(str(mapping(service, "metadata").get("uid")))
        if model is not None:
            yield from of_service(model, by_pool)


def _ledger(
    known: Sequence[Pool], pods: Sequence[Object], everything: Sequence[Entry], memo: Memo
) -> tuple[Ledger, Mapping[Holding, Claim]]:
    """Free capacity beside foreign pods and what our own workloads hold, and their claims."""
    held: dict[Holding, PlacementRecord] = {}
    since_seconds: dict[Key, float] = {}
    for entry in everything:
        if entry.holds is not None:
            held[entry.identity.key] = entry.holds
            since_seconds[entry.identity.key] = entry.state.pods_since_seconds
        held |= {(entry.identity.key, each.pool): each for each in entry.parts}
    places = {holding: record.pool for holding, record in held.items()}
    foreign, ours = usage_by_node(pods, places, since_seconds, memo)
    taken = with_daemons(foreign, known, pods, memo)
    book = memo.empty.of((*known, taken), lambda: ledger(known, taken))
    claims = {
        key: settled(record.claim, record.resource, ours.get(key, {}))
        for key, record in held.items()
    }
    book, claims = landed(book, claims, held)
    return replace(book, former=former_pools(known, held, claims)), claims
