"""Namespaces for one test each."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping

from e2e.controlplane.client import POLL_SECONDS, Client, Object

GROUP = "poolwise.dev"
CLEARED_SECONDS = 30.0


def create(client: Client, labels: Mapping[str, str] | None = None) -> str:
    """A fresh namespace in which pods can be created at once; its name.

    It has its ``labels`` from the beginning: admission learns of a later change after a moment.
    """
    name = f"test-{secrets.token_hex(4)}"
    document = _namespace(name)
    document["metadata"]["labels"] = dict(labels or {})
    client.create(document)
    account = {"name": "default", "namespace": name}
    client.wait_for(
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account}, lambda _: True
    )
    return name


def remove(client: Client, name: str) -> None:
    """End what runs in a namespace, so that it occupies nothing any more, and delete it.

    The deletion itself takes the cluster ten seconds, for which nobody has to wait.
    Raises :class:`TimeoutError` when pods stay.
    """
    for api_version, kind in [*_own_kinds(client), ("batch/v1", "Job"), ("apps/v1", "Deployment")]:
        client.clear(api_version, kind, name)
    deadline = time.monotonic() + CLEARED_SECONDS
    while pods := client.list("v1", "Pod", name):
        if time.monotonic() > deadline:
            stuck = pods[0]["metadata"]["name"]
            raise TimeoutError(f"{len(pods)} pods stay in namespace {name}, as {stuck}")
        # Again each time: a ReplicaSet that is not collected yet replaces those that went, and
        # whoever would let a pod end within its grace may have stopped before this.
        client.clear("v1", "Pod", name)
        time.sleep(POLL_SECONDS)
    client.delete(_namespace(name))


def _namespace(name: str) -> Object:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def _own_kinds(client: Client) -> list[tuple[str, str]]:
    specs = (
        crd["spec"] for crd in client.list("apiextensions.k8s.io/v1", "CustomResourceDefinition")
    )
    return [
        (f"{GROUP}/{spec['versions'][0]['name']}", spec["names"]["kind"])
        for spec in specs
        if spec["group"] == GROUP and spec["scope"] == "Namespaced"
    ]
