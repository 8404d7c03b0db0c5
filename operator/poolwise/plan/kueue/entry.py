"""Which jobs wait in a queue, what Kueue says of them, and what is against them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from poolwise.plan.conditions import Reason
from poolwise.plan.decision import Key
from poolwise.plan.kueue.admission import admission, is_held, is_queued
from poolwise.plan.kueue.pinning import Pin, pin
from poolwise.plan.kueue.reading import Books, ClusterQueue
from poolwise.plan.kueue.record import Admission
from poolwise.plan.names import KUEUE
from poolwise.plan.observed import Object, Observed
from poolwise.plan.pool import Pool
from poolwise.plan.reading import controller_uid, mapping, name_of
from poolwise.plan.requests.request import Workload

POOLS_NAMED = 3


@dataclass(frozen=True, slots=True)
class InQueue:
    """One job that names a queue where Kueue is served, or that was made for one."""

    name: str
    refusal: tuple[Reason, str] | None = None
    """What somebody has to change before it can wait at all."""
    admission: Admission | None = None
    """What Kueue says; None before there is a child."""
    pins: Mapping[str, Pin | str] = field(default_factory=dict)
    """By pool: how a child is kept to it, or why it cannot be."""
    priority: str = ""
    is_pod_priority: bool = True
    is_orphaned: bool = False
    """Its child waits for a Kueue that is gone: it is made anew, without a queue."""

    @property
    def holds(self) -> bool:
        """Whether it has what it was placed on."""
        return self.admission is not None and self.admission.is_reserved

    @property
    def is_planned_here(self) -> bool:
        """Whether it is planned as a job that waits for Kueue."""
        return not self.is_orphaned and self.refusal is None


@dataclass(frozen=True, slots=True)
class Lobby:
    """All that is known of queues in one pass."""

    observed: Observed
    books: Books
    pools: Sequence[Pool]
    children: Mapping[str, Object]
    """Those that Kueue decides about, by the uid of their TrainingJob."""
    workloads: Mapping[str, Object]
    """Kueue's, by the uid of the child."""

    def entry(self, job: Object, wanted: Workload) -> InQueue | None:
        """Of one TrainingJob; None where no queue has a say."""
        spec = mapping(job, "spec")
        child = self.children.get(str(mapping(job, "metadata").get("uid")))
        name = str(spec.get("queueName") or "")
        if child is not None:
            return self._waiting(name, spec, child, wanted)
        if not name or wanted.is_plan_only:
            return None
        return self._newcomer(name, spec, wanted)

    def _waiting(
        self, name: str, spec: Mapping[str, Any], child: Object, wanted: Workload
    ) -> InQueue:
        if KUEUE not in self.observed.apis and KUEUE not in self.observed.apis_off:
            # What runs was let in while there was a queue; what does not will never be let in.
            seen = None if is_held(child) else admission(child, None)
            return InQueue(name, admission=seen, is_orphaned=is_held(child))
        uid = str(mapping(child, "metadata").get("uid"))
        seen = admission(child, self.workloads.get(uid))
        if seen.is_reserved:
            return InQueue(name, admission=seen)
        return self._judged(InQueue(name, admission=seen), spec, wanted)

    def _newcomer(self, name: str, spec: Mapping[str, Any], wanted: Workload) -> InQueue | None:
        if KUEUE not in self.observed.apis and KUEUE not in self.observed.apis_off:
            return None  # placed without a queue; its status says so
        return self._judged(InQueue(name), spec, wanted)

    def _judged(self, found: InQueue, spec: Mapping[str, Any], wanted: Workload) -> InQueue:
        """With the queue's pools, or with what is against it."""
        off = self.observed.apis_off.get(KUEUE)
        if off is not None:
            return _refused(found, Reason.KUEUE_UNAVAILABLE, off)
        queue = self._cluster_queue(found.name, wanted.identity.key)
        if isinstance(queue, str):
            return _refused(found, Reason.QUEUE_NOT_FOUND, queue)
        pins = {each.name: pin(each, queue, _asks(each, wanted)) for each in self._fit_for_work()}
        if pins and not any(isinstance(each, Pin) for each in pins.values()):
            return _refused(found, Reason.POOL_LABEL_NOT_IN_FLAVOR, self._no_flavor(queue, pins))
        given = spec.get("priorityClassName")
        classes = set(map(name_of, self.observed.priority_classes))
        return InQueue(
            found.name,
            admission=found.admission,
            pins=pins,
            priority=given if given in self.books.priorities else "",
            is_pod_priority=given in classes or given not in self.books.priorities,
        )

    def _cluster_queue(self, name: str, key: Key) -> ClusterQueue | str:
        target = self.books.local.get((key.namespace, name))
        if target is None:
            known = self.books.local_names(key.namespace)
            told = f"spec.queueName: there is no LocalQueue {name} in namespace {key.namespace}"
            return told + _nearest(name, known, "which has")
        queue = self.books.cluster.get(target)
        if queue is not None:
            return queue
        told = f"LocalQueue {name} is of ClusterQueue {target}, which does not exist"
        return told + _nearest(target, sorted(self.books.cluster), "there is")

    def _fit_for_work(self) -> Iterable[Pool]:
        """Pools that training could run on as far as their kind goes."""
        return (pool for pool in self.pools if pool.resource is not None)

    def _no_flavor(self, queue: ClusterQueue, pins: Mapping[str, Pin | str]) -> str:
        keys = sorted({key for flavor in queue.flavors for key in flavor.labels})
        goes_by = f"its flavors go by {', '.join(keys)}" if keys else "its flavors have no labels"
        named = [f"{name}: {why}" for name, why in list(pins.items())[:POOLS_NAMED]]
        first = next(pool for pool in self.pools if pool.name in pins)
        labels = ", ".join(f"{key}: {value}" for key, value in sorted(first.node_selector.items()))
        return (
            f"ClusterQueue {queue.name} leads to no pool; {goes_by}. {'; '.join(named)}. "
            f"A ResourceFlavor with nodeLabels {{{labels}}} and quota for {first.resource} would "
            f"stand for {first.name}"
        )


def lobby(observed: Observed, pools: Sequence[Pool], books: Books) -> Lobby:
    """What is known of queues."""
    return Lobby(
        observed,
        books,
        pools,
        children={
            owner: child
            for child in observed.children
            if is_queued(child) and (owner := controller_uid(child))
        },
        workloads={
            owner: workload
            for workload in observed.queues.workloads
            if (owner := controller_uid(workload))
        },
    )


def _refused(found: InQueue, reason: Reason, told: str) -> InQueue:
    return InQueue(found.name, refusal=(reason, told), admission=found.admission)


def _asks(pool: Pool, wanted: Workload) -> list[str]:
    """Resources that the pods ask for, the accelerator first."""
    pod = wanted.request.pod
    beside = [*(["cpu"] if pod.cores else []), *(["memory"] if pod.memory_bytes else [])]
    return [pool.resource or "cpu", *beside, *(name for name, _ in pod.others)]


def _nearest(name: str, known: Sequence[str], has: str) -> str:
    if not known:
        return f", {has} none"
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f"; did you mean {near[0]}?" if near else f", {has} {', '.join(known[:POOLS_NAMED])}"
