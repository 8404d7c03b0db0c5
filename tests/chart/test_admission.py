"""The admission policies on a real API server: what is refused, to whom, and what is not."""

from __future__ import annotations

import copy
import time
from collections.abc import Iterator

import pytest

from e2e.controlplane.client import Client, Object, Refused
from e2e.controlplane.served import await_served
from e2e.operator_rights import await_right
from tests.apiserver import played
from tests.apiserver.operated import chat_service, training_job
from tests.chart.cluster import Cluster
from tests.chart.forbidden import CONTAINER_CHANGES, OWNER_CHANGES, POD_CHANGES
from tests.chart.rendering import NAMESPACE
from tests.plan.children.cases import CASES, manifests
from tests.plan.children.set_cases import APIS, SET_CASES, set_manifests

pytestmark = [pytest.mark.apiserver, pytest.mark.tools("helm")]

TIMEOUT_SECONDS = 20.0
RBAC = "rbac.authorization.k8s.io"
LABEL = "app.kubernetes.io/managed-by"


@pytest.fixture(scope="module")
def operator(release: Cluster) -> Iterator[Client]:
    """The operator's own token, in the hands of somebody else; once the policies hold."""
    with release.service_account("poolwise") as client:
        eventually_refused(client, {**unowned("default"), "spec": pods_of("default")["spec"]})
        yield client


def eventually_refused(client: Client, document: Object) -> None:
    """Return once a policy is in force: the API server learns of it a moment after it is there."""
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while time.monotonic() < deadline:
        try:
            client.admit(document)
        except Refused:
            return
        time.sleep(0.1)
    raise AssertionError("the policies are not in force")


def pods_of(namespace: str) -> Object:
    """A Deployment as the operator writes them."""
    rendered = next(each for each in manifests(CASES["vllm"]()) if each["kind"] == "Deployment")
    return in_namespace(rendered, namespace)


def unowned(namespace: str) -> Object:
    """A Deployment of somebody else."""
    deployment = pods_of(namespace)
    metadata = {"name": "mine", "namespace": namespace}
    return {**deployment, "metadata": metadata}


def in_namespace(document: Object, namespace: str) -> Object:
    copied: Object = copy.deepcopy(document)
    copied["metadata"]["namespace"] = namespace
    return copied


@pytest.mark.parametrize("name", CASES)
def test_all_that_the_operator_renders_is_taken(
    operator: Client, namespace: str, name: str
) -> None:
    for document in manifests(CASES[name]()):
        operator.admit(in_namespace(document, namespace))


@pytest.mark.parametrize("name", [*POD_CHANGES, *CONTAINER_CHANGES])
def test_the_operator_cannot_reach_a_node_through_a_pod(
    operator: Client, release: Cluster, namespace: str, name: str
) -> None:
    deployment = pods_of(namespace)
    pod = deployment["spec"]["template"]["spec"]
    pod.update(POD_CHANGES.get(name, {}))
    pod["containers"][0].update(CONTAINER_CHANGES.get(name, {}))
    pod["containers"][0].pop("volumeMounts", None)
    with pytest.raises(Refused, match=r"denied request: the operator's (pods|containers)"):
        operator.admit(deployment)
    release.client.admit(deployment)  # to others the policy says nothing


RUNNERS = {
    "JobSet": ("jobset.x-k8s.io", "job-set"),
    "LeaderWorkerSet": ("leaderworkerset.x-k8s.io", "vllm-two-nodes"),
    "TrainJob": ("trainer.kubeflow.org", "train-job"),
}
"""API group of each kind of others that runs pods for the operator, and a case that has one."""


@pytest.fixture(scope="module")
def runners(operator: Client, release: Cluster) -> Iterator[Client]:
    """The operator's token, where those kinds are served."""
    crds = [played.crd(group, kind, [APIS[group]]) for kind, (group, _) in RUNNERS.items()]
    for crd in crds:
        release.client.create(crd)
    await_served(release.client, [crd["metadata"]["name"] for crd in crds])
    yield operator
    release.client.delete_all(crds)


