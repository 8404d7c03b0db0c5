"""What happens in the demo: nodes, resources, examples, and the table at the end."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from e2e.controlplane import nodes
from e2e.controlplane.client import Client, Object
from e2e.controlplane.served import await_served
from e2e.controlplane.supervised import REPOSITORY, Supervised
from e2e.profiles import render
from e2e.progress import say
from poolwise.cli import table
from poolwise.cli.manifests import read

NAMESPACE = "demo"
PROFILE = "demo"
CHECKPOINTS = "llama-70b-checkpoints"
CRDS = REPOSITORY / "crds"
EXAMPLES = REPOSITORY / "examples"
TIMEOUT_SECONDS = 60.0
POLL_SECONDS = 0.1
API_VERSION = "poolwise.dev/v1alpha1"
KINDS = ("TrainingJob", "InferenceService")


def prepare(control_plane: Supervised) -> None:
    """Apply what has to be there before the operator: resources, namespace, claim, nodes."""
    say("==> applying the resources, a namespace and the fake nodes of the demo profile")
    client = Client(control_plane.kubeconfig)
    for crd in _manifests(CRDS):
        client.apply(crd)
        await_served(client, [crd["metadata"]["name"]])
    client.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    for document in _checkpoint_volume():
        client.apply(document)
    added = nodes.add(client, render(PROFILE))
    client.close()
    say(f"    {len(added)} nodes are ready; starting the operator")


def apply_examples(control_plane: Supervised) -> None:
    """Apply the examples, all in the demo's namespace."""
    documents = _manifests(EXAMPLES)
    say(f"==> applying {len(documents)} workloads from examples/")
    client = Client(control_plane.kubeconfig)
    for document in documents:
        client.apply({**document, "metadata": {**document["metadata"], "namespace": NAMESPACE}})
    client.close()


def _checkpoint_volume() -> list[Object]:
    """The claim that an example names: its pods wait for it, as they should, until it is bound."""
    capacity = {"accessModes": ["ReadWriteMany"], "storageClassName": ""}
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": CHECKPOINTS},
        "spec": {
            **capacity,
            "capacity": {"storage": "10Ti"},
            "hostPath": {"path": "/nowhere"},  # fake nodes mount nothing
        },
    }
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": CHECKPOINTS, "namespace": NAMESPACE},
        "spec": {
            **capacity,
            "resources": {"requests": {"storage": "10Ti"}},
            "volumeName": CHECKPOINTS,
        },
    }
    return [volume, claim]


def _manifests(folder: Path) -> list[dict[str, Any]]:
    return [dict(document.content) for document in read([str(folder)])]


def wait_until_told(control_plane: Supervised) -> bool:
    """Until every workload's status says where it runs, or why not yet; then until pods run."""
    client = Client(control_plane.kubeconfig)
    deadline = time.monotonic() + TIMEOUT_SECONDS
    started = time.monotonic()
    while not (told := all(_is_settled(each) for each in _workloads(client))):
        if time.monotonic() > deadline:
            break
        time.sleep(POLL_SECONDS)
    say(f"    settled after {time.monotonic() - started:.1f} s" if told else "    not all settled")
    client.close()
    return told


def _workloads(client: Client) -> list[Object]:
    return [each for kind in KINDS for each in client.list(API_VERSION, kind, NAMESPACE)]


def _is_settled(workload: Object) -> bool:
    """Its pods are ready, or it was told what it waits for."""
    conditions = workload.get("status", {}).get("conditions", [])
    status = {each["type"]: each["status"] for each in conditions}
    return status.get("PodsReady") == "True" or status.get("Placed") == "False"


def show(control_plane: Supervised) -> None:
    """Print what the statuses tell, as ``poolwise plan`` would print its own answer."""
    client = Client(control_plane.kubeconfig)
    rows = [_row(workload) for workload in _workloads(client)]

    print()
    table.show_workloads(rows)
    client.close()


def _row(workload: Object) -> dict[str, Any]:
    """``status.plan`` has the form of one workload of the report."""
    return {**workload["status"]["plan"], "name": workload["metadata"]["name"]}
