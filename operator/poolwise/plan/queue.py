"""The queue of one pass: everything that waits for a place, decided together.

The joint planner (:mod:`poolwise.plan.joint`) compares run times, goals and prices, and says who
starts on how many accelerators of which pool. It knows no cores, no memory and no pods of others:
the ledger does, and has the last word on the nodes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from poolwise.plan.candidates.situation import Situation
from poolwise.plan.capacity import Ledger
from poolwise.plan.decision import Candidate, Claim, Key, Kind
from poolwise.plan.entries import Entry
from poolwise.plan.joint.outcome import Act, Decision, JointPlan
from poolwise.plan.joint.planning import plan
from poolwise.plan.joint.problem import (
    NodeState,
    Option,
    PoolState,
    Problem,
    Rules,
    Running,
    Standing,
    Workload,
)
from poolwise.plan.options import MILLICORES, options
from poolwise.plan.placement import Turn
from poolwise.plan.pool import Node, Pool
from poolwise.plan.requests.request import TrainingRequest
from poolwise.settings import Settings

ROUND_SECONDS = (60.0, 300.0, 1800.0, 10800.0, 86400.0)
"""Steps to which moments to come are told: each is used until ten times as long before."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """An entry without a place, and every pool as a candidate for it."""

    entry: Entry
    found: tuple[Candidate, ...]

    @property
    def key(self) -> Key:
        """Of its workload."""
        return self.entry.identity.key


@dataclass(frozen=True, slots=True)
class Queue:
    """All that waits, beside all that runs."""

    waiting: Sequence[Waiting]
    running: Sequence[Entry]
    claims: Mapping[Key, Claim]
    """Of what runs."""
    pools: Sequence[Pool]
    situation: Situation

    @property
    def ledger(self) -> Ledger:
        """What is free before anybody in the queue is placed."""
        return self.situation.ledger

    @property
    def now(self) -> datetime:
        """The moment of the pass."""
        return self.situation.now

    def decided(self, standing: Standing) -> JointPlan:
        """Who starts where, and who waits for what.

        The optimiser has its say when its last answer is older than ``optimise_seconds``; passes
        in between follow the queue at the prices that it left.
        """
        now = self.now.timestamp()
        is_due = standing.is_due(now, self.situation.settings.optimise_seconds)
        return plan(self._problem(standing, is_due), optimise=is_due, is_brief=False)

    def standing(self, joint: JointPlan, before: Standing) -> Standing:
        """What the next pass has to know."""
        now = self.now.timestamp()
        is_due = before.is_due(now, self.situation.settings.optimise_seconds)
        optimised = now if is_due else before.optimised
        return Standing(joint.reservations, joint.shares, optimised)

    def turn(self, each: Waiting, joint: JointPlan) -> Turn:
        """What one workload has to know of the joint plan."""
        decision = next(d for d in joint.decisions if d.key == told(each.key))
        pool = decision.option.pool if decision.option else ""
        pools = {option.pool for option in each.found if option.feasible or option.waits}
        return Turn(
            decision=decision,
            found=each.found,
            nodes=unqualified(pool, decision.nodes),
            prices=tuple(p for p in joint.prices if p.delay and p.pool in pools),
            kept=tuple(self._kept(joint, decision)),
            expected_start=rounded_moment(self.now, decision.starts),
        )

    def _kept(self, joint: JointPlan, decision: Decision) -> Iterator[Claim]:
        """What of the pool is for others who start before the workload would surely have ended."""
        option = decision.option
        if option is None or decision.act is not Act.START:
            return
        keys = {told(each.key): each.key for each in self.waiting}
        until = math.inf if option.seconds is None else self.now.timestamp() + option.seconds.high
        for hold in joint.holds.get(option.pool, ()):
            if hold.starts < until and hold.key != decision.key:
                nodes = unqualified(option.pool, {hold.node: hold.accelerators})
                if option.is_on_cpu:
                    cores = {node: held / MILLICORES for node, held in nodes.items()}
                    yield Claim(keys[hold.key], option.pool, {}, cores, {})
                else:
                    yield Claim(keys[hold.key], option.pool, nodes, {}, {})

    def _problem(self, standing: Standing, is_due: bool) -> Problem:
        return Problem(
            now=self.now.timestamp(),
            pools=tuple(map(self._pool, self.pools)),
            workloads=(*map(self._pending, self.waiting), *self._holders()),
            rules=rules(self.situation.settings),
            reservations=standing.reservations,
            shares={} if is_due else standing.shares,
        )

    def _pool(self, pool: Pool) -> PoolState:
        """With nodes that are not usable now and may come back: they have nothing free."""
        nodes = (
            NodeState(
                name=qualified(pool.name, node.name),
                free=max(self._free(pool, node), 0),
                total=int(node.cores * MILLICORES) if pool.is_cpu else node.accelerators,
                domains={key: node.labels[key] for key in pool.topology_keys if key in node.labels},
            )
            for node in pool.nodes
        )
        return PoolState(pool.name, tuple(nodes), is_cpu=pool.is_cpu)

    def _free(self, pool: Pool, node: Node) -> int:
        room = self.ledger.rooms.get(node.name)
        if room is None or node.unusable_reason is not None:
            return 0
        if pool.is_cpu:
            return int(room.cores * MILLICORES)
        return room.accelerators.get(pool.resource or "", 0)

    def _pending(self, each: Waiting) -> Workload:
        request, identity = each.entry.workload.request, each.entry.identity
        created = each.entry.workload.created or self.now
        run = request if isinstance(request, TrainingRequest) else None
        deadline = run.deadline if run else None
        return Workload(
            key=told(identity.key),
            namespace=identity.key.namespace,
            created=created.timestamp(),
            options=options(request, each.found, self.situation),
            priority=each.entry.workload.priority,
            deadline=deadline.timestamp() if deadline else None,
            max_cost=run.max_cost if run else None,
        )

    def _holders(self) -> Iterator[Workload]:
        """What runs, and when it gives back what it holds."""
        for entry in self.running:
            key = entry.identity.key
            claim = self.claims.get(key)
            if claim is not None and claim.pool in self.ledger.pools:
                yield Workload(
                    key=told(key),
                    namespace=key.namespace,
                    created=self.now.timestamp(),
                    options=(),
                    running=self._run(entry, claim),
                )

    def _run(self, entry: Entry, claim: Claim) -> Running:
        is_cpu = self.ledger.pools[claim.pool].is_cpu
        held = dict(claim.accelerators_by_node)
        if is_cpu:
            held = {node: int(c * MILLICORES) for node, c in claim.cores_by_node.items()}
        option = Option(
            pool=claim.pool,
            pods=sum(held.values()),
            accelerators_per_pod=1,
            seconds=self.situation.ends.get(entry.identity.key),
            is_on_cpu=is_cpu,
        )
        nodes = {qualified(claim.pool, node): count for node, count in held.items()}
        return Running(option, nodes, since=self.now.timestamp())


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


def rounded_moment(now: datetime, at: float | None) -> datetime | None:
    """A moment to come as exact as it deserves: to a tenth of the wait or so, so that its text
    stays the same while the prediction does; None where nobody can tell."""
    if at is None:
        return None
    wait = max(at - now.timestamp(), 0.0)
    step = next((step for step in ROUND_SECONDS if wait < 10 * step), ROUND_SECONDS[-1])
    return datetime.fromtimestamp(math.ceil(at / step) * step, UTC)


def rules(settings: Settings) -> Rules:
    """What the administrator set."""
    pairs = (each.partition("=") for each in settings.namespace_shares)
    shares = {namespace: float(share) for namespace, _, share in pairs}
    return Rules(
        aging_seconds=settings.aging_seconds,
        namespace_shares=shares,
        marginal_efficiency=settings.marginal_efficiency,
        time_limit_seconds=settings.optimise_limit_seconds,
    )
