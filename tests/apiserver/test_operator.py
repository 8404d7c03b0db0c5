"""The operator on a real API server: from `kubectl apply` to pods on the chosen pool."""

from __future__ import annotations

import time

import pytest

from tests.apiserver.admission import accelerator_pod, await_refused
from tests.apiserver.conftest import NodeFactory
from tests.apiserver.operated import (
    FREQUENT_LOOKS,
    Operated,
    chat_service,
    child,
    condition,
    h100_node,
    training_job,
    with_environment,
)

pytestmark = pytest.mark.apiserver

SETTINGS = FREQUENT_LOOKS


def test_a_training_job_gets_pods_on_the_chosen_pool(
    operator: Operated, namespace: str, nodes: NodeFactory
) -> None:
    nodes([h100_node(), h100_node()])
    job = operator.client.create(training_job(namespace, "train", 16))
    ready = operator.wait_condition(job, "PodsReady", "True")
    pods = operator.pods_of(job)
    assert len(pods) == 2
    assert {pod["status"]["phase"] for pod in pods} == {"Running"}
    assert all(pod["spec"]["nodeSelector"] for pod in pods)
    assert ready["status"]["plan"]["accelerator"] == "H100-SXM5-80GB"
    assert ready["status"]["plan"]["count"] == 16
    assert {"finalizers", "annotations"} & ready["metadata"].keys() == set()


def test_an_inference_service_gets_replicas_behind_a_service(
    operator: Operated, namespace: str, nodes: NodeFactory
) -> None:
    nodes([h100_node()])
    service = operator.client.create(chat_service(namespace, "chat"))
    operator.wait_condition(service, "Ready", "True")
    deployment = operator.deployment_of(service)
    assert deployment["status"]["readyReplicas"] == deployment["spec"]["replicas"] >= 1
    assert operator.look(child(service, "v1", "Service")) is not None
    assert operator.look(child(service, "policy/v1", "PodDisruptionBudget")) is not None


def test_the_status_tells_the_whole_story(
    operator: Operated, namespace: str, nodes: NodeFactory
) -> None:
    nodes([h100_node()])
    job = operator.client.create(training_job(namespace, "train", 8))
    status = operator.wait_condition(job, "Placed", "True")["status"]
    plan = status["plan"]
    assert status["observedGeneration"] == 1
    assert plan["bottleneck"] in ("Compute", "MemoryBandwidth", "Interconnect", "MemoryCapacity")
    assert plan["ledger"] and all(term["seconds"] >= 0 for term in plan["ledger"])
    assert plan["predicted"]["stepSeconds"] > 0
    assert plan["costPerHour"] > 0
    assert any(candidate.get("chosen") for candidate in plan["candidates"])
    assert {"Accepted", "Planned", "Placed", "Ready"} <= {
        each["type"] for each in status["conditions"]
    }


def test_one_event_tells_of_one_decision(
    operator: Operated, namespace: str, nodes: NodeFactory
) -> None:
    nodes([h100_node()])
    operator.await_idle(1)  # else it may first tell that there is no place
    job = operator.client.create(training_job(namespace, "train", 8))
    operator.wait_condition(job, "Ready", "True")
    operator.await_told(job)
    operator.settle()
    told = sorted((event["reason"], event["type"]) for event in operator.events_of(job))
    reason = condition(operator.look(job) or {}, "Placed")["reason"]
    assert told == [("NoMetricsPort", "Normal"), (reason, "Normal")]


def test_a_job_that_ends_frees_its_nodes_for_the_one_that_waits(
    operator: Operated, namespace: str, nodes: NodeFactory
) -> None:
    nodes([h100_node()])
    first = operator.client.create(training_job(namespace, "first", 8))
    operator.wait_condition(first, "PodsReady", "True")
    second = operator.client.create(training_job(namespace, "second", 8))
    waits = operator.wait_condition(second, "Placed", "False")
    assert "8" in condition(waits, "Placed")["message"]
    assert operator.look(child(second, "batch/v1", "Job")) is None
    operator.end(first)
    operator.wait_condition(first, "Complete", "True")
    operator.wait_condition(second, "Placed", "True")
    operator.wait_condition(second, "PodsReady", "True")


def test_a_job_whose_pods_are_deleted_at_once_has_run_all_the_same(
    operator: Operated, namespace: str, nodes: NodeFactory
) -> None:
    nodes([h100_node()])
    document = training_job(namespace, "brief", 8)
    document["spec"]["ttlSecondsAfterFinished"] = 0
    job = operator.client.create(document)
    operator.wait_condition(job, "PodsReady", "True")
    ran = child(job, "batch/v1", "Job")
    operator.end(job)
    operator.wait_condition(job, "Complete", "True")
    operator.wait_gone(ran)
    operator.settle()
    assert operator.look(ran) is None
    assert condition(operator.look(job) or {}, "Complete")["status"] == "True"
    told = [(event["reason"], event["type"]) for event in operator.events_of(job)]
    assert ("Completed", "Normal") in told and ("Completed", "Warning") not in told


