"""One workload: compare what is with what was decided, and write the difference.

The story goes into the status before the children are written, so that a crash in between leaves
an intent that the next process carries out, and never a child that nobody has explained; and in a
burst everybody is told before the first pods are made. A workload whose last attempt was refused
is tried first and told afterwards, so that its status does not flicker with every attempt.
"""

from __future__ import annotations

from dataclasses import replace

from poolwise.cluster.cache import Cache
from poolwise.cluster.resources import (
    AUTOSCALERS,
    DISRUPTION_BUDGETS,
    INFERENCE_SERVICES,
    TRAINING_JOBS,
    resource_of,
)
from poolwise.cluster.resources import RUNNERS as POD_RUNNERS
from poolwise.cluster.store import Name, name_of
from poolwise.handlers.children import Children, prepared
from poolwise.handlers.planner import Planner
from poolwise.handlers.refusals import REFUSALS, reason_of
from poolwise.handlers.story import Story
from poolwise.plan.children.manifests import check, children
from poolwise.plan.children.resizing import RUNNERS, changes
from poolwise.plan.children.serving import least_pods
from poolwise.plan.conditions import Type
from poolwise.plan.decision import Key, Kind, Outcome, Plan, chosen_pool
from poolwise.plan.history.refused import was_refused
from poolwise.plan.live.look import mode_of
from poolwise.plan.live.rivals import rival
from poolwise.plan.names import child_name
from poolwise.plan.observed import Decisions, Object
from poolwise.plan.reading import is_true, mapping, number
from poolwise.plan.records.runtimes import Served
from poolwise.plan.status.workload import is_paused
from poolwise.settings import Settings

_RESOURCES = {Kind.TRAINING_JOB: TRAINING_JOBS, Kind.INFERENCE_SERVICE: INFERENCE_SERVICES}


