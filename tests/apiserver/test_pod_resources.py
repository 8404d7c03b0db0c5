"""What is refused of the resources of pods, against a real API server's word on such pods."""

import pytest

from e2e.controlplane.client import Refused
from poolwise.plan.amounts import is_whole
from tests.plan.requests.test_pod_resources import REFUSED, TAKEN

pytestmark = pytest.mark.apiserver


def pod(given, namespace):
    """As children are made: what needs a limit gets its request for one."""
    requests, limits = given.get("requests", {}), given.get("limits", {})
    whole = {name: amount for name, amount in requests.items() if is_whole(name)}
    asked = {"requests": requests, "limits": {**whole, **limits}}
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
