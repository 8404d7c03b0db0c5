"""Whether a run that was just made claims accelerators that another one has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from poolwise.cluster.resources import PODS, RUNS, TRAINING_JOBS, owner_uid, resource_of
from poolwise.handlers.children import is_finished
from poolwise.handlers.reconciler import runs_nothing
from poolwise.plan.children.metadata import key_of
from poolwise.plan.decision import Claim, Key
from poolwise.plan.names import PLACEMENT
from poolwise.plan.placement_record import parse
from tests.fake_kube import Document, FakeKube
from tests.handlers.histories.documents import DEVICES
from tests.handlers.histories.promises import where_pods_are


def claimed_twice(cluster: FakeKube, made: Document) -> Iterator[str]:
    """By the records of runs, as the API server has them at this moment.

    Replicas of services are left out: they go where there is room, and what one leaves is given to
    others. So are runs in queues, which hold nothing before Kueue lets them in.
    """
    if resource_of(made) not in RUNS:
        return
    by_uid = {
        each["metadata"]["uid"]: each
        for each in cluster.all(TRAINING_JOBS)
        if not runs_nothing(each)
    }
    claims: dict[Key, Claim] = {}
    for resource in RUNS:
        for run in cluster.all(resource):
            job = by_uid.get(owner_uid(run) or "")
            claim = None if job is None or is_finished(run) else _claim(run, key_of(job))
            if claim is not None:
                claims[claim.key] = claim
    job = by_uid.get(owner_uid(made) or "")
    if job is None or key_of(job) not in claims:
        return
    told, real = _held(claims), _held(where_pods_are(cluster.all(PODS), claims))
    for node, count in claims[key_of(job)].accelerators_by_node.items():
        there = DEVICES.get(node[0])  # None: still to come
        if there is not None and count and min(told[node], real[node]) > there:
            holders = ", ".join(str(key) for key, c in claims.items() if node in c.nodes)
            yield f"{told[node]} of the {there} of {node} are claimed by {holders}"


def _claim(run: Document, key: Key) -> Claim | None:
    record = parse((run["metadata"].get("annotations") or {}).get(PLACEMENT), key)
    return None if record is None or record.queue else record.claim


def _held(claims: Mapping[Key, Claim]) -> Counter[str]:
    held = Counter[str]()
    for claim in claims.values():
        held.update(claim.accelerators_by_node)
    return held