def runner_of(kind: str, namespace: str) -> Object:
    """One of those kinds as the operator writes it."""
    rendered = set_manifests(SET_CASES[RUNNERS[kind][1]]())
    return in_namespace(next(each for each in rendered if each["kind"] == kind), namespace)


def pods_in(runner: Object) -> list[Object]:
    """The specs of its pods, or its patches of them."""
    spec = runner["spec"]
    if runner["kind"] == "LeaderWorkerSet":
        template = spec["leaderWorkerTemplate"]
        return [template[each]["spec"] for each in ("leaderTemplate", "workerTemplate")]
    if runner["kind"] == "TrainJob":
        spec = spec["runtimePatches"][0]["trainingRuntimeSpec"]["template"]["spec"]
    return [job["template"]["spec"]["template"]["spec"] for job in spec["replicatedJobs"]]


@pytest.mark.parametrize("name", SET_CASES)
def test_all_that_runs_by_others_is_taken(runners: Client, namespace: str, name: str) -> None:
    for document in set_manifests(SET_CASES[name]()):
        runners.admit(in_namespace(document, namespace))


@pytest.mark.parametrize("kind", RUNNERS)
@pytest.mark.parametrize("name", [*POD_CHANGES, *CONTAINER_CHANGES])
def test_the_operator_cannot_reach_a_node_through_the_pods_of_others(
    runners: Client, release: Cluster, namespace: str, kind: str, name: str
) -> None:
    last = len(pods_in(runner_of(kind, namespace))) - 1
    for position in range(last + 1):
        runner = runner_of(kind, namespace)
        pod = pods_in(runner)[position]
        pod.update(POD_CHANGES.get(name, {}))
        pod["containers"][0].update(CONTAINER_CHANGES.get(name, {}))
        with pytest.raises(Refused, match=r"denied request: the operator's (pods|containers)"):
            runners.admit(runner)
        release.client.admit(runner)  # to others the policy says nothing


@pytest.mark.parametrize("field", ["podTemplateOverrides", "podSpecOverrides"])
def test_the_operator_changes_pods_of_a_train_job_in_one_way(
    runners: Client, namespace: str, field: str
) -> None:
    runner = runner_of("TrainJob", namespace)
    runner["spec"][field] = [{"spec": {"volumes": [{"name": "x", "hostPath": {"path": "/"}}]}}]
    with pytest.raises(Refused, match="TrainJobs change pods by runtimePatches alone"):
        runners.admit(runner)


def test_patches_of_others_that_are_there_keep_nobody_from_a_train_job(
    runners: Client, release: Cluster, namespace: str
) -> None:
    runner = runner_of("TrainJob", namespace)
    job = {
        "name": "node",
        "template": {"spec": {"template": {"spec": {"nodeSelector": {"a": "b"}}}}},
    }
    patch = {"template": {"spec": {"replicatedJobs": [job]}}}
    runner["spec"]["runtimePatches"].append({"manager": "kueue", "trainingRuntimeSpec": patch})
    with pytest.raises(Refused, match="seccomp profile"):
        runners.admit(runner)
    owner = release.client.create(training_job(namespace, runner["metadata"]["name"], 16))
    [reference] = runner["metadata"]["ownerReferences"]  # of none that is there: garbage
    reference["uid"] = owner["metadata"]["uid"]
    created = release.client.create(runner)
    runners.patch(created, {"metadata": {"labels": {"team": "research"}}})


@pytest.mark.parametrize("kind", RUNNERS)
@pytest.mark.parametrize("name", OWNER_CHANGES)
def test_the_operator_has_others_run_for_workloads_alone(
    runners: Client, namespace: str, kind: str, name: str
) -> None:
    runner = runner_of(kind, namespace)
    runner["metadata"].update(OWNER_CHANGES[name])
    with pytest.raises(Refused, match="denied request: the operator writes only objects"):
        runners.admit(runner)


