"""When a kind that was just defined can be used."""

from __future__ import annotations

import time
from collections.abc import Iterable

from e2e.controlplane.client import POLL_SECONDS, Client, Object, Refused

TIMEOUT_SECONDS = 30.0
CRD = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}


def await_served(client: Client, names: Iterable[str]) -> None:
    """Return once the CRDs of these names are established and their objects can be listed.

    The one does not bring the other: discovery learns of a group a moment after it is established.
    Raises :class:`TimeoutError` that names the first which is not.
    """
    for name in names:
        target = {**CRD, "metadata": {"name": name}}
        spec = client.wait_for(target, _is_established, TIMEOUT_SECONDS)["spec"]
        for version in spec["versions"]:
            if version["served"]:
                api_version = f"{spec['group']}/{version['name']}"
                _await_listed(client, api_version, spec["names"]["kind"])


def _is_established(crd: Object) -> bool:
    """Whether the API server has taken its names."""
    conditions = crd.get("status", {}).get("conditions") or []
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)


def _await_listed(client: Client, api_version: str, kind: str) -> None:
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while True:
        try:
            client.list(api_version, kind)
        except Refused as refusal:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{api_version} {kind} is not served: {refusal}") from refusal
            time.sleep(POLL_SECONDS)
        else:
            return
