"""Kueue's API on a real API server, without its controller: it comes, is forbidden, and goes, and
the operator that runs all the time takes it up and gives it up. What Kueue would write, the tests
write; with its controller the suite in e2e/suite/test_kueue.py runs."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from e2e.controlplane.client import Client, Object
from e2e.controlplane.served import await_served
from e2e.operator_rights import grant
from tests.apiserver import kueue
from tests.apiserver.conftest import Kubectl, NodeFactory
from tests.apiserver.operated import (
    FREQUENT_LOOKS,
    Operated,
    condition,
    h100_node,
    training_job,
)
from tests.apiserver.test_operator_readiness import role_without

pytestmark = pytest.mark.apiserver

SETTINGS = FREQUENT_LOOKS | {"POOLWISE_DISCOVERY_SECONDS": "0.3"}
"""It looks often."""

LABEL = "kueue.x-k8s.io/queue-name"
H100 = {kueue.PRODUCT: "NVIDIA-H100-80GB-HBM3"}


USED, LOST = "an optional API is used: ", "an optional API is used no more: "
FORBIDDEN = "an optional API cannot be used: Kueue is installed, but Poolwise may not read it"


class Installed:
    """Kueue's definitions, which come and go."""

    def __init__(self, kubectl: Kubectl, client: Client, operator: Operated) -> None:
        self._kubectl, self._client, self._operator = kubectl, client, operator

    def install(self, *versions: str, told: str = USED) -> None:
        """Return once the operator has told this last: a job that it sees before runs without a
        queue, or is told of kinds that are missing, since they come one by one."""
        crds = kueue.crds(versions or ("v1beta2", "v1beta1"))
        applied = self._kubectl("apply", "--server-side", "-f", "-", stdin=crds)
        assert applied.returncode == 0, applied.stderr
        await_served(self._client, [crd["metadata"]["name"] for crd in crds])
        self._operator.until(
            lambda: self._last_told().startswith(told), f"the operator does not tell that {told}"
        )

    def remove(self) -> None:
        """With all their objects; return once the operator does without."""
        names = [crd["metadata"]["name"] for crd in kueue.crds()]
        self._kubectl("delete", "--ignore-not-found", "crd", *names)
        self._operator.until(
            lambda: not self._last_told().startswith(USED),
            "the operator has not seen that Kueue is gone",
        )

    def _last_told(self) -> str:
        """Of Kueue, in the operator's log, with the reason."""
        whole, _, _half_written = self._operator.process.log.read_text().rpartition("\n")
        lines = whole.splitlines()
        told = [json.loads(line) for line in lines if '"Kueue"' in line]
        of_kueue = [each for each in told if each.get("api") == "Kueue"]
        sentences = [f"{each['message']}: {each.get('reason', '')}" for each in of_kueue]
        return sentences[-1] if sentences else LOST


@pytest.fixture
def installed(kubectl: Kubectl, client: Client, operator: Operated) -> Iterator[Installed]:
    """Not there at first, and gone at the end."""
    found = Installed(kubectl, client, operator)
    found.remove()
    yield found
    found.remove()


def queued_job(namespace: str, name: str = "train", count: int = 8) -> Object:
    return training_job(namespace, name, count, queueName="research")


def test_an_api_that_comes_while_the_operator_runs_is_used(
    operator: Operated, client: Client, installed: Installed, namespace: str, nodes: NodeFactory
) -> None:
    nodes([h100_node(), h100_node()])
    early = client.create(queued_job(namespace, "early"))
    seen = operator.wait_condition(early, "Placed", "True")
    assert condition(seen, "QuotaReserved")["reason"] == "KueueNotInstalled"

    installed.install()
    kueue.queue(client, namespace, H100)
    late = client.create(queued_job(namespace, "late"))
    operator.wait_condition(late, "Placed", "False", "Queued")
    operator.wait_message(late, "Placed", "managedJobsNamespaceSelector")
    job = operator.job_of(late)
    assert job["spec"]["suspend"] is True
    assert job["metadata"]["labels"][LABEL] == "research"
    assert LABEL not in operator.job_of(early)["metadata"]["labels"]

    made = client.create(kueue.workload(job))
    told = {"type": "QuotaReserved", "status": "False", "reason": "Pending", "message": "8 more"}
    client.patch(made, {"status": {"conditions": [told]}}, "status")
    operator.wait_condition(late, "QuotaReserved", "False", "Pending")
    operator.wait_message(late, "Placed", "Kueue: 8 more")

    client.patch(made, {"status": {"conditions": [{**told, "status": "True"}]}}, "status")
    client.patch(job, {"spec": {"suspend": False}})
    operator.wait_condition(late, "Ready", "True")
    operator.await_told(early, late)
    operator.settle()
    assert operator.job_of(late)["spec"]["suspend"] is False
    assert operator.writes_for(2) == []


