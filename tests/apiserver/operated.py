"""A cluster in which the operator runs, and what its tests put there."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from e2e.controlplane import pods
from e2e.controlplane.audit import Write
from e2e.controlplane.client import POLL_SECONDS, Client, Object
from e2e.controlplane.cluster import ControlPlane
from e2e.operator_process import OperatorProcess
from e2e.operator_rights import USER, grant
from e2e.workloads import (
    API,
    Observer,
    chat_service,
    child,
    condition,
    training_job,
    with_environment,
)

__all__ = [
    "API",
    "CHECKPOINT",
    "FREQUENT_LOOKS",
    "HOLDER",
    "TIMEOUT_SECONDS",
    "Operated",
    "chat_service",
    "checkpoint_volume",
    "child",
    "condition",
    "h100_node",
    "operated",
    "training_job",
    "with_environment",
]

TIMEOUT_SECONDS = 20.0
FREQUENT_LOOKS = {
    "POOLWISE_TRAINING_INTERVAL_SECONDS": "0.5",
    "POOLWISE_SCALING_INTERVAL_SECONDS": "1",
}
"""For tests that wait until all is told that looks tell."""
QUIET_SECONDS = 2.0
"""More than the operator waits before it writes a status that tells of no decision."""

CHECKPOINT = {"claimName": "ckpt", "path": "/checkpoints", "interval": "30m"}

HOLDER: Object = {
    "apiVersion": "coordination.k8s.io/v1",
    "kind": "Lease",
    "metadata": {"name": "poolwise", "namespace": "default"},
}
"""Whose holder leads."""

_numbers = itertools.count(1)


@dataclass(frozen=True)
class Operated(Observer):
    """The operator's process with its own user and rights, and a client for everybody else."""

    control_plane: ControlPlane
    process: OperatorProcess

    def writes(self, since: int) -> list[Write]:
        """What the operator has written; its Lease, which beats while it lives, apart."""
        written = self.control_plane.audit.writes(since, user=USER)
        return [write for write in written if write.resource != "leases"]

    def mark(self) -> int:
        """A moment, for :meth:`writes`."""
        return self.control_plane.audit.mark()

    def settle(self) -> None:
        """Return once the operator has written nothing for a while."""
        deadline = time.monotonic() + TIMEOUT_SECONDS
        mark, quiet_since = self.mark(), time.monotonic()
        while time.monotonic() < quiet_since + QUIET_SECONDS:
            time.sleep(POLL_SECONDS)
            if written := self.writes(mark):
                mark, quiet_since = self.mark(), time.monotonic()
                if quiet_since > deadline:
                    told = "\n".join(map(str, written))
                    raise TimeoutError(f"the operator still writes:\n{told}")

    def await_told(self, *workloads: Object) -> None:
        """Return once it was told of these, which run, that nobody tells how they do: that takes
        rounds of looks, between which nothing is written."""
        for each in workloads:
            self.wait_condition(each, "MetricsAvailable", "False")

    def end(self, workload: Object) -> None:
        """Have the pods of a run that is under way end, now."""
        pods.end(self.client, self.pods_of(workload))

    def resume(self) -> None:
        """Start a process again that was killed, and return once it leads: at once, since the Lease
        of the lost one, which runs for a quarter of a minute, is taken away."""
        self.client.delete(HOLDER)
        self.process.start()
        self.wait(HOLDER, lambda lease: bool(lease["spec"].get("holderIdentity")))

    def await_idle(self, nodes: int) -> None:
        """Return once the pools' statuses have exactly so many nodes, with nothing on them: nodes
        and workloads come in over watches of their own, in any order."""
        self.until(lambda: self._has_idle(nodes), f"the pools have not exactly {nodes} idle nodes")

    def await_free(self, accelerators: int) -> None:
        """Return once the pools' statuses have exactly so many free accelerators: pods of others,
        nodes and workloads come in over watches of their own, in any order."""
        self.until(
            lambda: sum(each.get("free") or 0 for each in self._pools()) == accelerators,
            f"the pools have not exactly {accelerators} free accelerators",
        )

    def _pools(self) -> list[Object]:
        """Their statuses."""
        return [pool.get("status", {}) for pool in self.client.list(API, "AcceleratorPool")]

    def _has_idle(self, nodes: int) -> bool:
        found = self._pools()
        known = sum(status.get("nodes", 0) + status.get("unusableNodes", 0) for status in found)
        return known == nodes and all(
            status.get("free", 0) == status.get("capacity", 0) for status in found
        )

    def writes_for(self, seconds: float) -> list[Write]:
        """What the operator writes from now on, for so long."""
        mark = self.mark()
        time.sleep(seconds)
        return self.writes(mark)


@contextmanager
def operated(
    control_plane: ControlPlane,
    client: Client,
    log: Path,
    environment: Mapping[str, str] | None = None,
) -> Iterator[Operated]:
    """Run the operator with the rights that the chart gives it, and nothing more."""
    grant(client)
    process = OperatorProcess(control_plane.kubeconfig_for(USER), log, environment)
    with process:
        yield Operated(client, TIMEOUT_SECONDS, control_plane, process)


def h100_node(
    accelerators: int = 8, labels: Mapping[str, str] | None = None, name: str = ""
) -> Object:
    """A bare-metal node as NVIDIA's feature discovery labels it."""
    name = name or f"h100-{next(_numbers)}"
    resources = {
        "cpu": "192",
        "memory": "2Ti",
        "pods": "110",
        "nvidia.com/gpu": str(accelerators),
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                "kubernetes.io/hostname": name,
                "kubernetes.io/arch": "amd64",
                "kubernetes.io/os": "linux",
                "nvidia.com/gpu.present": "true",
                "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
                "nvidia.com/gpu.memory": "81559",
                "nvidia.com/gpu.count": str(accelerators),
                "nvidia.com/gpu.compute.major": "9",
                "nvidia.com/gpu.compute.minor": "0",
                **(labels or {}),
            },
        },
        "status": {"capacity": resources, "allocatable": resources},
    }


def checkpoint_volume(namespace: str) -> list[Object]:
    """Of :data:`CHECKPOINT`, bound to its claim; fake nodes mount nothing."""
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": f"ckpt-{namespace}"},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteMany"],
            "hostPath": {"path": "/tmp/ckpt"},
            "claimRef": {"namespace": namespace, "name": "ckpt"},
        },
    }
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "ckpt", "namespace": namespace},
        "spec": {
            "accessModes": ["ReadWriteMany"],
            "storageClassName": "",
            "volumeName": f"ckpt-{namespace}",
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    return [volume, claim]
