"""A job whose ranks really meet, over the Service and the environment that Poolwise renders."""

from __future__ import annotations

import pytest

from e2e.controlplane.client import Client
from e2e.suite.doubles import training
from e2e.suite.fleet import H100, nodes_of, places, pool_of
from e2e.workloads import Observer, condition

pytestmark = pytest.mark.core

ALL = 16
FIRST_RUNS_SECONDS = 15


def test_gangs_of_all_accelerators_run_one_after_the_other(
    client: Client, observer: Observer, namespace: str
) -> None:
    first = client.create(training(namespace, "first", ALL, FIRST_RUNS_SECONDS))
    observer.wait_condition(first, "PodsReady", "True")
    assert places(observer.pods_of(first)) == sorted(nodes_of(client, H100))
    pool = pool_of(client, H100)
    observer.wait(pool, lambda seen: seen["status"]["free"] == 0)

    second = client.create(training(namespace, "second", ALL))
    waiting = observer.wait_condition(second, "Placed", "False", "InsufficientCapacity")
    assert f"{namespace}/first" in condition(waiting, "Placed")["message"]
    assert observer.pods_of(second) == []

    done = observer.wait_condition(first, "Complete", "True", "Completed")
    assert done["status"]["plan"]["pool"] == pool["metadata"]["name"]
    observer.wait_condition(second, "Complete", "True", "Completed")
    assert places(observer.pods_of(second)) == sorted(nodes_of(client, H100))
    observer.wait(pool, lambda seen: seen["status"]["free"] == ALL)


def test_a_job_on_a_part_of_one_node_leaves_the_rest(
    client: Client, observer: Observer, namespace: str
) -> None:
    halves = [client.create(training(namespace, f"half-{number}", 4, 10)) for number in (1, 2)]
    for half in halves:
        observer.wait_condition(half, "PodsReady", "True")
    used = [name for half in halves for name in places(observer.pods_of(half))]
    assert len(set(used)) == 1, "two halves are packed on one node"
    for half in halves:
        observer.wait_condition(half, "Complete", "True")


def test_a_job_whose_ranks_fail_says_so(client: Client, observer: Observer, namespace: str) -> None:
    failing = training(namespace, "failing", 8)
    failing["spec"]["run"] |= {"command": ["sh", "-c", "echo no data; exit 3"]}
    failing["spec"]["backoffLimit"] = 0
    job = client.create(failing)
    failed = observer.wait_condition(job, "Failed", "True")
    assert condition(failed, "Ready")["reason"] == "Failed"
    observer.wait(pool_of(client, H100), lambda seen: seen["status"]["free"] == ALL)
