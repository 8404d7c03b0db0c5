"""A child that waits for Kueue: what is written when it is made, and what may change until it runs.

It is made suspended, and never unsuspended by us: that is Kueue's word. What Kueue adds on
admission (the flavor's labels and tolerations) is left alone, since a child that runs is not
touched; so no field is fought over.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping
from typing import Any

from poolwise.plan.kueue.admission import is_held, is_queued
from poolwise.plan.kueue.record import Queueing
from poolwise.plan.kueue.words import GATE, PLANNER, PRIORITY_LABEL, QUEUE_LABEL, SECONDS_LABEL
from poolwise.plan.names import PLACEMENT, POOL
from poolwise.plan.observed import Manifest, Object

RUNS = ("Job", "JobSet", "TrainJob")
"""Kinds that Kueue starts for us; all of them have ``spec.suspend``."""
CHANGEABLE = ("Job", "JobSet")
"""Those whose pods' node selector and tolerations may change while they are suspended."""


def queued(child: Manifest, queue: Queueing | None, deadline_seconds: int | None) -> Manifest:
    """The child as Kueue wants it, where it is one that Kueue starts."""
    if queue is None or child["kind"] not in RUNS:
        return child
    labels = {QUEUE_LABEL: queue.name}
    if queue.priority:
        labels[PRIORITY_LABEL] = queue.priority
    if deadline_seconds:
        labels[SECONDS_LABEL] = str(deadline_seconds)
    metadata = child["metadata"]
    gate = {GATE: PLANNER} if queue.is_gated else {}
    made: Manifest = {
        **child,
        "metadata": {
            **metadata,
            "labels": {**metadata.get("labels", {}), **labels},
            "annotations": {**metadata.get("annotations", {}), **gate},
        },
        "spec": {**child["spec"], "suspend": True},
    }
    for template in templates(made):
        pod = template["spec"]
        pod["tolerations"] = [*pod.get("tolerations", ()), _mark(metadata["labels"][POOL])]
        if queue.priority and not queue.is_pod_priority:
            pod.pop("priorityClassName", None)
    return made


def _mark(pool: str) -> Manifest:
    """A toleration of a taint that no node has.

    Kueue takes a change of a waiting job over into its Workload where containers, counts or
    tolerations differ, and not where the node selector alone does (0.18, 0.19): then it would go on
    to look for the flavor of the earlier pool.
    """
    return {"key": POOL, "operator": "Equal", "value": pool}


def templates(child: Mapping[str, Any]) -> Iterator[Manifest]:
    """The pod templates of a Job or JobSet."""
    spec = child["spec"]
    if child["kind"] == "Job":
        yield spec["template"]
    elif child["kind"] == "JobSet":
        for each in spec["replicatedJobs"]:
            yield each["template"]["spec"]["template"]


def is_superseded(live: Object, desired: Object) -> bool:
    """Whether a child that does not run yet has to be made anew: other pods, or another queue."""
    if not is_held(live):
        return False
    if not is_queued(desired):
        return True
    before, after = _placement(live), _placement(desired)
    return before != after and (live["kind"] not in CHANGEABLE or _pods(before) != _pods(after))


def moves(live: Object, desired: Object) -> Manifest:
    """What changes on a child that does not run yet, as a merge patch; empty when nothing does.

    It names the version that it was made for: Kueue may have started the child meanwhile.
    """
    if not is_held(live) or _placement(live) == _placement(desired):
        return {}
    metadata, wanted = live["metadata"], desired["metadata"]
    gate = wanted["annotations"].get(GATE)
    changes: Manifest = {
        "metadata": {
            "resourceVersion": metadata["resourceVersion"],
            "labels": {POOL: wanted["labels"][POOL]},
            "annotations": {PLACEMENT: wanted["annotations"][PLACEMENT], GATE: gate},
        }
    }
    before, after = list(templates(live)), list(templates(desired))
    if all(_directives(b) == _directives(a) for b, a in zip(before, after, strict=True)):
        return changes
    return {**changes, "spec": _moved(live, after)}


def _moved(live: Object, wanted: list[Manifest]) -> Manifest:
    """The spec with the pods' way to their nodes as wanted."""
    if live["kind"] == "Job":
        (template,) = wanted
        old = live["spec"]["template"]["spec"].get("nodeSelector") or {}
        gone = dict.fromkeys(old.keys() - template["spec"].get("nodeSelector", {}).keys())
        spec = {**_directives(template)["spec"]}
        spec["nodeSelector"] = {**gone, **spec["nodeSelector"]}
        return {"template": {**_directives(template), "spec": spec}}
    sets = copy.deepcopy(live["spec"]["replicatedJobs"])
    for each, template in zip(sets, wanted, strict=True):
        pod = each["template"]["spec"]["template"]
        directives = _directives(template)
        pod.setdefault("metadata", {}).setdefault("labels", {}).update(
            directives["metadata"]["labels"]
        )
        pod["spec"].update(directives["spec"])
    return {"replicatedJobs": sets}


def _directives(template: Mapping[str, Any]) -> Manifest:
    """What tells pods where to go."""
    labels = (template.get("metadata") or {}).get("labels") or {}
    return {
        "metadata": {"labels": {POOL: labels.get(POOL)}},
        "spec": {
            "nodeSelector": template["spec"].get("nodeSelector") or {},
            "tolerations": template["spec"].get("tolerations") or [],
        },
    }


def _placement(child: Object) -> str:
    return str((child["metadata"].get("annotations") or {}).get(PLACEMENT, ""))


def _pods(placement: str) -> Any:
    """What the pods are made from, where they run put aside; None for what nobody can read."""
    try:
        document = json.loads(placement)
        held = {row[0] for row in document["claim"].values()}
        queue = {**document["queue"], "selector": None, "isGated": None}
    except (ValueError, LookupError, TypeError, AttributeError):
        return None
    return {**document, "pool": None, "accelerator": None, "claim": held, "queue": queue}
