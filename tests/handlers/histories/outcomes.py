"""At rest: whether all runs that could, as it was decided, and whether nothing else does."""

from __future__ import annotations

from collections.abc import Iterator

from poolwise.cluster.resources import CHILDREN, RUNNERS, owner_uid, resource_of
from poolwise.cluster.store import name_of
from poolwise.handlers.children import is_finished
from poolwise.handlers.reconciler import runs_nothing
from poolwise.plan.children.metadata import key_of
from poolwise.plan.conditions import Reason
from poolwise.plan.decision import Outcome, Plan
from poolwise.plan.names import PLACEMENT
from poolwise.plan.observed import Observed
from poolwise.plan.records.placement_record import parse
from poolwise.plan.status.workload import is_paused
from tests.fake_kube import Document
from tests.handlers.histories.controllers import is_ready
from tests.handlers.histories.free import miscounted
from tests.handlers.histories.fresh import reading
from tests.handlers.histories.invariants import ENDED, is_of, is_true
from tests.handlers.histories.waiting import would_start
from tests.handlers.histories.world import World, decides_anew

_PASSING = (Reason.FORBIDDEN, Reason.CHILD_REFUSED, Reason.INTERNAL_ERROR)
"""What nothing causes any more once histories are at rest."""


def amiss(world: World) -> Iterator[str]:
    """What is not as it should be."""
    outcomes = world.process.engine.planner.decisions.outcomes
    for workload in world.workloads():
        key = key_of(workload)
        outcome = outcomes.get(key)
        if outcome is None:
            yield f"{key}: nothing is decided"
        elif outcome.reason_code in _PASSING:
            yield f"{key}: is refused still: {outcome.reason}"
        elif not is_paused(workload):
            problems = (
                *_children(world, workload, outcome),
                *_run(world, workload, outcome),
                *_record(world, workload, outcome),
            )
            yield from (f"{key}: {problem}" for problem in problems)
    observed = reading(world.cluster, world.process.cache)
    yield from _decided_otherwise(world, observed)
    yield from would_start(world, observed)
    yield from miscounted(observed, world.process.engine.planner.decisions)


def _children(world: World, workload: Document, outcome: Outcome) -> Iterator[str]:
    """Where others are there than those that were decided."""
    if not isinstance(outcome, Plan) or outcome.goes_on_as is not None:
        return
    live = {
        (resource, *name_of(child))
        for resource in CHILDREN
        for child in world.cluster.all(resource)
        if owner_uid(child) == workload["metadata"]["uid"] and not is_finished(child)
    }
    desired = world.process.engine._reconciler._desired(workload, outcome)
    wanted = {(resource_of(each), *name_of(each)) for each in desired}
    if wanted or runs_nothing(workload):  # nothing is wanted anew of what runs on a pool that went
        yield from (
            f"{kind}/{name} is left behind of what is {_said(outcome)}"
            for kind, _, name in live - wanted
        )
        yield from (f"{kind}/{name} is missing" for kind, _, name in wanted - live)


def _record(world: World, workload: Document, outcome: Outcome) -> Iterator[str]:
    """Whether who comes next could read where it runs."""
    if not isinstance(outcome, Plan) or not outcome.placed:
        return
    for resource in RUNNERS:
        for runner in world.cluster.all(resource):
            notes = runner["metadata"].get("annotations") or {}
            is_ours = owner_uid(runner) == workload["metadata"]["uid"]
            if is_ours and parse(notes.get(PLACEMENT), outcome.key) is None:
                yield f"{runner['kind']} {runner['metadata']['name']} has no record"


def _run(world: World, workload: Document, outcome: Outcome) -> Iterator[str]:
    """Whether a job runs, or has ended, and says so."""
    if workload["kind"] != "TrainingJob" or not isinstance(outcome, Plan):
        return
    runs = [
        each
        for resource in RUNNERS
        for each in world.cluster.all(resource)
        if owner_uid(each) == workload["metadata"]["uid"]
    ]
    ended = [each for each in runs if any(is_true(each, word) for word in ENDED)]
    has_failed = any(is_true(each, "Failed") for each in ended)
    if ended and len(ended) == len(runs) and not runs_nothing(workload):
        word = "Failed" if has_failed else "Complete"
        if not is_true(workload, word):
            yield f"its run has ended, and {word} is not told"
        if outcome.claim is not None:
            yield f"has ended, and holds {dict(outcome.claim.accelerators_by_node)}"
    pods = [pod for pod in world.pods() if is_of(pod, workload)]
    wanted = outcome.record.pods if outcome.placed and outcome.record and not ended else None
    if len(pods) == wanted and all(map(is_ready, pods)) and not is_true(workload, "Ready"):
        yield f"all {len(pods)} pods are ready, and Ready is not told"


def _decided_otherwise(world: World, observed: Observed) -> Iterator[str]:
    """Where a process that has just started would decide otherwise."""
    planner = world.process.engine.planner
    now, anew = planner.decisions, decides_anew(observed)
    for key, outcome in now.outcomes.items():
        if not planner.is_refused(key) and _place(outcome) != _place(anew.outcomes.get(key)):
            told = _place(anew.outcomes.get(key))
            yield f"{key}: {_place(outcome)} was decided, and {told} by who reads all anew"


def _place(outcome: Outcome | None) -> tuple[object, ...]:
    if not isinstance(outcome, Plan):
        return (type(outcome).__name__,)
    return outcome.placed, outcome.claim.pool if outcome.claim else None


def _said(outcome: Outcome) -> str:
    return f"{outcome.reason_code}: {outcome.reason}"
