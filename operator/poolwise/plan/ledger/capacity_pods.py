"""What pods hold of their nodes: foreign ones as they are, our own where they really run.

The scheduler may bind a pod to another node of the pool than the claim named. A claim is
therefore settled: it counts where its pods are bound, and only its rest where it was promised.
"""

from __future__ import annotations

import math
import operator
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from poolwise.plan.amounts import OWN_FIELDS, PODS, Amounts, Held, join_held
from poolwise.plan.decision import Claim, Holding, Key, Part
from poolwise.plan.memo import Memo
from poolwise.plan.names import (
    FIELD_MANAGER,
    MANAGED_BY,
    OWNER_KIND,
    OWNER_NAME,
    POOL,
    child_name,
    pool_label,
)
from poolwise.plan.observed import Object
from poolwise.plan.reading import amount, mapping, moment_of, objects

FINISHED_PHASES = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class Usage:
    """Resources that something holds on one node."""

    accelerators: Mapping[str, int] = field(default_factory=dict)
    """By extended resource, those of other devices included: which of them is the accelerator is
    for the pool to say."""
    cores: float = 0.0
    memory_bytes: float = 0.0
    others: Mapping[str, float] = field(default_factory=dict)
    """By resource that is none of these, such as local storage and pods."""

    def __add__(self, other: Usage) -> Usage:
        if other is NOTHING:
            return self
        return other if self is NOTHING else self._each(other, operator.add)

    def __or__(self, other: Usage) -> Usage:
        """The larger of both, resource by resource."""
        return self if other is NOTHING else self._each(other, max)

    def _each(self, other: Usage, join: Callable[[Any, Any], Any]) -> Usage:
        return Usage(
            _joined(self.accelerators, other.accelerators, join),
            join(self.cores, other.cores),
            join(self.memory_bytes, other.memory_bytes),
            _joined(self.others, other.others, join),
        )

    def beside(self, resource: str | None) -> Amounts:
        """All but cores, memory and the accelerator of that name."""
        every = {**self.accelerators, **self.others}
        return tuple(sorted((name, n) for name, n in every.items() if n and name != resource))


def _joined(
    one: Mapping[str, Any], other: Mapping[str, Any], join: Callable[[Any, Any], Any]
) -> dict[str, Any]:
    return {name: join(one.get(name, 0), other.get(name, 0)) for name in {**one, **other}}


_NONE: Mapping[str, int] = {}
NOTHING, ONE_POD = Usage(), Usage(others={PODS: 1})
ByNode = Mapping[str, Usage]


_Held = tuple[str, object, str, float, Usage]
"""Node, whose pod it is, the label of its pool, since when it is there, and what it holds."""


class _Sum:
    """Usages of pods added up in place, and the pods: a cluster has ten thousand."""

    __slots__ = ("_accelerators", "_cores", "_memory_bytes", "_others", "_pods")

    def __init__(self) -> None:
        self._accelerators: dict[str, int] = {}
        self._cores = self._memory_bytes = 0.0
        self._others: dict[str, float] = {}
        self._pods = 0

    def add(self, usage: Usage) -> None:
        for name, count in usage.accelerators.items():
            self._accelerators[name] = self._accelerators.get(name, 0) + count
        self._cores += usage.cores
        self._memory_bytes += usage.memory_bytes
        self._pods += 1
        if usage.others:
            for name, amount in usage.others.items():
                self._others[name] = self._others.get(name, 0.0) + amount

    def usage(self) -> Usage:
        others = {**self._others, PODS: self._pods}
        return Usage(self._accelerators, self._cores, self._memory_bytes, others)


def usage_by_node(
    pods: Iterable[Object],
    running: Mapping[Holding, str],
    since_seconds: Mapping[Key, float] = MappingProxyType({}),
    memo: Memo | None = None,
) -> tuple[ByNode, Mapping[Holding, ByNode]]:
    """What bound, unfinished pods hold by node: foreign ones, and those of running workloads, where
    pods of services on further pools count for themselves.

    A pod that calls itself ours without a running workload behind it (a leftover, a forgery) is
    foreign: it holds its devices whatever its labels say. So is one of another pool, which its
    workload has left, and where it is yet to end, and one that was there before the workload.

    :param running: the pool of each.
    :param since_seconds: as :attr:`~poolwise.plan.records.running.State.pods_since_seconds`.
    """
    known = {each: each if isinstance(each, Key) else each[0] for each in running}
    owners: Mapping[object, Key] = {owner_labels(key): key for key in known.values()}
    memo = Memo() if memo is None else memo
    all_held = memo.pods.each(pods, _held)
    places = {(known[each], pool_label(pool)): each for each, pool in running.items()}
    question = (all_held, owners, places, since_seconds)
    return memo.usage.of(question, lambda: _usage_by_node(*question))


def _usage_by_node(
    all_held: Iterable[_Held | None],
    owners: Mapping[object, Key],
    places: Mapping[Part, Holding],
    since_seconds: Mapping[Key, float],
) -> tuple[ByNode, Mapping[Holding, ByNode]]:
    sums: defaultdict[Holding | None, defaultdict[str, _Sum]]
    sums = defaultdict(lambda: defaultdict(_Sum))
    for held in all_held:
        if held is not None:
            node, labels, pool, made_seconds, usage = held
            key = owners.get(labels)
            if key is not None and made_seconds < since_seconds.get(key, -math.inf):
                key = None
            sums[places.get((key, pool)) if key else None][node].add(usage)
    found = {
        owner: {node: total.usage() for node, total in by_node.items()}
        for owner, by_node in sums.items()
    }
    foreign = found.pop(None, {})
    return foreign, {key: by_node for key, by_node in found.items() if key is not None}