def test_a_namespace_that_holds_a_running_job_can_be_deleted(
    operator: Operated, namespace: str, nodes: NodeFactory
) -> None:
    """Its pods go first, and Kubernetes keeps those of our Jobs until they are replaced."""
    nodes([h100_node(), h100_node()])
    job = operator.client.create(training_job(namespace, "train", 16))
    operator.wait_condition(job, "PodsReady", "True")
    pods = operator.pods_of(job)
    assert len(pods) == 2
    where = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    operator.client.delete(where)
    for pod in pods:
        operator.wait_gone(pod)


@pytest.mark.parametrize(
    ("api_version", "kind", "suffix"),
    [
        pytest.param("apps/v1", "Deployment", "", id="deployment"),
        pytest.param("v1", "Service", "", id="service"),
        pytest.param("policy/v1", "PodDisruptionBudget", "", id="budget"),
    ],
)
def test_a_deleted_child_is_made_again(
    operator: Operated, namespace: str, nodes: NodeFactory, api_version, kind, suffix
) -> None:
    nodes([h100_node()])
    service = operator.client.create(chat_service(namespace, "chat"))
    operator.wait_condition(service, "Ready", "True")
    target = child(service, api_version, kind, suffix)
    before = operator.wait(target, lambda _: True)
    operator.client.delete(target)
    operator.wait(target, lambda seen: seen["metadata"]["uid"] != before["metadata"]["uid"])


def test_an_edited_child_is_corrected(
    operator: Operated, namespace: str, nodes: NodeFactory
) -> None:
    nodes([h100_node()])
    service = operator.client.create(chat_service(namespace, "chat"))
    deployment = operator.deployment_of(service)
    [wanted] = deployment["spec"]["template"]["spec"]["containers"]
    edited = {"name": wanted["name"], "image": "registry.example.com/other:1"}
    changed = operator.client.apply(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": deployment["metadata"]["name"], "namespace": namespace},
            "spec": {"template": {"spec": {"containers": [edited]}}},
        }
    )
    [container] = changed["spec"]["template"]["spec"]["containers"]
    assert container["image"] == edited["image"]
    operator.wait(
        deployment, lambda seen: seen["spec"]["template"]["spec"]["containers"] == [wanted]
    )


def test_pods_of_others_are_subtracted(
    operator: Operated, namespace: str, nodes: NodeFactory
) -> None:
    [node] = nodes([h100_node()])
    operator.await_idle(1)
    operator.client.create(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "foreign", "namespace": namespace},
            "spec": {
                "nodeName": node["metadata"]["name"],
                "containers": [
                    {
                        "name": "main",
                        "image": "example",
                        "resources": {"limits": {"nvidia.com/gpu": "4"}},
                    }
                ],
            },
        }
    )
    operator.await_free(4)
    whole = operator.client.create(training_job(namespace, "whole", 8))
    operator.wait_condition(whole, "Placed", "False")
    half = operator.client.create(training_job(namespace, "half", 4))
    operator.wait_condition(half, "Placed", "True")


def test_a_cordoned_node_is_no_capacity_until_it_is_back(
    operator: Operated, namespace: str, nodes: NodeFactory
) -> None:
    [node] = nodes([h100_node()])
    operator.await_idle(1)
    operator.client.patch(node, {"spec": {"unschedulable": True}})
    operator.await_free(0)
    job = operator.client.create(training_job(namespace, "train", 8))
    operator.wait_condition(job, "Placed", "False")
    operator.client.patch(node, {"spec": {"unschedulable": None}})
    operator.wait_condition(job, "Placed", "True")


def test_a_child_of_somebody_else_is_never_taken_over(
    operator: Operated, namespace: str, nodes: NodeFactory
) -> None:
    nodes([h100_node()])
    taken = operator.client.create(
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "chat", "namespace": namespace},
            "spec": {"selector": {"app": "mine"}, "ports": [{"port": 80}]},
        }
    )
    service = operator.client.create(chat_service(namespace, "chat"))
    seen = operator.wait_condition(service, "Placed", "False", "NameConflict")
    assert "Service chat" in condition(seen, "Placed")["message"]
    after = operator.look(taken) or {}
    assert after["metadata"]["resourceVersion"] == taken["metadata"]["resourceVersion"]
    # The place that it cannot use is free for others.
    job = operator.client.create(training_job(namespace, "train", 8))
    operator.wait_condition(job, "Placed", "True")
    operator.client.delete(taken)
    operator.client.delete(job)
    operator.wait_condition(service, "Placed", "True")


def test_a_paused_object_is_left_alone_and_says_so(
    operator: Operated, namespace: str, nodes: NodeFactory
) -> None:
    nodes([h100_node()])
    job = training_job(namespace, "train", 8)
    job["metadata"]["annotations"] = {"poolwise.dev/paused": "true"}
    operator.client.create(job)
    operator.wait_condition(job, "Paused", "True")
    assert operator.look(child(job, "batch/v1", "Job")) is None
    operator.client.patch(job, {"metadata": {"annotations": {"poolwise.dev/paused": None}}})
    operator.wait_condition(job, "Placed", "True")


