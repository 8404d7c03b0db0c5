"""One service in one round of scaling: what is known of it, and what is seen of its replicas."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import structlog

from poolwise.cluster.scraping import Reply, Target
from poolwise.handlers.gateways import Gateway
from poolwise.plan.decision import Key
from poolwise.plan.gateway.clients import Clients
from poolwise.plan.gateway.fronts import Front, pod_labels
from poolwise.plan.gateway.holding import Holding, Trust, holding
from poolwise.plan.gateway.reading import PickerTold
from poolwise.plan.live.knowledge import Knowledge, Place, recalled
from poolwise.plan.live.look import Mode
from poolwise.plan.live.maximum import within
from poolwise.plan.live.overdue import Overdue, overdue
from poolwise.plan.live.seen import (
    by_our_clock,
    pool_of,
    ready_at,
    replica_seen,
    without_surge,
)
from poolwise.plan.live.service import Placed
from poolwise.plan.live.telling import MeasuredStatus
from poolwise.plan.observed import Object
from poolwise.plan.reading import mapping, number
from poolwise.plan.requests.request import ServingRequest
from poolwise.plan.scaling.decision import Decision, Remark
from poolwise.plan.scaling.seen import Phase, Seen
from poolwise.plan.scaling.service import Predictor
from poolwise.plan.signals.adapters import Fault
from poolwise.plan.signals.failing import Failing
from poolwise.plan.signals.sample import Sample

_log = structlog.get_logger(__name__)

NOBODY = Gateway(Front(None))
LOOKS_UNTIL_TOLD = 3
"""Failed looks at a replica in a row before a condition speaks of it: packets get lost. The number
of replicas does not fall from the first one on."""


@dataclass
class Known:
    """What is known of one service between two looks."""

    version: tuple[str, int] = ("", 0)
    """Uid and generation of the object that ``request`` was read from."""
    request: ServingRequest | None = None
    predictors: dict[str, tuple[tuple[Any, ...], Predictor]] = field(default_factory=dict)
    """By pool, with the placement that each is of."""
    predictor: Predictor | None = None
    """The first pool's, by which ``log_band`` was worked out."""
    log_band: float = 0.0
    """Half-width of ln(measured / predicted) time of a token there."""
    knowledge: Knowledge | None = None
    """None: not read from the status yet."""
    failures: dict[str, Failing] = field(default_factory=dict)
    """Failed looks in a row, by uid of the pod."""
    heard: frozenset[str] = frozenset()
    """Uids of pods that told, and are still there."""
    refused: Failing = field(default_factory=Failing)
    """Looks in a row of which something that was read is not believed."""
    looks: int = 0
    """Made by this process: a single one tells of no load."""
    told: MeasuredStatus | None = None
    """What the status says of the last look."""
    holding: Holding | None = None
    """What is known of the gateway before it; None: nobody has looked."""
    trust: Trust = field(default_factory=Trust)
    clients: Clients = field(default_factory=Clients)
    """What clients of that gateway saw lately."""
    start_seconds: dict[str, float] = field(default_factory=dict)
    """What a start took, by pool."""

    def recall(self, turn: Turn, now_seconds: float) -> Knowledge:
        """What this process knows; at its first look, what the one before wrote."""
        if self.knowledge is None:
            self.knowledge = recalled(mapping(turn.resource, "status"), now_seconds, turn.left)
            if self.knowledge.text:
                _log.info("goes on with what was learned", workload=str(turn.key))
        return self.knowledge


