"""What is known of the cluster: the newest version of each object, from watches and own writes.

Three things a plain dict would get wrong:

- An own write is stored at once (``put`` of its answer), and events that are older than it are
  ignored, so that a decision never repeats what was just done.
- An object that was deleted does not come back by a late event of its earlier life.
- A write that is under way counts already (``expect``), so that the next plan cannot promise the
  same accelerators again.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Collection, Hashable, Iterable, Iterator
from types import MappingProxyType

from poolwise.cluster.pruning import pruned
from poolwise.cluster.resources import (
    ACCELERATOR_POOLS,
    ADMISSION_CHECKS,
    AUTOSCALERS,
    CACHED,
    CHILDREN,
    CLUSTER_QUEUES,
    CLUSTER_TRAINING_RUNTIMES,
    FAILED_CREATIONS,
    INFERENCE_SERVICES,
    LOCAL_QUEUES,
    NODES,
    PODS,
    PRIORITY_CLASSES,
    QUEUE_PRIORITIES,
    QUEUED,
    RESOURCE_FLAVORS,
    RUNNERS,
    TRAINING_JOBS,
    TRAINING_RUNTIMES,
    WORKLOADS,
    Resource,
    owner_uid,
)
from poolwise.plan.decision import Key
from poolwise.plan.names import DISCOVERED, OWNER_KIND, OWNER_NAME, child_name
from poolwise.plan.observed import Object, Observed, Queues

Name = tuple[str | None, str]
"""Namespace and name."""

_WORKLOADS = {resource.kind: resource for resource in WORKLOADS}

_GRAVES = 4096
"""Deleted objects that are remembered by uid: more than events can be late for."""
_FUTILE = 4
"""Writes without effect that are remembered of an object: its parts are written apart."""


def name_of(document: Object) -> Name:
    """Key of an object within its kind."""
    metadata = document["metadata"]
    return metadata.get("namespace"), metadata["name"]


_State = tuple[str, str | None]
"""Uid and version."""


class Store:
    """Objects of one kind by name, and by one attribute that they are looked up by; and which
    writes would change nothing about them."""

    def __init__(self) -> None:
        self._objects: dict[Name, Object] = {}
        self._by_index: dict[Hashable, dict[Name, Object]] = defaultdict(dict)
        self._graves: dict[str, None] = {}
        self._futile: dict[Name, tuple[_State, deque[Object]]] = {}

    def __iter__(self) -> Iterator[Object]:
        return iter(list(self._objects.values()))

    def __len__(self) -> int:
        return len(self._objects)

    def get(self, name: Name) -> Object | None:
        """The object of that name."""
        return self._objects.get(name)

    def with_index(self, value: Hashable) -> list[Object]:
        """Objects whose :func:`index_of` is ``value``."""
        return list(self._by_index.get(value, {}).values())

    def put(self, document: Object) -> bool:
        """Remember ``document`` unless it is older than what is known; whether anything changed."""
        name = name_of(document)
        known = self._objects.get(name)
        if document["metadata"]["uid"] in self._graves or _is_older(document, known):
            return False
        self._forget(name)
        self._objects[name] = document
        self._by_index[index_of(document)][name] = document
        return known is None or _content(known) != _content(document)

    def remove(self, document: Object) -> bool:
        """Forget ``document``, for good; whether it was known."""
        uid = document["metadata"]["uid"]
        self._graves[uid] = None
        if len(self._graves) > _GRAVES:
            del self._graves[next(iter(self._graves))]
        known = self._objects.get(name_of(document))
        if known is None or known["metadata"]["uid"] != uid:
            return False
        self._forget(name_of(document))
        self._futile.pop(name_of(document), None)
        return True

    def is_futile(self, live: Object, write: Object) -> bool:
        """Whether ``write`` was tried on exactly this version of an object, and changed nothing."""
        state, writes = self._futile.get(name_of(live), (None, ()))
        return state == _state(live) and write in writes

    def found_futile(self, live: Object, write: Object) -> None:
        """``write`` changed nothing; remembered until the object changes or goes."""
        state, writes = self._futile.get(name_of(live), (None, deque[Object]()))
        if state != _state(live):
            writes = deque(maxlen=_FUTILE)
        writes.append(write)
        self._futile[name_of(live)] = _state(live), writes

    def _forget(self, name: Name) -> None:
        known = self._objects.pop(name, None)
        if known is not None:
            index = index_of(known)
            self._by_index[index].pop(name)
            if not self._by_index[index]:
                del self._by_index[index]


def index_of(document: Object) -> Hashable:
    """What an object is looked up by: children by their owner, pods and workloads by labels, Events
    by what they are about."""
    metadata, kind = document["metadata"], document["kind"]
    if kind == FAILED_CREATIONS.kind:
        return (document.get("regarding") or {}).get("uid")
    if kind == PODS.kind:
        labels = metadata.get("labels") or {}
        return metadata.get("namespace"), labels.get(OWNER_KIND), labels.get(OWNER_NAME)
    if kind in _WORKLOADS:
        return metadata.get("namespace"), kind, child_name(metadata["name"])
    return owner_uid(document)


def _state(document: Object) -> _State:
    metadata = document["metadata"]
    return metadata["uid"], metadata.get("resourceVersion")


def _is_older(document: Object, known: Object | None) -> bool:
    if known is None:
        return False
    versions = [each["metadata"].get("resourceVersion", "") for each in (document, known)]
    # Numbers by contract since Kubernetes 1.35, and in practice before; else trust the order.
    return all(each.isdigit() for each in versions) and int(versions[0]) < int(versions[1])


def _content(document: Object) -> tuple[Object, Object]:
    metadata = {
        field: value
        for field, value in document["metadata"].items()
        if field not in ("resourceVersion", "generation")
    }
    return metadata, {field: value for field, value in document.items() if field != "metadata"}


class Cache:
    """Every kind that Poolwise watches, and the children that are being written."""

    def __init__(self) -> None:
        self.stores = {resource: Store() for resource in CACHED}
        self.apis: dict[str, str] = {}
        """Version in use by group, of the optional APIs that can be used now."""
        self.apis_off: dict[str, str] = {}
        """Why one that is there cannot be used, by group."""
        self.scaling: dict[Key, int] = {}
        """Replicas that the load of services asks for, in mode Direct, where it is known."""
        self.overflow: dict[Key, dict[str, int]] = {}
        """The same on further pools, as :attr:`Observed.overflow`."""
        self.least_replicas: dict[Key, int | None] = {}
        """Replicas that meet the targets, of services that were looked at; None: not known."""
        self.synced = asyncio.Event()
        """Set once every kind was listed in full: no decision is made before."""
        self._expected: dict[tuple[Resource, Name], Object] = {}

    def put(self, resource: Resource, document: Object) -> bool:
        """Remember an object; whether anything changed that anybody reads."""
        return self.stores[resource].put(pruned(resource, document))

    def remove(self, resource: Resource, document: Object) -> bool:
        """Forget an object; whether it was known."""
        return self.stores[resource].remove(document)

    def get(self, resource: Resource, namespace: str | None, name: str) -> Object | None:
        """The object of that name."""
        return self.stores[resource].get((namespace, name))

    def children_of(self, uid: str) -> list[Object]:
        """Live objects whose controller has that uid."""
        return [child for kind in CHILDREN for child in self.stores[kind].with_index(uid)]

    def pods_of(self, workload: Object) -> list[Object]:
        """Pods that carry the workload's labels."""
        return self.stores[PODS].with_index(index_of(workload))

    def workloads_of(self, made: Object) -> list[Object]:
        """The workload whose labels a pod carries, or what runs pods."""
        metadata = made["metadata"]
        labels = metadata.get("labels") or {}
        resource = _WORKLOADS.get(labels.get(OWNER_KIND, ""))
        index = metadata.get("namespace"), labels.get(OWNER_KIND), labels.get(OWNER_NAME)
        return self.stores[resource].with_index(index) if resource else []

    def failed_creation_of(self, child: Object) -> Object | None:
        """The newest Event that tells why pods of ``child`` could not be created."""
        events = self.stores[FAILED_CREATIONS].with_index(child["metadata"]["uid"])
        return max(
            events, key=lambda each: str(each["metadata"]["creationTimestamp"]), default=None
        )

    def expect(self, resource: Resource, child: Object) -> None:
        """Count ``child`` as there until :meth:`unexpect`, or until it is."""
        self._expected[resource, name_of(child)] = child

    def unexpect(self, resource: Resource, name: Name) -> bool:
        """Stop counting it; whether it was counted."""
        return self._expected.pop((resource, name), None) is not None

    def observed(self) -> Observed:
        """One consistent view of everything, for the planner."""
        return Observed(
            nodes=tuple(self.stores[NODES]),
            pods=tuple(self.stores[PODS]),
            pools=tuple(pool for pool in self.stores[ACCELERATOR_POOLS] if not is_discovered(pool)),
            training_jobs=tuple(self.stores[TRAINING_JOBS]),
            inference_services=tuple(self.stores[INFERENCE_SERVICES]),
            priority_classes=tuple(self.stores[PRIORITY_CLASSES]),
            children=tuple(child for kind in RUNNERS for child in self._children(kind)),
            apis=MappingProxyType(dict(self.apis)),
            apis_off=MappingProxyType(dict(self.apis_off)),
            scaling=MappingProxyType(dict(self.scaling)),
            overflow=MappingProxyType({key: dict(each) for key, each in self.overflow.items()}),
            queues=self._queues(),
            autoscalers=tuple(self.stores[AUTOSCALERS]),
            training_runtimes=(
                *self.stores[CLUSTER_TRAINING_RUNTIMES],
                *self.stores[TRAINING_RUNTIMES],
            ),
        )

    def _queues(self) -> Queues:
        return Queues(
            local_queues=tuple(self.stores[LOCAL_QUEUES]),
            cluster_queues=tuple(self.stores[CLUSTER_QUEUES]),
            flavors=tuple(self.stores[RESOURCE_FLAVORS]),
            priorities=tuple(self.stores[QUEUE_PRIORITIES]),
            checks=tuple(self.stores[ADMISSION_CHECKS]),
            workloads=tuple(each for each in self.stores[QUEUED] if not _has_finished(each)),
        )

    def _children(self, resource: Resource) -> Iterable[Object]:
        live = {name_of(child): child for child in self.stores[resource]}
        expected = {
            name: child for (kind, name), child in self._expected.items() if kind == resource
        }
        return (expected | live).values()

    def uids(self, resource: Resource, namespace: str | None) -> set[str]:
        """Uids that are known, in one namespace or in all."""
        return {
            each["metadata"]["uid"]
            for each in self.stores[resource]
            if namespace in (None, each["metadata"].get("namespace"))
        }

    def clear(self, resource: Resource) -> list[Object]:
        """Forget a kind that is gone, with all its objects; those that were known."""
        known = list(self.stores[resource])
        self.stores[resource] = Store()
        return known

    def drop(self, resource: Resource, uids: Collection[str]) -> list[Object]:
        """Forget what a fresh list no longer has; the objects that are gone.

        kopf never learns of objects that vanish while its watch is interrupted (410 Gone).
        """
        gone = [each for each in self.stores[resource] if each["metadata"]["uid"] in uids]
        for document in gone:
            self.remove(resource, document)
        return gone


def _has_finished(workload: Object) -> bool:
    conditions = (workload.get("status") or {}).get("conditions") or []
    return any(each["type"] == "Finished" and each["status"] == "True" for each in conditions)


def is_discovered(pool: Object) -> bool:
    """Whether Poolwise made this AcceleratorPool, from labels."""
    labels = pool["metadata"].get("labels") or {}
    return bool(labels.get(DISCOVERED) == "true")
