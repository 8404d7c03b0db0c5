"""Whether what was just made claims accelerators that others have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from poolwise.cluster.resources import PODS, RUNNERS, WORKLOADS, owner_uid, resource_of
from poolwise.handlers.children import is_finished
from poolwise.handlers.reconciler import runs_nothing
from poolwise.plan.children.metadata import key_of
from poolwise.plan.decision import Claim, Key, Part
from poolwise.plan.names import PLACEMENT
from poolwise.plan.records.placement_record import parse
from tests.fake_kube import Document, FakeKube
from tests.handlers.histories.documents import DEVICES
from tests.handlers.histories.promises import where_pods_are


def claimed_twice(cluster: FakeKube, made: Document) -> Iterator[str]:
    """By the records of what runs, as the API server has them at this moment."""
    if resource_of(made) not in RUNNERS:
        return
    owners = {
        each["metadata"]["uid"]: key_of(each)
        for resource in WORKLOADS
        for each in cluster.all(resource)
        if not runs_nothing(each)
    }
    runners = [each for resource in RUNNERS for each in cluster.all(resource)]
    claims = dict(claim for each in runners for claim in _claims(each, owners))
    told, real = _held(claims), _held(where_pods_are(cluster.all(PODS), claims))
    for _, claim in _claims(made, owners):
        for node, count in claim.accelerators_by_node.items():
            there = DEVICES.get(node[0])  # None: still to come
            if there is not None and count and min(told[node], real[node]) > there:
                holders = ", ".join(str(each.key) for each in claims.values() if node in each.nodes)
                yield f"{told[node]} of the {there} of {node} are claimed by {holders}"


def _claims(runner: Document, owners: Mapping[str, Key]) -> Iterator[tuple[Part, Claim]]:
    """What it holds; nothing of a run before Kueue lets it in, or of what has ended, and nothing of
    replicas whose number is somebody else's."""
    key = owners.get(owner_uid(runner) or "")
    if key is None or is_finished(runner):
        return
    record = parse((runner["metadata"].get("annotations") or {}).get(PLACEMENT), key)
    if record is None or (record.queue and runner["spec"].get("suspend")):
        return
    if record.replicas in (None, runner["spec"].get("replicas")):
        yield (key, record.pool), record.claim


def _held(claims: Mapping[Part, Claim]) -> Counter[str]:
    held = Counter[str]()
    for claim in claims.values():
        held.update(claim.accelerators_by_node)
    return held
