"""A control plane of processes with H100 nodes, and the operator beside it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import yaml

from e2e import profiles
from e2e.controlplane import nodes
from e2e.controlplane.client import Client
from e2e.controlplane.cluster import ControlPlane
from e2e.controlplane.served import await_served
from e2e.controlplane.supervised import REPOSITORY
from e2e.operator_process import OperatorProcess
from e2e.operator_rights import USER, grant

CRDS = REPOSITORY / "crds"
NODES = 4
"""Of 8 H100 each."""


@contextmanager
def operated(settings: Mapping[str, str], folder: Path) -> Iterator[Client]:
    """A control plane with nodes, and the operator in a process of its own."""
    with ControlPlane.prepare("poolwise-autoscale") as plane:
        client = Client(plane.kubeconfig)
        for file in sorted(CRDS.glob("*.yaml")):
            crd = client.apply(yaml.safe_load(file.read_text(encoding="utf-8")))
            await_served(client, [crd["metadata"]["name"]])
        large = [node for node in profiles.render("demo") if "h100" in node["metadata"]["name"]]
        nodes.add(client, large[:NODES])
        grant(client)
        operator = OperatorProcess(plane.kubeconfig_for(USER), folder / "operator.log", settings)
        with operator:
            yield client
        client.close()