def test_a_suspended_job_gives_its_nodes_back_and_runs_again_when_resumed(
    operator: Operated, namespace: str, nodes: NodeFactory
) -> None:
    nodes([h100_node()])
    job = operator.client.create(training_job(namespace, "train", 8))
    operator.wait_condition(job, "Placed", "True")
    child_job = operator.job_of(job)
    operator.client.patch(job, {"spec": {"suspend": True}})
    operator.wait_gone(child_job)
    operator.wait_condition(job, "Suspended", "True")
    other = operator.client.create(training_job(namespace, "other", 8))
    operator.wait_condition(other, "Placed", "True")  # on the only node there is
    operator.client.patch(job, {"spec": {"suspend": False}})
    operator.wait_condition(job, "Placed", "False")
    operator.client.patch(other, {"spec": {"suspend": True}})
    operator.wait_condition(job, "Placed", "True")
    operator.job_of(job)


def test_a_plan_is_only_reported(operator: Operated, namespace: str, nodes: NodeFactory) -> None:
    nodes([h100_node()])
    asked = operator.client.create(training_job(namespace, "asked", 8, mode="Plan"))
    planned = operator.wait_condition(asked, "Planned", "True")
    assert planned["status"]["plan"]["pool"]
    operator.settle()
    assert operator.look(child(asked, "batch/v1", "Job")) is None
    runs = operator.client.create(training_job(namespace, "runs", 8))
    operator.wait_condition(runs, "Placed", "True")


def test_discovered_pools_come_and_go_with_their_nodes(
    operator: Operated, nodes: NodeFactory
) -> None:
    label = {"cloud.google.com/gke-nodepool": "come-and-go"}
    [node] = nodes([h100_node(labels=label)])
    pool = _discovered(operator, label)
    seen = operator.wait(pool, lambda pool: pool.get("status", {}).get("free") == 8)
    assert seen["metadata"]["labels"]["poolwise.dev/discovered"] == "true"
    assert seen["status"]["accelerator"] == "H100-SXM5-80GB"
    operator.client.delete(node)
    operator.wait_gone(pool)


def test_a_pool_of_a_person_gets_a_status_and_keeps_its_spec(
    operator: Operated, nodes: NodeFactory
) -> None:
    nodes([h100_node(labels={"tier": "mine"})])
    pool = operator.client.create(
        {
            "apiVersion": "poolwise.dev/v1alpha1",
            "kind": "AcceleratorPool",
            "metadata": {"name": "mine"},
            "spec": {"nodeSelector": {"tier": "mine"}, "price": {"perNodeHour": "50"}},
        }
    )
    try:
        seen = operator.wait(pool, lambda pool: pool.get("status", {}).get("free") == 8)
        assert seen["metadata"]["generation"] == pool["metadata"]["generation"] == 1
        assert seen["status"]["price"]["perNodeHour"] == 50
    finally:
        operator.client.delete(pool)


def _discovered(operator: Operated, label: dict[str, str]) -> dict[str, object]:
    for _ in range(200):
        for pool in operator.client.list("poolwise.dev/v1alpha1", "AcceleratorPool"):
            if label.items() <= pool["spec"]["nodeSelector"].items():
                return pool
        time.sleep(0.1)
    raise TimeoutError(f"no pool selects {label}")


def test_a_quota_that_refuses_pods_is_told_in_the_words_of_the_api_server(
    operator: Operated, namespace: str, nodes: NodeFactory
) -> None:
    nodes([h100_node()])
    operator.client.create(
        {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": "no-accelerators", "namespace": namespace},
            "spec": {"hard": {"requests.nvidia.com/gpu": "4"}},
        }
    )
    await_refused(operator.client, accelerator_pod(namespace, 8), "exceeded quota")
    job = operator.client.create(training_job(namespace, "train", 8))
    seen = operator.wait_condition(job, "PodsReady", "False", "QuotaExceeded")
    assert "exceeded quota: no-accelerators" in condition(seen, "PodsReady")["message"]
    assert condition(seen, "Stalled")["status"] == "True"


def test_pods_that_cannot_start_are_told_with_their_reason(
    operator: Operated, namespace: str, nodes: NodeFactory
) -> None:
    nodes([h100_node()])
    waits = with_environment(training_job(namespace, "train", 8), FAKE_WAITING="ImagePullBackOff")
    seen = operator.wait_condition(
        operator.client.create(waits), "PodsReady", "False", "ImagePullFailed"
    )
    assert condition(seen, "Ready")["reason"] == "ImagePullFailed"
    assert seen["status"]["observed"]["startTime"]
    assert "expectedFinishTime" not in seen["status"]["observed"]