COST = "controller.kubernetes.io/pod-deletion-cost"
POD_EDITS: dict[str, Object] = {
    "deadline": {"spec": {"activeDeadlineSeconds": 5}},
    "label": {"metadata": {"labels": {"app.kubernetes.io/managed-by": "me"}}},
    "annotation": {"metadata": {"annotations": {"other": "1"}}},
    "finalizer": {"metadata": {"finalizers": ["poolwise.dev/mine"]}},
    "cost-and-more": {"metadata": {"annotations": {COST: "-1", "other": "1"}}},
}


def replica_of(kind: str, namespace: str) -> Object:
    labels = {LABEL: "poolwise", "poolwise.dev/owner-kind": kind, "poolwise.dev/owner": "chat"}
    metadata = {"name": "replica", "namespace": namespace, "labels": labels}
    containers = [{"name": "engine", "image": "engine"}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": containers},
    }


def test_the_operator_marks_who_leaves(operator: Client, release: Cluster, namespace: str) -> None:
    pod = release.client.create(replica_of("InferenceService", namespace))
    operator.patch(pod, {"metadata": {"annotations": {COST: "-1"}}})
    operator.patch(pod, {"metadata": {"annotations": {COST: "0"}}})


@pytest.mark.parametrize("edit", POD_EDITS)
def test_the_operator_changes_nothing_else_of_a_pod(
    operator: Client, release: Cluster, namespace: str, edit: str
) -> None:
    pod = release.client.create(replica_of("InferenceService", namespace))
    with pytest.raises(Refused, match="denied request: the operator changes nothing of a pod"):
        operator.patch(pod, POD_EDITS[edit])
    release.client.patch(pod, POD_EDITS["annotation"])  # to others the policy says nothing


@pytest.mark.parametrize("kind", ["TrainingJob", "Foreign"])
def test_the_operator_marks_no_other_pods(
    operator: Client, release: Cluster, namespace: str, kind: str
) -> None:
    pod = release.client.create(replica_of(kind, namespace))
    with pytest.raises(Refused, match="marks only pods of InferenceServices"):
        operator.patch(pod, {"metadata": {"annotations": {COST: "-1"}}})


@pytest.mark.parametrize("kind", ["Deployment", "Service", "PodDisruptionBudget"])
@pytest.mark.parametrize("name", OWNER_CHANGES)
def test_the_operator_writes_only_for_workloads(
    operator: Client, namespace: str, kind: str, name: str
) -> None:
    rendered = next(each for each in manifests(CASES["vllm"]()) if each["kind"] == kind)
    document = in_namespace(rendered, namespace)
    document["metadata"].update(OWNER_CHANGES[name])
    with pytest.raises(Refused, match="denied request: the operator writes only objects"):
        operator.admit(document)


def test_the_operator_runs_nothing_among_the_clusters_own_pods(operator: Client) -> None:
    with pytest.raises(Refused, match="writes nothing in the namespaces of the cluster itself"):
        operator.admit(pods_of("kube-system"))


@pytest.mark.parametrize("change", [{"type": "NodePort"}, {"externalIPs": ["192.0.2.1"]}])
def test_the_operator_opens_no_service_to_the_outside(
    operator: Client, namespace: str, change: Object
) -> None:
    rendered = next(each for each in manifests(CASES["vllm"]()) if each["kind"] == "Service")
    document = in_namespace(rendered, namespace)
    document["spec"].update(change)
    with pytest.raises(Refused, match="the operator's Services are of type ClusterIP"):
        operator.admit(document)


def test_the_operator_leaves_the_objects_of_others_alone(
    operator: Client, release: Cluster, namespace: str
) -> None:
    mine = release.client.create(unowned(namespace))
    sentence = "the operator neither changes nor deletes objects whose controller is no TrainingJob"
    with pytest.raises(Refused, match=sentence):
        operator.delete(mine)
    ours = {LABEL: "poolwise"}
    owners = pods_of(namespace)["metadata"]["ownerReferences"]
    with pytest.raises(Refused, match=sentence):
        operator.patch(mine, {"metadata": {"labels": ours, "ownerReferences": owners}})
    assert release.client.get("apps/v1", "Deployment", "mine", namespace)


