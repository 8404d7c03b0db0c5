"""What is known of the cluster, of every kind, from watches and own writes.

Two things keep a decision from being made twice: the answer to an own write is stored at once
(``put``), and a write that is under way counts already (``expect``), so that the next plan cannot
promise the same accelerators again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
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
    RUNS,
    TRAINING_JOBS,
    TRAINING_RUNTIMES,
    WATCHED,
    WORKLOADS,
    Resource,
    owner_uid,
)
from poolwise.cluster.store import Name, Store, index_of, name_of
from poolwise.plan.children.cleanup import has_told_its_end
from poolwise.plan.decision import Key
from poolwise.plan.names import DISCOVERED, OWNER_KIND, OWNER_NAME
from poolwise.plan.observed import Object, Observed, Queues
from poolwise.plan.reading import is_true, mapping
from poolwise.plan.records.running import ENDS

_WORKLOADS = {resource.kind: resource for resource in WORKLOADS}


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
        self._expected: dict[tuple[Resource, Name], Object] = {}
        self._ended: dict[str, Object] = {}
        """What ran a TrainingJob to its end and went before the job's status told so, by the job's
        uid: nothing else knows that it is over."""

    def put(self, resource: Resource, document: Object) -> bool:
        """Remember an object; whether anything changed that anybody reads."""
        if resource == TRAINING_JOBS and has_told_its_end(document):
            self._ended.pop(document["metadata"]["uid"], None)
        return self.stores[resource].put(pruned(resource, document))

    def remove(self, resource: Resource, document: Object, *, for_good: bool = False) -> bool:
        """Forget an object; whether it was known. Of a run that ended, its end is kept until the
        status of the job tells it."""
        job = self._job_ended_by(resource, document)
        if job is not None:
            self._ended[job["metadata"]["uid"]] = pruned(resource, document)
        elif resource == TRAINING_JOBS:
            self._ended.pop(document["metadata"]["uid"], None)
        return self.stores[resource].remove(document, for_good=for_good)

    def _job_ended_by(self, resource: Resource, document: Object) -> Object | None:
        """The TrainingJob whose end a child tells, while its status does not."""
        if resource not in RUNS or not is_true(mapping(document, "status"), *ENDS):
            return None
        owner = owner_uid(document)
        jobs = (job for job in self.stores[TRAINING_JOBS] if job["metadata"]["uid"] == owner)
        return next((job for job in jobs if not has_told_its_end(job)), None)

    def get(self, resource: Resource, namespace: str | None, name: str) -> Object | None:
        """The object of that name."""
        return self.stores[resource].get((namespace, name))

    def children_of(self, uid: str) -> list[Object]:
        """Live objects whose controller has that uid."""
        return [child for kind in CHILDREN for child in self.stores[kind].with_index(uid)]

    def ended_of(self, uid: str) -> list[Object]:
        """What ran the TrainingJob of that uid to its end and is gone, until its status tells."""
        return [self._ended[uid]] if uid in self._ended else []

    def runners(self) -> list[Resource]:
        """Kinds that run pods, of those that can be used now."""
        return [each for each in RUNNERS if each in WATCHED or each.group in self.apis]

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
        """Count ``child`` as there until :meth:`unexpect`, or until it is; a live one (with its
        uid) as what it is changed to until :meth:`unexpect`."""
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
            children=(
                *(child for kind in RUNNERS for child in self._children(kind)),
                *self._ended.values(),
            ),
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
        """Live ones, and those that are expected: as they will be where they are changed, and also
        beside one of an earlier workload of that name, which is yet to go."""
        live = {(name_of(child), owner_uid(child)): child for child in self.stores[resource]}
        expected = {
            (name, owner_uid(child)): child
            for (kind, name), child in self._expected.items()
            if kind == resource
        }
        changed = {which: child for which, child in expected.items() if "uid" in child["metadata"]}
        return (expected | live | changed).values()

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
    return is_true(mapping(workload, "status"), "Finished")


def is_discovered(pool: Object) -> bool:
    """Whether Poolwise made this AcceleratorPool, from labels."""
    labels = pool["metadata"].get("labels") or {}
    return bool(labels.get(DISCOVERED) == "true")
