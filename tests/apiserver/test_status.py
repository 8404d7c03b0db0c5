"""Statuses as a real API server keeps and shows them."""

import pytest

from tests.plan.status.test_status import NOON, SITUATIONS, told

pytestmark = pytest.mark.apiserver


@pytest.fixture
def stored(client, crds, namespace):
    """Create the resource of a situation and tell its status; the object as it is read back."""

    def store(situation):
        resource, outcome, seen = SITUATIONS[situation]
        metadata = {"name": resource["metadata"]["name"], "namespace": namespace}
        created = client.create({**resource, "metadata": metadata})
        shown = told(resource, outcome, seen=seen, now=NOON)
        return shown, client.patch(created, {"status": shown}, "status")

    return store


@pytest.mark.parametrize("situation", SITUATIONS)
def test_nothing_of_a_status_is_pruned_or_changed(situation, stored):
    shown, live = stored(situation)
    assert live["status"] == shown


@pytest.mark.parametrize(
    ("situation", "kind", "columns"),
    [
        (
            "running",
            "tj",
            "llama-70b h100-ib 16xH100-SXM5-80GB dp2 tp8 Compute Running",
        ),
        ("waiting", "tj", "llama-70b h100-ib 16xH100-SXM5-80GB dp2 tp8 Compute InsufficientCa"),
        ("rejected", "tj", "llama-70b InvalidSpec"),
        ("serving", "isvcp", "assistant h100-ib 1xH100-SXM5-80GB 3 MemoryBandwidth Running"),
    ],
)
def test_printer_columns(situation, kind, columns, stored, kubectl, namespace):
    stored(situation)
    answer = kubectl("get", kind, "-n", namespace, "--no-headers")
    assert " ".join(answer.stdout.split()).startswith(columns), answer.stdout


def test_scale_subresource(stored, kubectl, namespace):
    stored("serving")
    path = f"/apis/poolwise.dev/v1alpha1/namespaces/{namespace}/inferenceservices/assistant/scale"
    answer = kubectl("get", "--raw", path)
    assert '"selector":"app.kubernetes.io/managed-by=poolwise' in answer.stdout
    assert '"replicas":3' in answer.stdout