def test_the_operator_leaves_the_pools_of_people_alone(operator: Client, release: Cluster) -> None:
    pool = {
        "apiVersion": "poolwise.dev/v1alpha1",
        "kind": "AcceleratorPool",
        "metadata": {"name": "reserved"},
        "spec": {"nodeSelector": {"role": "reserved"}},
    }
    with pytest.raises(Refused, match="only pools that it discovered itself"):
        operator.admit(pool)
    created = release.client.create(pool)
    with pytest.raises(Refused, match="only pools that it discovered itself"):
        operator.delete(created)
    release.client.delete(created)


def bind(release: Cluster, user: str, role: str, namespace: str) -> None:
    """Give a user a ClusterRole in one namespace, and return once the API server goes by it."""
    release.client.create(
        {
            "apiVersion": f"{RBAC}/v1",
            "kind": "RoleBinding",
            "metadata": {"name": f"{user}-{role}", "namespace": namespace},
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": role},
            "subjects": [{"apiGroup": RBAC, "kind": "User", "name": user}],
        }
    )
    verb = "list" if role == "view" else "create"
    asked = {"group": "poolwise.dev", "resource": "trainingjobs", "namespace": namespace}
    await_right(release.client, user, True, verb=verb, **asked)


def test_whoever_may_not_create_pods_may_only_plan(release: Cluster, namespace: str) -> None:
    """Ada may write workloads, by the chart's role alone."""
    bind(release, "ada", "poolwise-edit", namespace)
    with release.user("ada") as ada:
        for workload in (training_job(namespace, "run", 1), chat_service(namespace, "run")):
            eventually_refused(ada, workload)
            with pytest.raises(Refused) as refused:
                ada.create(workload)
            kind = workload["kind"]
            assert refused.value.status == 403
            assert refused.value.message.endswith(
                f"denied request: ada may not create pods in namespace {namespace}, which running "
                f"this {kind} does; spec.mode Plan only plans it"
            )
        planned = ada.create(training_job(namespace, "plan", 1, mode="Plan"))
        ada.patch(planned, {"metadata": {"labels": {"team": "research"}}})
        with pytest.raises(Refused, match="ada may not create pods"):
            ada.patch(planned, {"spec": {"mode": "Run"}})


def test_others_may_change_all_but_the_spec_of_what_runs(release: Cluster, namespace: str) -> None:
    bind(release, "eve", "poolwise-edit", namespace)
    running = release.client.create(chat_service(namespace, "chat"))
    with release.user("eve") as eve:
        eventually_refused(eve, training_job(namespace, "run", 1))
        eve.patch(running, {"metadata": {"labels": {"team": "research"}}})
        eve.patch(running, {"spec": {"replicas": 2}}, "scale")
        with pytest.raises(Refused, match="eve may not create pods"):
            eve.patch(running, {"spec": {"run": {"serviceAccountName": "admin"}}})
        eve.delete(running)


def test_whoever_may_edit_a_namespace_may_run_workloads_there(
    release: Cluster, namespace: str
) -> None:
    """By the cluster's own roles, into which the chart's are aggregated."""
    bind(release, "bob", "edit", namespace)
    with release.user("bob") as bob:
        created = bob.create(training_job(namespace, "run", 1))
        bob.patch(created, {"spec": {"accelerators": {"count": 2}}})
        assert bob.get(created["apiVersion"], created["kind"], "run", namespace)
    with release.user("bob") as bob, pytest.raises(Refused, match="cannot create resource"):
        bob.create(training_job(NAMESPACE, "run", 1))


def test_whoever_may_view_a_namespace_may_read_workloads_there(
    release: Cluster, namespace: str
) -> None:
    bind(release, "mallory", "view", namespace)
    created = release.client.create(training_job(namespace, "run", 1))
    with release.user("mallory") as mallory:
        assert mallory.get(created["apiVersion"], created["kind"], "run", namespace)
        with pytest.raises(Refused, match="cannot patch resource"):
            mallory.patch(created, {"spec": {"mode": "Plan"}})
