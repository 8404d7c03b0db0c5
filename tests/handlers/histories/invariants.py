"""What holds at each quiet moment, and at rest."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from poolwise.cluster.resources import CHILDREN, RUNNERS, owner_uid
from poolwise.plan.ledger.capacity_pods import owner_of
from poolwise.plan.names import MANAGED_BY, OWNER_KIND
from poolwise.plan.status.workload import is_paused
from tests.fake_kube import Document
from tests.handlers.histories.world import World
from tests.handlers.shell import condition

ENDED = ("Complete", "Completed", "Failed")


def at_a_quiet_moment(world: World) -> list[str]:
    """What is wrong with what is told and written."""
    uids = {each["metadata"]["uid"] for each in world.workloads()}
    found = []
    for workload in world.workloads():
        name = f"{workload['kind']} {workload['metadata']['name']}"
        found += [f"{name}: {problem}" for problem in _problems(world, workload)]
    for resource in CHILDREN:
        for child in world.cluster.all(resource):
            if _is_made_by_us(child) and owner_uid(child) not in uids:
                found.append(f"{child['kind']} {child['metadata']['name']} has no owner")
    return found


def _is_made_by_us(child: Document) -> bool:
    owners = child["metadata"].get("ownerReferences") or []
    labels = child["metadata"].get("labels") or {}
    is_below = any(each["kind"] not in ("TrainingJob", "InferenceService") for each in owners)
    return MANAGED_BY in labels and OWNER_KIND in labels and not is_below


def _problems(world: World, workload: Document) -> Iterator[str]:
    status, generation = workload.get("status") or {}, workload["metadata"]["generation"]
    conditions = {each["type"]: each for each in status.get("conditions", [])}
    if not conditions:
        yield "nothing is told"
        return
    yield from _words(conditions)
    if status.get("observedGeneration") != generation and not is_paused(workload):
        yield f"observedGeneration {status.get('observedGeneration')} of {generation}"
    for each in conditions.values():
        if each["observedGeneration"] != generation and not is_paused(workload):
            yield f"{each['type']} is of generation {each['observedGeneration']} of {generation}"
    if is_paused(workload):
        if "Paused" not in conditions:
            yield "is paused and does not say so"
        return
    yield from _placed(world, workload, conditions)


def _placed(world: World, workload: Document, told: dict[str, Document]) -> Iterator[str]:
    accepted, placed = told.get("Accepted", {}), told.get("Placed")
    ended = any(told.get(each, {}).get("status") == "True" for each in ("Complete", "Failed"))
    runners = [
        each
        for resource in RUNNERS
        for each in world.cluster.all(resource)
        if owner_uid(each) == workload["metadata"]["uid"]
    ]
    live = [each for each in runners if not any(is_true(each, word) for word in ENDED)]
    is_meant_not_to = workload["spec"].get("suspend") or workload["spec"].get("mode") == "Plan"
    if accepted.get("status") == "True" and placed is None and not (ended or is_meant_not_to):
        yield "is accepted, and neither placed nor told why not"
    if placed and placed["status"] == "True" and not live:
        yield f"is told to be placed ({placed['message']}), and nothing runs it"
    if is_meant_not_to and live and accepted.get("status") == "True":
        yield f"should not run, and {live[0]['kind']} does"
    ready = told.get("PodsReady", {}).get("status") == "True"
    if ready and not ended:
        pods = [pod for pod in world.pods() if is_of(pod, workload) and is_true(pod, "Ready")]
        wanted = sum(each["spec"].get("replicas") or 0 for each in live)
        if len(pods) < wanted:
            yield f"PodsReady is True with {len(pods)} of {wanted}"
    if any(is_true(each, "Failed") for each in runners) and "Failed" not in told and not live:
        yield "its run has failed, and it does not say so"


def is_of(pod: Document, workload: Document) -> bool:
    """Whether a pod says so."""
    key = owner_of(pod)
    return key is not None and key[0] == workload["kind"] and key[2] == workload["metadata"]["name"]


def _words(conditions: dict[str, Document]) -> Iterator[str]:
    for each in conditions.values():
        if not {each["type"], each["reason"]} <= DOCUMENTED | _of_kueue(each["type"]):
            yield f"{each['type']} ({each['reason']}) is no condition of docs/conditions.md"
        if each["status"] not in ("True", "False", "Unknown"):
            yield f"{each['type']} is {each['status']}"
    for word in ("Accepted", "Ready"):
        if word not in conditions and "Paused" not in conditions:
            yield f"has no condition {word}"
    stalled, going = (conditions.get(each, {}).get("status") for each in ("Stalled", "Reconciling"))
    ready = conditions.get("Ready", {}).get("status")
    if stalled == "True" and (going == "True" or ready == "True"):
        yield f"is Stalled, and Reconciling {going}, Ready {ready}"


def is_true(document: Document, word: str) -> bool:
    """Whether it has that condition."""
    return bool(condition(document, word).get("status") == "True")


def _of_kueue(word: str) -> set[str]:
    """Reasons of our small Kueue, which are repeated as they are."""
    repeated = "QuotaReserved", "Admitted", "Placed", "Ready"
    return {"Pending", "AdmissionGated"} if word in repeated else set()


_PAGE = Path(__file__).resolve().parents[3] / "docs" / "conditions.md"
DOCUMENTED = set(re.findall(r"^\| `(\w+)` \|", _PAGE.read_text(), re.MULTILINE))
"""Types and reasons."""