def test_the_older_version_is_enough(
    operator: Operated, client: Client, installed: Installed, namespace: str, nodes: NodeFactory
) -> None:
    nodes([h100_node()])
    installed.install("v1beta1")
    kueue.queue(client, namespace, H100, "v1beta1")
    job = client.create(queued_job(namespace))
    operator.wait_condition(job, "Placed", "False", "Queued")
    operator.wait(operator.job_of(job), lambda it: it["spec"].get("suspend") is True)


def test_an_api_that_goes_lets_go_of_what_waited_for_it(
    operator: Operated, client: Client, installed: Installed, namespace: str, nodes: NodeFactory
) -> None:
    nodes([h100_node()])
    installed.install()
    kueue.queue(client, namespace, H100)
    job = client.create(queued_job(namespace))
    operator.wait_condition(job, "Placed", "False", "Queued")
    before = operator.job_of(job)
    installed.remove()
    operator.wait_condition(job, "Placed", "True")
    after = operator.wait(before, lambda it: it["metadata"]["uid"] != before["metadata"]["uid"])
    assert not after["spec"].get("suspend")
    assert LABEL not in after["metadata"]["labels"]
    assert operator.process.is_running


def test_a_right_that_is_missing_turns_the_feature_off_and_nothing_else(
    operator: Operated, client: Client, installed: Installed, namespace: str, nodes: NodeFactory
) -> None:
    nodes([h100_node(), h100_node()])
    role_without(client, "ClusterRole", "poolwise-cluster", "clusterqueues")
    try:
        installed.install(told=FORBIDDEN)
        kueue.queue(client, namespace, H100)
        job = client.create(queued_job(namespace))
        seen = operator.wait_condition(job, "Placed", "False", "KueueUnavailable")
        told = condition(seen, "Placed")["message"]
        assert "Kueue is installed, but Poolwise may not read it" in told
        assert 'cannot list resource "clusterqueues"' in told
        assert operator.process.probe("/readyz")[0] == 200
        other = client.create(training_job(namespace, "other", 8))
        operator.wait_condition(other, "Placed", "True")
    finally:
        grant(client)
    operator.wait_condition(job, "Placed", "False", "Queued")


def test_refusals_name_what_would_work(
    operator: Operated, client: Client, installed: Installed, namespace: str, nodes: NodeFactory
) -> None:
    nodes([h100_node()])
    installed.install()
    kueue.queue(client, namespace, {"cloud.example.com/pool": "train"})
    job = client.create(queued_job(namespace))
    operator.wait_condition(job, "Placed", "False", "PoolLabelNotInFlavor")
    operator.wait_message(job, "Placed", "wants cloud.example.com/pool=train")
    typo = training_job(namespace, "typo", 8, queueName="reserch")
    seen = operator.wait_condition(client.create(typo), "Placed", "False", "QueueNotFound")
    assert condition(seen, "Placed")["message"].endswith("did you mean research?")

    kueue.queue(client, namespace, H100)  # the admin corrects the flavor
    operator.wait_condition(job, "Placed", "False", "Queued")


def test_our_check_is_declared_and_answered(
    operator: Operated, client: Client, installed: Installed, namespace: str, nodes: NodeFactory
) -> None:
    nodes([h100_node()])
    installed.install()
    kueue.queue(client, namespace, H100)
    check = kueue.an_object(
        "AdmissionCheck", "poolwise", {"controllerName": "poolwise.dev/placement"}
    )
    operator.wait_condition(client.create(check), "Active", "True")
    container = {"name": "main", "resources": {"requests": {kueue.GPU: "8"}}}
    pods = {"name": "main", "count": 1, "template": {"spec": {"containers": [container]}}}
    guest = client.create(kueue.an_object("Workload", "guest", {"podSets": [pods]}, namespace))
    reserved = {"type": "QuotaReserved", "status": "True", "reason": "x", "message": ""}
    assigned = {"name": "main", "count": 1, "flavors": {kueue.GPU: namespace}}
    status = {
        "conditions": [reserved],
        "admission": {"podSetAssignments": [assigned]},
        "admissionChecks": [{"name": "poolwise", "state": "Pending", "message": ""}],
    }
    client.patch(guest, {"status": status}, "status")
    answered = operator.wait(
        guest, lambda it: it["status"]["admissionChecks"][0]["state"] == "Ready"
    )
    (state,) = answered["status"]["admissionChecks"]
    (update,) = state["podSetUpdates"]
    assert update["annotations"]["poolwise.dev/pool"].startswith("h100")
