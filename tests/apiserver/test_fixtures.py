"""The ground that the other tests of this folder stand on."""

from __future__ import annotations

import pytest

from e2e.controlplane.client import Client, Object
from tests.apiserver.conftest import Kubectl, NodeFactory

pytestmark = pytest.mark.apiserver


def node(name: str, **labels: str) -> Object:
    resources = {"cpu": "96", "memory": "1Ti", "pods": "110", "nvidia.com/gpu": "8"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"capacity": resources, "allocatable": resources},
    }


def job(name: str, namespace: str, **environment: str) -> Object:
    container = {
        "name": "main",
        "image": "example",
        "env": [{"name": key, "value": value} for key, value in environment.items()],
        "resources": {"limits": {"nvidia.com/gpu": "8"}},
    }
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"template": template, "backoffLimit": 0},
    }


def test_kubectl_is_of_the_version_that_go_mod_pins(kubectl: Kubectl) -> None:
    version = kubectl("version", "-o", "yaml")
    assert version.returncode == 0, version.stderr
    assert version.stdout.count("gitVersion: v1.36.") == 2, version.stdout


def test_a_job_on_a_fake_node_runs_as_long_as_its_environment_says(
    client: Client, namespace: str, nodes: NodeFactory
) -> None:
    nodes([node("one")])
    ends = client.create(job("ends", namespace, FAKE_RUN_SECONDS="0"))
    done = client.wait_for(ends, lambda seen: bool(seen["status"].get("completionTime")))
    assert done["status"]["succeeded"] == 1
