"""What of a service's children follows the number of its replicas alone.

Where a spec has no place, what runs stays as the spec before has made it, and so nothing else of
its children may be written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from poolwise.plan import names
from poolwise.plan.children.replica import rolling_update
from poolwise.plan.decision import Plan
from poolwise.plan.observed import Object
from poolwise.plan.records.placement_record import parse, render

RUNNERS = ("Deployment", "LeaderWorkerSet")


def changes(child: Object, runs: Plan, least_pods: int) -> Object:
    """A merge patch for a live child; empty where nothing of it follows the number.

    :param runs: what the service runs by, with the replicas that it is to have.
    :param least_pods: that drains of nodes leave.
    """
    if child["kind"] == "PodDisruptionBudget":
        return {"spec": {"minAvailable": least_pods}}
    if child["kind"] not in RUNNERS:
        return {}
    annotations = child["metadata"].get("annotations") or {}
    told = parse(annotations.get(names.PLACEMENT), runs.key)
    records = {each.record.pool: each.record for each in (runs, *runs.parts) if each.record}
    record = records.get(told.pool) if told else None
    if record is None:
        return {}
    spec: dict[str, object] = {"replicas": record.replicas or 0}
    if child["kind"] == "Deployment":
        spec["strategy"] = {"rollingUpdate": rolling_update(record)}
    else:
        spec["rolloutStrategy"] = {"rollingUpdateConfiguration": rolling_update(record)}
    return {"metadata": {"annotations": {names.PLACEMENT: render(record)}}, "spec": spec}


def grown(children: Iterable[Object], runs: Plan) -> Iterator[Object]:
    """Of live children those that are to run more replicas, as they are once they were told."""
    for child in children:
        told = changes(child, runs, 0) if child["kind"] in RUNNERS else {}
        if told and told["spec"]["replicas"] > (child["spec"].get("replicas") or 0):
            metadata, annotations = child["metadata"], told["metadata"]["annotations"]
            kept = {**metadata, "annotations": {**metadata["annotations"], **annotations}}
            yield {**child, "metadata": kept, "spec": {**child["spec"], **told["spec"]}}
