"""The operator itself is lost while work comes in."""

from __future__ import annotations

import time
from collections import Counter

import pytest

from e2e.controlplane.client import Client, Object
from e2e.kind.containers import kill_pod
from e2e.kind.figures import Figures
from e2e.suite.doubles import service, training, tuning
from e2e.suite.fleet import restarts
from e2e.suite.operator import LEASE, Operator
from e2e.workloads import Observer

pytestmark = [pytest.mark.core, pytest.mark.stage(60)]

JOBS = 12
PLANS = 24
TAKEOVER_BAR_SECONDS = 20.0


@pytest.mark.usefixtures("in_containers")
def test_a_killed_leader_is_replaced_and_nothing_happens_twice(
    client: Client, observer: Observer, operator: Operator, namespace: str, figures: Figures
) -> None:
    chat = client.create(service(namespace, "chat"))
    observer.wait_condition(chat, "Ready", "True", "Running")
    before, leader = restarts(observer.pods_of(chat)), operator.leader()
    holder = held(observer)

    jobs = client.create_all(tuning(namespace, f"job-{n}", 1, 90) for n in range(JOBS))
    started = time.monotonic()
    kill_pod(leader["spec"]["nodeName"], leader["metadata"]["uid"])
    plans = client.create_all(plan(namespace, f"plan-{n}") for n in range(PLANS))

    observer.until(lambda: held(observer) != holder, "nobody took the Lease")
    figures.note("another leads after", time.monotonic() - started, "s", TAKEOVER_BAR_SECONDS)
    for job in jobs:
        observer.wait_condition(job, "PodsReady", "True")
    for each in plans:
        observer.wait_condition(each, "Ready", "True", "PlanOnly")

    assert duplicates(client, namespace) == []
    assert restarts(observer.pods_of(chat)) == before
    for job in jobs:
        assert len(observer.pods_of(job)) == 1


@pytest.mark.usefixtures("in_containers")
def test_a_leader_that_is_deleted_hands_over(
    client: Client, observer: Observer, operator: Operator, namespace: str
) -> None:
    leader, holder = operator.leader(), held(observer)
    client.delete(leader)
    job = client.create(tuning(namespace, "late", 1))
    observer.until(lambda: held(observer) != holder, "nobody took the Lease")
    observer.wait_condition(job, "Complete", "True")
    observer.until(lambda: len(operator.pods()) == 2, "no second replica came")
    events = [event for event in observer.events_of(job) if event["reason"] == "Placed"]
    assert len(events) == 1


def plan(namespace: str, name: str) -> Object:
    return training(namespace, name, 8, mode="Plan")


def held(observer: Observer) -> str:
    lease = observer.look(LEASE) or {}
    return str(lease.get("spec", {}).get("holderIdentity") or "")


def duplicates(client: Client, namespace: str) -> list[str]:
    """Workloads that own more than one Job or Deployment."""
    owners = Counter(
        (kind, owner["uid"])
        for api_version, kind in (("batch/v1", "Job"), ("apps/v1", "Deployment"))
        for each in client.list(api_version, kind, namespace)
        for owner in each["metadata"]["ownerReferences"]
    )
    return [str(owner) for owner, count in owners.items() if count > 1]
