"""What real controllers, the scheduler and admission say of our children, as status reads it."""

import copy

import pytest

from poolwise.plan.children.manifests import children
from poolwise.plan.conditions import Reason
from poolwise.plan.status.pods import observe
from poolwise.plan.status.problems import Problem
from poolwise.settings import Settings
from tests.apiserver.admission import accelerator_pod, await_refused
from tests.plan.children.cases import CASES, manifests
from tests.plan.children.given import JOB_UID, SERVICE_UID, h100_pool, placed_job, training_job

pytestmark = pytest.mark.apiserver

RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}


@pytest.fixture
def a3_nodes(nodes):
    """The nodes of the pool that the cases are placed on."""
    resources = {"cpu": "192", "memory": "2Ti", "pods": "110", "nvidia.com/gpu": "8"}
    taint = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
    return nodes(
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": node.name, "labels": dict(node.labels)},
            "spec": {"taints": [taint]},
            "status": {"capacity": resources, "allocatable": resources},
        }
        for node in h100_pool().nodes[:4]
    )


@pytest.fixture
def run(client, namespace):
    """Create the children of a case, without the owner that does not exist here."""

    def create(documents):
        created = []
        for document in copy.deepcopy(documents):
            document["metadata"]["namespace"] = namespace
            del document["metadata"]["ownerReferences"]
            created.append(client.create(document))
        return created[-1]

    return create


def job_of(**environment):
    env = [{"name": name, "value": value} for name, value in environment.items()]
    job = training_job(run={"image": "registry.example.com/train:1", "env": env})
    return children(job, placed_job(), h100_pool(), Settings())


def owned(child, uid):
    """As if its owner existed."""
    owner = {"controller": True, "uid": uid}
    return {**child, "metadata": {**child["metadata"], "ownerReferences": [owner]}}


def test_ranks_run_on_the_nodes_of_the_claim_one_each(client, namespace, a3_nodes, run):
    job = run(job_of())
    running = client.wait_for(job, lambda seen: seen["status"].get("ready") == 2)
    pods = client.list("v1", "Pod", namespace)
    assert sorted(pod["spec"]["nodeName"] for pod in pods) == ["a3-0", "a3-1"]
    seen = observe(JOB_UID, [owned(running, JOB_UID)], pods)
    assert seen.are_all_ready and seen.start_time and not seen.problems


def test_a_job_that_ends_is_seen_to_end(client, a3_nodes, run):
    job = run(job_of(FAKE_RUN_SECONDS="0"))
    ended = client.wait_for(job, lambda seen: bool(seen["status"].get("completionTime")))
    assert observe(JOB_UID, [owned(ended, JOB_UID)], []).completed is not None


def test_a_rank_that_keeps_failing_ends_the_job(client, a3_nodes, run):
    documents = copy.deepcopy(job_of(FAKE_RUN_SECONDS="0", FAKE_EXIT_CODE="3"))
    documents[-1]["spec"]["backoffLimitPerIndex"] = 0
    job = run(documents)
    failed = client.wait_for(job, lambda seen: "failedIndexes" in seen["status"])
    given_up = client.wait_for(failed, lambda seen: any(
        each["type"] == "Failed" for each in seen["status"].get("conditions", ())
    ))  # fmt: skip
    assert "MaxFailedIndexesExceeded" in str(
        observe(JOB_UID, [owned(given_up, JOB_UID)], []).gave_up
    )


def test_an_image_that_cannot_be_pulled(client, namespace, a3_nodes, run):
    run(job_of(FAKE_WAITING="ImagePullBackOff"))
    problem = first_problem(client, namespace)
    assert problem.reason is Reason.IMAGE_PULL_FAILED


def test_a_claim_that_does_not_exist(client, namespace, a3_nodes, run):
    job = training_job(checkpoint={"claimName": "nowhere"})
    run(children(job, placed_job(), h100_pool(), Settings()))
    problem = first_problem(client, namespace)
    assert problem.reason is Reason.MISSING_REFERENCE
    assert 'persistentvolumeclaim "nowhere" not found' in problem.message


def test_a_quota_that_refuses_replicas(client, namespace, a3_nodes, run):
    client.create(
        {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": "gpus", "namespace": namespace},
            "spec": {"hard": {"requests.nvidia.com/gpu": "1"}},
        }
    )
    await_refused(client, accelerator_pod(namespace, 2), "exceeded quota")
    deployment = run(manifests(CASES["vllm"]()))
    refused = client.wait_for(deployment, lambda seen: any(
        each["type"] == "ReplicaFailure" for each in seen["status"].get("conditions", ())
    ))  # fmt: skip
    (problem,) = observe(SERVICE_UID, [owned(refused, SERVICE_UID)], []).problems
    assert problem.reason is Reason.QUOTA_EXCEEDED
    assert "requests.nvidia.com/gpu" in problem.message


@pytest.mark.parametrize("namespace", [RESTRICTED], ids=["restricted"], indirect=True)
def test_a_namespace_that_refuses_pods(client, namespace, a3_nodes, run):
    job = run(job_of())

    def refusals():
        events = client.list("v1", "Event", namespace)
        return [each for each in events if each["reason"] == "FailedCreate"]

    client.wait_for(job, lambda _: bool(refusals()))
    problem = observe(JOB_UID, [owned(job, JOB_UID), *refusals()], []).problems[0]
    assert problem.reason is Reason.POD_SECURITY_REFUSED
    assert "runAsNonRoot" in problem.message


def first_problem(client, namespace):
    """The first problem that pods of the namespace show, once one does."""
    found: list[Problem] = []

    def shows(_):
        found[:] = observe("", [], client.list("v1", "Pod", namespace)).problems
        return bool(found)

    account = {"name": "default", "namespace": namespace}
    client.wait_for({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account}, shows)
    return found[0]