class Reconciler:
    """Carries decisions out."""

    def __init__(
        self, cache: Cache, planner: Planner, written: Children, story: Story, settings: Settings
    ) -> None:
        self._cache = cache
        self._planner = planner
        self._children = written
        self._story = story
        self._settings = settings

    async def reconcile(self, key: Key) -> None:
        """Make the cluster what was last decided for ``key``.

        A decision that was made for another state of the object is dropped: the change that made
        it stale has asked for a new one already.
        """
        workload = workload_of(self._cache, key)
        outcome = self._planner.decisions.outcomes.get(key)
        if workload is None:
            self._planner.forget(key)
            self._story.forget(key)
        elif outcome is not None and not _is_stale(outcome, workload):
            is_lost = self._lost_its_place(workload, outcome) and await self._children.find(
                workload
            )
            if is_lost or self._was_never_made(workload, outcome):
                self._planner.forget(key)
                self._planner.want(key)
            else:
                await self._carry_out(workload, outcome)

    def _was_never_made(self, workload: Object, outcome: Outcome) -> bool:
        """Whether what a plan goes on with is of an earlier spec and is not there: the spec was
        edited before children were written, which the next pass took for written."""
        if not isinstance(outcome, Plan) or not outcome.kept or outcome.record is None:
            return False
        live = self._cache.children_of(outcome.uid)
        is_there = any(resource_of(each) in POD_RUNNERS for each in live)
        is_earlier = outcome.record.generation != outcome.generation
        return is_earlier and not is_there and not is_paused(workload)

    def _lost_its_place(self, workload: Object, outcome: Outcome) -> bool:
        """Whether who was told to have a place has none, or is given one anew."""
        was_placed = is_true(mapping(workload, "status"), Type.PLACED)
        is_kept = (
            isinstance(outcome, Plan) and outcome.placed and not self._planner.is_fresh(outcome)
        )
        return was_placed and not is_kept and not is_paused(workload)

    async def _carry_out(self, workload: Object, outcome: Outcome) -> None:
        is_fresh = self._planner.is_fresh(outcome)
        if is_fresh and not was_refused(workload):
            self._desired(workload, outcome)  # who cannot be made is not told to be placed
            await self._story.tell(workload, outcome)
            self._planner.look_again(outcome.key, 0)  # behind those that were not told yet
            return
        if gives_up(outcome):
            await self._story.tell(workload, outcome)  # what was tried outlives its pods
        await self._children.end_with_namespace(workload)
        if not is_paused(workload):
            await self._try_children(workload, outcome)
            self._planner.settle(outcome)
        elif self._planner.settle(outcome):
            self._planner.want(outcome.key)  # paused before its children were written: others go
        if is_fresh or not _is_new(outcome):
            await self._story.tell(workload, outcome)
        await self._clean_up_later(outcome)
        if _is_new(outcome) or gives_up(outcome):
            self._planner.want()  # what was placed now runs: the next pass finds it so

    async def _clean_up_later(self, outcome: Outcome) -> None:
        """By the status as it is now, which may only just have told of the end."""
        told = workload_of(self._cache, outcome.key)
        is_job = outcome.key.kind is Kind.TRAINING_JOB
        if told is not None and is_job and not is_paused(told):
            await self._children.set_cleanup(told)

    def _desired(self, workload: Object, outcome: Outcome) -> tuple[Object, ...]:
        if isinstance(outcome, Plan) and not outcome.kept:
            check(workload)
        if not isinstance(outcome, Plan) or not outcome.placed:
            return ()
        made = manifests(workload, outcome, self._planner.decisions, self._settings)
        made = tuple(self._with_budget(workload, outcome, child) for child in made)
        if self._has_rival(workload, outcome):
            made = tuple(self._as_it_is(child) for child in made)
        return tuple(prepared(child) for child in made)

    def _has_rival(self, workload: Object, plan: Plan) -> bool:
        further = [part.pool for part in plan.parts if part.pool]
        autoscalers = self._cache.stores[AUTOSCALERS]
        return rival(plan.key, mode_of(workload), autoscalers, further) is not None

    def _only_resized(self, plan: Plan) -> Plan | None:
        """What a service runs as whose spec has no place, or whose pool is gone while another one
        has its nodes: its pods would not be made like this again, and nobody asked to restart them.
        """
        is_former = plan.pool in self._planner.decisions.former
        is_service = plan.key.kind is Kind.INFERENCE_SERVICE
        return plan if is_former and is_service and plan.kept else plan.goes_on_as

    async def _resize(self, workload: Object, runs: Plan) -> None:
        """The number of its replicas, and no more."""
        if self._has_rival(workload, runs) or runs.record is None:
            return
        default = least_pods(runs.record, _spare(workload), further=runs.further_replicas)
        budget = workload["metadata"]["namespace"], child_name(runs.key.name)
        least = self._least_pods(workload, runs, budget, default)
        await self._children.resize(workload, lambda child: changes(child, runs, least))

    def _with_budget(self, workload: Object, plan: Plan, child: Object) -> Object:
        if child["kind"] != DISRUPTION_BUDGETS.kind:
            return child
        default = child["spec"]["minAvailable"]
        least = self._least_pods(workload, plan, name_of(child), default)
        return {**child, "spec": {**child["spec"], "minAvailable": least}}

    def _least_pods(self, workload: Object, plan: Plan, budget: Name, default: int) -> int:
        """What drains of nodes leave by the load of now; by that of the process before until this
        one has looked."""
        if plan.record is None:
            return default
        if plan.key in self._cache.least_replicas:
            now = self._cache.least_replicas[plan.key]
            return least_pods(plan.record, _spare(workload), now, plan.further_replicas)
        if mapping(workload, "status", "scaling"):
            live = self._cache.get(DISRUPTION_BUDGETS, *budget) or {}
            told = number(mapping(live, "spec"), "minAvailable")
            return default if told is None else min(int(told), default)
        return default

    def _as_it_is(self, child: Object) -> Object:
        """With the replicas that there are, where somebody else scales too: to set another number
        each time would start and end pods for ever."""
        if child["kind"] not in RUNNERS:
            return child
        live = self._cache.get(resource_of(child), *name_of(child))
        if live is None:
            return child
        return {**child, "spec": {**child["spec"], "replicas": live["spec"]["replicas"]}}

    async def _try_children(self, workload: Object, outcome: Outcome) -> None:
        """Write the children; a workload that runs already goes on, and tells what is refused, or
        cannot be made."""
        try:
            await self._write_children(workload, outcome)
        except REFUSALS as error:
            if isinstance(outcome, Plan) and outcome.placed and outcome.kept:
                if self._planner.settle(outcome):  # kept for children that were never written
                    self._planner.want(outcome.key)
                held_up = replace(outcome, reason_code=reason_of(error), reason=str(error))
                await self._story.tell(workload, held_up)
            raise

    async def _write_children(self, workload: Object, outcome: Outcome) -> None:
        """Where nothing is desired, what runs goes on, unless the spec says that nothing shall, or
        it gives up its place. Its number of replicas may follow the load even so."""
        desired = self._desired(workload, outcome)
        if desired:
            await self._children.write(workload, desired)
        elif isinstance(outcome, Plan) and (runs := self._only_resized(outcome)) is not None:
            await self._resize(workload, runs)
        elif _has_no_place(outcome) and (runs_nothing(workload) or gives_up(outcome)):
            await self._children.clear(workload)


def manifests(
    workload: Object, plan: Plan, decisions: Decisions, settings: Settings
) -> tuple[Object, ...]:
    """Children of a placed plan; none while its pool is gone, or tells nothing without a node: then
    they are left alone, for pods would ask for no accelerators."""
    pools = decisions.pools_by_name
    pool = chosen_pool(plan, pools)
    if pool is None or not pool.tells_devices:
        return ()
    served = Served(decisions.apis, decisions.training_runtimes)
    return children(workload, plan, pool, settings, served, pools)


def workload_of(cache: Cache, key: Key) -> Object | None:
    """The resource, while it exists and is not being deleted."""
    found = cache.get(_RESOURCES[key.kind], key.namespace, key.name)
    if found is None or "deletionTimestamp" in found["metadata"]:
        return None
    return found


def runs_nothing(workload: Object) -> bool:
    """Whether the spec says that there shall be no pods."""
    spec = workload.get("spec") or {}
    return spec.get("suspend") is True or spec.get("mode") == "Plan"


def gives_up(outcome: Outcome) -> bool:
    """Whether what runs is to stop: it did not start in time, moves, or makes room."""
    return isinstance(outcome, Plan) and (outcome.vacates or outcome.given_up is not None)


def _has_no_place(outcome: Outcome) -> bool:
    return isinstance(outcome, Plan) and not outcome.placed


def _spare(workload: Object) -> int:
    return int(mapping(workload, "spec", "scaling").get("redundancy") or 0)


def _is_new(outcome: Outcome) -> bool:
    return isinstance(outcome, Plan) and outcome.is_new


def _is_stale(outcome: Outcome, workload: Object) -> bool:
    metadata = workload["metadata"]
    return (outcome.uid, outcome.generation) != (metadata["uid"], metadata.get("generation", 0))
