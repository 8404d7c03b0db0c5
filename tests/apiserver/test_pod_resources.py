"""What is refused of the resources of pods, against a real API server's word on such pods."""

import pytest

from e2e.controlplane.client import Refused
from poolwise.api.run import Run
from poolwise.plan.children.pods import resources
from tests.plan.nodes_given import H100, node, only_pool
from tests.plan.requests.test_pod_resources import REFUSED, TAKEN

pytestmark = pytest.mark.apiserver


POOL = only_pool([node("h100", H100, gpus=8)])


def pod(given, namespace):
    """As children ask for these resources, without an accelerator beside them."""
    asked = resources(Run.model_validate({"resources": given}), POOL, 0, {})
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "asks", "namespace": namespace},
        "spec": {"containers": [{"name": "main", "image": "x", "resources": asked}]},
    }


@pytest.mark.parametrize("given", [given for given, _ in TAKEN.values()], ids=TAKEN)
def test_what_is_taken_is_taken(given, client, namespace):
    client.admit(pod(given, namespace))


@pytest.mark.parametrize("given", [given for given, _ in REFUSED.values()], ids=REFUSED)
def test_what_is_refused_would_be_refused(given, client, namespace):
    with pytest.raises(Refused):
        client.admit(pod(given, namespace))
