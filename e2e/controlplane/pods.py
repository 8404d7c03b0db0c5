"""What a test tells fake pods."""

from __future__ import annotations

from collections.abc import Iterable

from e2e.controlplane.client import Client, Object

ENDED = "e2e.poolwise.dev/ended"
"""The annotation by which a running pod of a Job ends at once: see ``stages/pod.yaml``."""


def end(client: Client, pods: Iterable[Object]) -> None:
    """Have pods of a Job end as their environment says they end, now."""
    for pod in pods:
        client.patch(pod, {"metadata": {"annotations": {ENDED: "true"}}})