def _held(pod: Object) -> _Held | None:
    """The node of a bound, unfinished pod, whose pod it says to be, and what it holds."""
    node = node_held_by(pod)
    if node is None:
        return None
    made = moment_of(mapping(pod, "metadata").get("creationTimestamp"))
    pool = str(mapping(pod, "metadata", "labels").get(POOL))
    return node, owner_of(pod), pool, made.timestamp() if made else math.inf, requests(pod)


def settled(claim: Claim, resource: str | None, bound: ByNode) -> Claim:
    """The claim where its pods are bound, and its rest on the nodes that it named.

    Never less than what the pods hold: an update may run old and new ones side by side.
    """
    if not bound:
        return claim
    accelerators = {node: use.accelerators.get(resource or "", 0) for node, use in bound.items()}
    return replace(
        claim,
        accelerators_by_node={
            node: round(count)
            for node, count in _settled(claim.accelerators_by_node, accelerators).items()
        },
        cores_by_node=_settled(
            claim.cores_by_node, {node: use.cores for node, use in bound.items()}
        ),
        memory_bytes_by_node=_settled(
            claim.memory_bytes_by_node, {node: use.memory_bytes for node, use in bound.items()}
        ),
        others=join_held(claim.others, _others(bound, resource), _settled),
    )


def _others(bound: ByNode, resource: str | None) -> Held:
    """What pods hold of all else, those included that somebody added to them."""
    held: defaultdict[str, dict[str, float]] = defaultdict(dict)
    for node, usage in bound.items():
        for name, asked in usage.beside(resource):
            held[name][node] = asked
    return held


def requests(pod: Object) -> Usage:
    """What the scheduler counts for a pod.

    The larger of what regular and sidecar containers ask together and what any init container
    asks beside the sidecars started before it; the pod's own requests replace sums of cores,
    memory and huge pages; overhead comes on top. Source: kubernetes/component-helpers,
    resource.PodRequests. That it takes one of the node's pods is not in it.
    """
    spec = mapping(pod, "spec")
    running = NOTHING
    for container in objects(spec, "containers"):
        running += _asked(container)
    starting = sidecars = NOTHING
    for container in objects(spec, "initContainers"):
        if container.get("restartPolicy") == "Always":
            sidecars += _asked(container)
        else:
            starting |= sidecars + _asked(container)
    total = (running + sidecars) | starting
    own = _asked(spec)
    if own is not NOTHING:
        total = replace(
            total,
            cores=own.cores or total.cores,
            memory_bytes=own.memory_bytes or total.memory_bytes,
            others={**total.others, **own.others},
        )
    return total + _usage(mapping(spec, "overhead"))


def owner_of(pod: Object) -> tuple[str, str, str] | None:
    """Kind, namespace and shortened name of the workload whose labels a pod carries."""
    labels = mapping(pod, "metadata", "labels")
    if labels.get(MANAGED_BY) != FIELD_MANAGER:
        return None
    kind, name = str(labels.get(OWNER_KIND)), str(labels.get(OWNER_NAME))
    return kind, str(mapping(pod, "metadata").get("namespace")), name


def owner_labels(key: Key) -> tuple[str, str, str]:
    """What :func:`owner_of` tells of the pods of a workload."""
    return key.kind.value, key.namespace, child_name(key.name)


def node_held_by(pod: Object) -> str | None:
    """The node that a pod is bound to and has not finished on."""
    finished = mapping(pod, "status").get("phase") in FINISHED_PHASES
    node = mapping(pod, "spec").get("nodeName")
    return node if isinstance(node, str) and not finished else None


def _asked(container: Mapping[str, Any]) -> Usage:
    """Requests, where a limit without a request counts as one (as the API server defaults)."""
    resources = mapping(container, "resources")
    if not resources:
        return NOTHING
    return _usage({**mapping(resources, "limits"), **mapping(resources, "requests")})


def _usage(quantities: Mapping[str, Any]) -> Usage:
    if not quantities:
        return NOTHING
    cores, memory_bytes = amount(quantities.get("cpu", 0)), amount(quantities.get("memory", 0))
    if quantities.keys() <= OWN_FIELDS:  # as most pods' are
        return Usage(_NONE, cores, memory_bytes, _NONE)
    others = {name: amount(text) for name, text in quantities.items() if name not in OWN_FIELDS}
    return Usage(
        {name: int(count) for name, count in others.items() if "/" in name},
        cores,
        memory_bytes,
        {name: count for name, count in others.items() if "/" not in name},
    )


def _settled(held: Mapping[str, float], bound: Mapping[str, float]) -> dict[str, float]:
    rest = max(0.0, sum(held.values()) - sum(bound.values()))
    result = dict(bound)
    for node, claimed in sorted(held.items()):
        here = min(rest, max(0.0, claimed - bound.get(node, 0)))
        result[node] = result.get(node, 0) + here
        rest -= here
    return {node: amount for node, amount in result.items() if amount}
