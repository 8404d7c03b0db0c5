"""What there is and who holds it, in the terms of the joint planner."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from poolwise.plan.candidates.reasons import Verdict
from poolwise.plan.candidates.situation import Situation
from poolwise.plan.decision import Candidate, Claim, Key, Kind, Plan
from poolwise.plan.entries import Entry
from poolwise.plan.joint.problem import NodeState, Option, PoolState, Running, Workload
from poolwise.plan.ledger.capacity import Ledger, Room
from poolwise.plan.pool import Pool
from poolwise.plan.queueing.options import MILLICORES, options
from poolwise.plan.requests.request import TrainingRequest
from poolwise.plan.requests.request import Workload as Wanted
from poolwise.plan.selection.ranking import losses, rank
from poolwise.plan.standing import Departure


@dataclass(frozen=True, slots=True)
class Holder:
    """One workload that runs, or is about to."""

    entry: Entry
    claim: Claim
    found: tuple[Candidate, ...] = ()
    """Every pool beside what it holds itself, where it may be moved; else none."""

    @property
    def key(self) -> Key:
        """Of its workload."""
        return self.entry.identity.key

    def workload(self, situation: Situation) -> Workload:
        """What it holds until when, and where else it could be."""
        run = _running(self.entry, self.claim, situation)
        elsewhere: tuple[Option, ...] = ()
        priority = 0
        if isinstance(self.entry.wanted, Wanted):
            priority = self.entry.wanted.priority.value
        if is_movable(self.entry, situation):
            run = replace(run, is_movable=True, restart_seconds=_restart(self.entry, situation))
            run, elsewhere = self._elsewhere(run, situation)
        return Workload(
            key=told(self.key),
            namespace=self.key.namespace,
            created=situation.now.timestamp(),
            options=elsewhere,
            priority=priority,
            running=run,
            deadline=_deadline_seconds(self.entry),
        )

    def left(self, why: Departure) -> Plan:
        """What it is told when it stops."""
        identity = self.entry.identity
        to = why.option.pool if why.option else None
        return Plan(
            key=identity.key,
            uid=identity.uid,
            generation=identity.generation,
            placed=False,
            reason=why.reason,
            reason_code=why.reason_code,
            chosen=next((each for each in self.found if each.pool == to), None),
            candidates=self.found,
            vacates=True,
        )

    def _elsewhere(self, run: Running, situation: Situation) -> tuple[Running, tuple[Option, ...]]:
        """Ways to run what remains, in the measure of how it runs now."""
        request = self.entry.workload.request
        here = next((each for each in self.found if each.pool == self.claim.pool), None)
        ranking = rank([each for each in self.found if _counts(each, here)], request.goal)
        left = run.option.seconds
        if ranking is None or here is None or left is None or not here.total_seconds:
            return run, ()
        loss = losses(ranking).get(here.pool)
        if loss is None:
            return run, ()
        share = left.mid / here.total_seconds
        cost = here.cost_per_hour or 0.0
        option = replace(run.option, objective=left.scaled(loss / left.mid), cost_per_hour=cost)
        return replace(run, option=option), tuple(
            replace(each, seconds=each.seconds.scaled(share))
            for each in options(request, self.found, situation)
            if each.seconds is not None
        )


def _counts(each: Candidate, here: Candidate | None) -> bool:
    """What would do, and where it runs though it will be late there."""
    is_late_here = each is here and each.reason_code == Verdict.DEADLINE_MISSED
    return each.feasible or each.waits or is_late_here


def _deadline_seconds(entry: Entry) -> float | None:
    request = entry.wanted.request if isinstance(entry.wanted, Wanted) else None
    deadline = request.deadline if isinstance(request, TrainingRequest) else None
    return deadline.timestamp() if deadline else None


def is_movable(entry: Entry, situation: Situation) -> bool:
    """Whether a run can be stopped and goes on elsewhere: it keeps checkpoints, and its end is
    known and not due (``spec.activeDeadlineSeconds``). What Kueue has let in, Kueue alone stops."""
    wanted = entry.wanted
    if entry.queue is not None:
        return False
    if not isinstance(wanted, Wanted) or entry.state.is_paused or entry.started is None:
        return False
    request = wanted.request
    keeps = isinstance(request, TrainingRequest) and request.work.checkpoint_interval_seconds
    left = situation.ends.get(entry.identity.key)
    return bool(keeps) and left is not None and left.mid > 0.0


@dataclass(frozen=True, slots=True)
class Ends:
    """The same nodes with nothing free and with everything: most nodes of a large cluster are one
    or the other, and need no state of their own in each pass."""

    full: tuple[NodeState, ...]
    empty: tuple[NodeState, ...]


def ends_of(pool: Pool) -> Ends:
    """Both ends of a pool's nodes."""
    full = tuple(
        NodeState(
            name=qualified(pool.name, node.name),
            free=0,
            total=int(node.cores * MILLICORES) if pool.is_cpu else node.accelerators,
            domains={key: node.labels[key] for key in pool.topology_keys if key in node.labels},
        )
        for node in pool.nodes
    )
    return Ends(full, tuple(replace(state, free=state.total) for state in full))