@dataclass(frozen=True, slots=True)
class Turn:
    """One service in one round."""

    key: Key
    resource: Object
    placed: Placed
    parts: tuple[Placed, ...]
    """The same service on further pools."""
    offers: tuple[Placed, ...]
    """Pools that it could go on to, without any replica yet."""
    rooms: Mapping[str, int]
    """For so many more replicas, by pool, where that is known."""
    by_maker: Mapping[str, str]
    """As :func:`poolwise.plan.live.seen.pool_by_maker`."""
    mode: Mode
    standstill: str | None
    """As :attr:`Plan.standstill`."""
    pods: tuple[Object, ...]
    targets: tuple[Target, ...]
    """Of the pods that have an address."""
    asked: Mapping[str, int] = field(default_factory=dict)
    """As :func:`poolwise.plan.live.seen.asked_for`."""
    gateway: Gateway = NOBODY
    left: int | None = None
    """Replicas that its disruption budget has drains of nodes leave; None: there is none yet."""

    @property
    def everyone(self) -> tuple[Target, ...]:
        """Who is asked: its replicas, and the gateway before it."""
        return (*self.targets, *self.gateway.targets)

    @property
    def is_asleep(self) -> bool:
        """Whether it has no replica, and none is asked for yet."""
        is_leaving = all("deletionTimestamp" in pod["metadata"] for pod in self.pods)
        return is_leaving and not any(self.held.values())

    @property
    def told_start_seconds(self) -> float | None:
        """What its status says a start takes on its first pool: an earlier process may know."""
        status = mapping(self.resource, "status")
        if mapping(status, "plan").get("pool") != self.placed.pool.name:
            return None
        return number(mapping(status, "scaling", "gateway"), "wakeUpSeconds")

    def is_routed(self, pools: Iterable[str]) -> bool:
        """Whether a gateway routes to its replicas on all of these pools, and so gives each as much
        as it bears."""
        key, spans_nodes = self.key, self.placed.record.nodes_per_replica > 1
        return self.gateway.front.takes_all(pod_labels(key, each, spans_nodes) for each in pools)

    def hear(self, told: Mapping[Target, Reply], known: Known, now_seconds: float) -> None:
        """What its gateway told goes into what is known."""
        looks = [
            look
            for target in self.gateway.targets
            if isinstance(look := told[target], PickerTold | Fault)
        ]
        front = self.gateway.front
        known.holding, known.trust = holding(
            front, self.gateway.unasked or looks, known.trust, now_seconds
        )
        if front.pool is None or front.reason is not None:  # whose clients, nobody can tell
            known.clients = Clients()
            return
        told_of = [each for each in looks if isinstance(each, PickerTold)]
        known.clients = known.clients.after(told_of, front.pool.name, now_seconds)

    def pods_on(self, placed: Placed) -> list[Object]:
        """Of the replicas on one pool."""
        return [pod for pod in self.pods if self._pool_of(pod) == placed.pool.name]

    def _pool_of(self, pod: Object) -> str:
        return pool_of(pod, self.by_maker, self.placed.pool.name)

    def overdue(self, start_timeout_seconds: float, now_seconds: float) -> dict[str, Overdue]:
        """Replicas that do not start, by pool: a node may take so long to come, and then an engine
        to load."""
        found, is_proven = dict[str, Overdue](), False
        for each in (self.placed, *self.parts):
            record, pods = each.record, self.pods_on(each)
            limit_seconds = start_timeout_seconds + (record.start_budget_seconds or 0)
            there = record.replicas or 0
            found[each.pool.name] = overdue(pods, there, limit_seconds, now_seconds, is_proven)
            is_proven |= any(ready_at(pod) is not None for pod in pods)
        return found

    def place(self, decision: Decision, log_band: float) -> Place:
        """Where its replicas are."""
        placed = self.placed
        limits = {Remark.AT_MAXIMUM, Remark.AT_CAPACITY, Remark.AT_COST_LIMIT}
        is_at_most = bool(limits & decision.remarks.keys())
        room, redundancy = placed.room(is_at_most), placed.request.redundancy
        return Place(placed.pool.name, room, log_band, redundancy)

    def in_full(self, decision: Decision, late: Mapping[str, Overdue], is_blind: bool) -> Decision:
        """With replicas in place of those that do not start, by pool; and whatever was decided, who
        is not seen is not taken away, up to ``maxReplicas``.

        What does not start on a further pool goes, since others make up for it elsewhere.
        """
        first = self.placed.pool.name
        counts = {
            each.pool.name: decision.by_pool.get(each.pool.name, 0)
            for each in (*self.parts, *self.offers)
        }
        here = decision.replicas - sum(counts.values()) + late[first].missing
        counts = {first: here, **counts}
        if is_blind:
            for each in (self.placed, *self.parts):
                name = each.pool.name
                counts[name] = max(counts[name], each.record.replicas or 0)
        bounded = self._bounded(counts)
        remarks = dict(decision.remarks)
        if bounded != counts:
            most = self.placed.request.most_replicas
            told = f"{sum(counts.values())} would stay, maxReplicas is {most}"
            remarks.setdefault(Remark.AT_MAXIMUM, told)
        total = sum(bounded.values())
        return replace(decision, replicas=total, by_pool=bounded, remarks=remarks)

    def _bounded(self, counts: Mapping[str, int]) -> dict[str, int]:
        """No more than ``maxReplicas`` on all pools: the dearest of the further ones go first."""
        first, most = self.placed.pool.name, self.placed.request.most_replicas
        here = min(counts[first], max(most, 1))
        costs = {each.pool.name: each.cost_per_hour for each in (*self.parts, *self.offers)}
        further = {pool: count for pool, count in counts.items() if pool != first}
        return {first: here, **within(further, costs, most - here)}

    def with_one(self, decision: Decision) -> Decision:
        """Of one that sleeps while a request waits and no room is free: its first replica is asked
        for even so, since nodes may come for it."""
        return replace(decision, replicas=1, by_pool={self.placed.pool.name: 1})

    @property
    def held(self) -> dict[str, int]:
        """Replicas by pool, as they were asked for."""
        return {self.placed.pool.name: self.placed.record.replicas or 0, **self.held_elsewhere}

    @property
    def held_elsewhere(self) -> dict[str, int]:
        """Replicas on further pools, as they were asked for."""
        return {each.pool.name: each.record.replicas or 0 for each in self.parts}

    def seen(
        self, told: Mapping[Target, Reply], known: Known, late: Overdue, now_seconds: float
    ) -> tuple[Seen, Mapping[str, str]]:
        """What is seen, and which replicas have not told for several looks in a row."""
        replicas = {
            pod["metadata"]["uid"]: by_our_clock(replica_seen(pod, self._pool_of(pod)), now_seconds)
            for pod in self.pods
        }
        looks: dict[str, Reply] = {target.uid: told[target] for target in self.targets}
        looks |= {uid: Fault("has no address yet") for uid in replicas if uid not in looks}
        ready = {uid for uid, each in replicas.items() if each.phase is Phase.READY}
        faults = {
            uid: look.reason
            for uid, look in looks.items()
            if isinstance(look, Fault) and uid in ready
        }
        known.failures = {
            uid: known.failures.get(uid, Failing()).after(reason, now_seconds)
            for uid, reason in faults.items()
        }
        seen = Seen(
            now_seconds=now_seconds,
            replicas=tuple(
                without_surge(
                    (each for each in replicas.values() if each.name not in late.names), self.asked
                )
            ),
            samples={look.replica: look for look in looks.values() if isinstance(look, Sample)},
            broken={replicas[uid].name: reason for uid, reason in faults.items()},
            held_requests=known.holding.held_requests if known.holding else 0.0,
        )
        heard = (uid for uid, look in looks.items() if isinstance(look, Sample))
        known.heard = known.heard.union(heard) & replicas.keys()
        lasting = ((uid, each) for uid, each in known.failures.items() if _lasts(each))
        return seen, {replicas[uid].name: each.reason for uid, each in lasting}


def missed(known: Known) -> int:
    """Replicas that told before, and have failed to for fewer looks than a condition speaks of."""
    return sum(uid in known.heard and not _lasts(each) for uid, each in known.failures.items())


def refused(known: Known, decision: Decision, seen: Seen) -> str:
    """What was read and is not believed, for several looks in a row: counters that went back, or
    more than one replica can have done; empty where all is, or nothing was read."""
    why = decision.remarks.get(Remark.METRICS_BROKEN)
    if why is None or seen.broken:
        known.refused = Failing()
        return ""
    known.refused = known.refused.after(why, seen.now_seconds)
    return known.refused.reason if _lasts(known.refused) else ""


def _lasts(failing: Failing) -> bool:
    return failing.looks >= LOOKS_UNTIL_TOLD
