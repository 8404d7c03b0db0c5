"""Records and labels that somebody took from the child of a run, or damaged.

Who runs without a record would be planned anew beside its own pods. The pods of a run cannot
change, so its record follows from their template once more: the layout stands in their variables,
what each asks for in their requests. Where they are, they tell themselves; those without a node
are taken for waiting for one. What a queue still holds back has no pods, and is made anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from poolwise.model.work import TrainingLayout
from poolwise.plan.amounts import held_by
from poolwise.plan.children.environment import NODES, layout_told
from poolwise.plan.children.train_job import MANAGER
from poolwise.plan.decision import Claim, Key, Kind, PlacementRecord
from poolwise.plan.entries import Entry
from poolwise.plan.kueue.admission import is_held, is_queued
from poolwise.plan.kueue.record import Queueing
from poolwise.plan.kueue.words import PRIORITY_LABEL, QUEUE_LABEL
from poolwise.plan.ledger.capacity_pods import Usage, requests, settled, usage_by_node
from poolwise.plan.ledger.growth import MARK
from poolwise.plan.names import CHILD_LABELS, PLACEMENT, POOL, pool_label
from poolwise.plan.observed import Manifest, Object
from poolwise.plan.pool import Pool
from poolwise.plan.reading import controller_uid, mapping, objects, texts
from poolwise.plan.records.placement_record import parse
from poolwise.plan.records.running import CHILD_KINDS
from poolwise.plan.records.runtimes import Runtime


def with_records(
    entries: Iterable[Entry],
    children: Sequence[Object],
    pods: Sequence[Object],
    pools: Sequence[Pool],
) -> Iterator[Entry]:
    """Entries, those that lost their record with what it told."""
    for entry in entries:
        if _is_lost(entry):
            record = _record(entry, children, pods, pools)
            entry = replace(entry, state=replace(entry.state, record=record))
        yield entry


def written_again(live: Object, desired: Object, key: Key) -> Manifest:
    """What puts our labels and the record back on the child of a run, as a merge patch; empty where
    they are there, or would tell of pods elsewhere."""
    labels, annotations = _lost_labels(live, desired), {}
    told = mapping(live, "metadata", "annotations").get(PLACEMENT)
    if parse(told if isinstance(told, str) else None, key) is None:
        annotations = {PLACEMENT: desired["metadata"]["annotations"][PLACEMENT]}
    if not (labels or annotations) or is_held(live):
        return {}
    pods = _pods(live)
    if pods is None or pods.pool != texts(desired, "metadata", "labels").get(POOL):
        return {}
    changes = {"labels": labels, "annotations": annotations}
    return {"metadata": {field: values for field, values in changes.items() if values}}


def _lost_labels(live: Object, desired: Object) -> dict[str, str]:
    """Those of ours that are not there, or were written over."""
    there, wanted = (texts(each, "metadata", "labels") for each in (live, desired))
    return {name: wanted[name] for name in CHILD_LABELS if there.get(name) != wanted.get(name)}


@dataclass(frozen=True, slots=True)
class _Pods:
    """What the template of a gang tells of every rank."""

    count: int
    pool: str
    """The label of its pool."""
    layout: TrainingLayout
    usage: Usage
    """Of one."""
    selector: dict[str, str]

    @property
    def resource(self) -> str | None:
        """What its accelerators are called, where no other device is asked for so often."""
        own = self.usage.accelerators.items()
        found = [name for name, each in own if each * self.count == self.layout.count]
        return found[0] if len(found) == 1 else None


def _is_lost(entry: Entry) -> bool:
    """Whether it runs, and has nothing that tells where; a service is planned again."""
    state, is_run = entry.state, entry.identity.key.kind is Kind.TRAINING_JOB
    return is_run and state.is_live and state.record is None and state.end is None


def _record(
    entry: Entry, children: Sequence[Object], pods: Sequence[Object], pools: Sequence[Pool]
) -> PlacementRecord | None:
    key = entry.identity.key
    kinds = CHILD_KINDS[key.kind]
    own = (each for each in children if controller_uid(each) == entry.identity.uid)
    child = next((each for each in own if each.get("kind") in kinds), None)
    rank = _pods(child) if child is not None and not is_held(child) else None
    if child is None or rank is None:
        return None
    pool = next((each for each in pools if pool_label(each.name) == rank.pool), None)
    resource = pool.resource if pool else rank.resource
    count = rank.count * rank.usage.accelerators.get(resource or "", 0)
    if not count:
        return None
    claim = _claim(key, pool.name if pool else rank.pool, rank, resource, pods)
    label = pool.node_selector.items() if pool else rank.selector.items()
    beyond = {name: value for name, value in rank.selector.items() if (name, value) not in label}
    queue = _queue(child, beyond)
    return PlacementRecord(
        generation=entry.identity.generation,
        accelerator=(pool.accelerator if pool else resource) or "",
        resource=resource,
        count=count,
        replicas=None,
        layout=rank.layout,
        claim=claim,
        domain={} if queue else beyond,
        queue=queue,
        runtime=None if child["kind"] == Runtime.JOB else str(child["kind"]),
    )


def _claim(key: Key, pool: str, rank: _Pods, resource: str | None, pods: Sequence[Object]) -> Claim:
    """Where the ranks are; those without a node on ones that are still to come."""
    nodes = [f"{MARK}{pool}-{index:04}" for index in range(rank.count)]
    devices, usage = rank.usage.accelerators.get(resource or "", 0), rank.usage
    to_come = Claim(
        key,
        pool,
        dict.fromkeys(nodes, devices),
        dict.fromkeys(nodes, usage.cores) if usage.cores else {},
        dict.fromkeys(nodes, usage.memory_bytes) if usage.memory_bytes else {},
        resource,
        held_by(dict.fromkeys(nodes, 1), usage.beside(resource)),
    )
    _, bound = usage_by_node(pods, {key: pool})
    claim = settled(to_come, resource, bound.get(key, {}))
    is_whole = sum(claim.accelerators_by_node.values()) == devices * rank.count
    return claim if is_whole else to_come  # some run beside those that take their place


def _queue(child: Object, selector: dict[str, str]) -> Queueing | None:
    labels = texts(child, "metadata", "labels")
    if not is_queued(child):
        return None
    return Queueing(labels[QUEUE_LABEL], selector, labels.get(PRIORITY_LABEL, ""))


def _pods(child: Object) -> _Pods | None:
    """None for a template that is none of ours."""
    template, container = _template(child)
    asked = {"containers": [{"resources": container.get("resources")}]}
    told = {str(each.get("name")): each.get("value") for each in objects(container, "env")}
    try:
        return _Pods(
            count=int(told[NODES] or 0),
            pool=texts(template, "metadata", "labels")[POOL],
            layout=layout_told(told),
            usage=requests({"spec": asked}),
            selector=texts(template, "spec", "nodeSelector"),
        )
    except (LookupError, ValueError):
        return None


def _template(child: Object) -> tuple[Object, Object]:
    """The pods' template, and the container that trains."""
    spec = mapping(child, "spec")
    if child.get("kind") == Runtime.TRAIN_JOB:
        ours = (each for each in objects(spec, "runtimePatches") if each.get("manager") == MANAGER)
        patched = mapping(next(ours, None), "trainingRuntimeSpec", "template")
        trainer = mapping(spec, "trainer")
        asked = mapping(trainer, "resourcesPerNode")
        return _of_first_job(mapping(patched, "spec")), {**trainer, "resources": asked}
    template = (
        _of_first_job(spec) if child.get("kind") == Runtime.JOB_SET else mapping(spec, "template")
    )
    return template, next(iter(objects(template, "spec", "containers")), {})


def _of_first_job(job_set: Object) -> Object:
    """All of them have the same pods."""
    job = next(iter(objects(job_set, "replicatedJobs")), None)
    return mapping(job, "template", "spec", "template")