def pool_state(pool: Pool, ends: Ends, ledger: Ledger) -> PoolState:
    """A pool with what is free now. Nodes that are not usable may come back, and have nothing."""
    nodes = []
    for node, full, empty in zip(pool.nodes, ends.full, ends.empty, strict=True):
        room = ledger.rooms.get(node.name)
        free = _free(pool, room) if room and node.unusable_reason is None else 0
        if free <= 0:
            nodes.append(full)
        elif free == empty.free:
            nodes.append(empty)
        else:
            nodes.append(replace(full, free=free))
    return PoolState(pool.name, tuple(nodes), is_cpu=pool.is_cpu)


def told(key: Key) -> str:
    """A workload as sentences name it; no two have one name."""
    named = f"{key.namespace}/{key.name}"
    return named if key.kind is Kind.TRAINING_JOB else f"service {named}"


def qualified(pool: str, node: str) -> str:
    """Name of a node in one pool: a node with slices of several sizes is in several."""
    return f"{pool}/{node}"


def unqualified(pool: str, nodes: Mapping[str, int]) -> dict[str, int]:
    """Pods by the plain names of their nodes."""
    return {name.removeprefix(f"{pool}/"): pods for name, pods in nodes.items()}


def _free(pool: Pool, room: Room) -> int:
    if pool.is_cpu:
        return int(room.cores * MILLICORES)
    return room.accelerators.get(pool.resource or "", 0)


def _running(entry: Entry, claim: Claim, situation: Situation) -> Running:
    """Accelerators stand for pods: only how many each node gives back counts."""
    is_cpu = situation.ledger.pools[claim.pool].is_cpu
    held = dict(claim.accelerators_by_node)
    if is_cpu:
        held = {node: int(cores * MILLICORES) for node, cores in claim.cores_by_node.items()}
    option = Option(
        pool=claim.pool,
        pods=sum(held.values()),
        accelerators_per_pod=1,
        seconds=situation.ends.get(entry.identity.key),
        is_on_cpu=is_cpu,
    )
    nodes = {qualified(claim.pool, node): count for node, count in held.items()}
    since: datetime = entry.started or situation.now
    return Running(option, nodes, since=since.timestamp())


def _restart(entry: Entry, situation: Situation) -> float:
    """What a stop loses: the work since the last checkpoint, and the time to the next step."""
    return situation.settings.restart_seconds + _unsaved_seconds(entry, situation)


def _unsaved_seconds(entry: Entry, situation: Situation) -> float:
    """As the run tells it, else half an interval on average."""
    since = situation.unsaved_since.get(entry.identity.key)
    if since is not None:
        since = max(since, entry.started or since)
        return max((situation.now - since).total_seconds(), 0.0)
    request = entry.workload.request
    assert isinstance(request, TrainingRequest), "services are not moved"
    return (request.work.checkpoint_interval_seconds or 0.0) / 2.0
