"""A cluster in which the operator runs, and what its tests put there."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from e2e.controlplane.audit import Write
from e2e.controlplane.client import Client, Object
from e2e.controlplane.cluster import ControlPlane
from e2e.operator_process import OperatorProcess
from e2e.operator_rights import USER, grant

API = "poolwise.dev/v1alpha1"
TIMEOUT_SECONDS = 20.0
QUIET_SECONDS = 2.0
"""More than the operator waits before it writes a status that tells of no decision."""

_numbers = itertools.count(1)


@dataclass(frozen=True)
class Operated:
    """The operator's process with its own user and rights, and a client for everybody else."""

    control_plane: ControlPlane
    client: Client
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
        while written := self.writes_for(QUIET_SECONDS):
            if time.monotonic() > deadline:
                raise TimeoutError("the operator still writes:\n" + "\n".join(map(str, written)))

    def writes_for(self, seconds: float) -> list[Write]:
        """What the operator writes from now on, for so long."""
        mark = self.mark()
        time.sleep(seconds)
        return self.writes(mark)

    def wait(self, target: Object, until: Callable[[Object], bool]) -> Object:
        """The object, once ``until`` says yes to it."""
        return self.client.wait_for(target, until, TIMEOUT_SECONDS)

    def wait_condition(self, target: Object, type_: str, status: str, reason: str = "") -> Object:
        """The object, once the condition is so (for this reason, where one is given)."""

        def is_so(seen: Object) -> bool:
            found = condition(seen, type_)
            return found.get("status") == status and reason in ("", found.get("reason"))

        return self.wait(target, is_so)

    def wait_gone(self, target: Object) -> None:
        """Return once the object is gone."""
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while self.look(target) is not None:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{target['kind']} {target['metadata']['name']} is still there")
            time.sleep(0.05)

    def look(self, target: Object) -> Object | None:
        """The object as it is now."""
        metadata = target["metadata"]
        key = (target["apiVersion"], target["kind"], metadata["name"])
        return self.client.get(*key, metadata.get("namespace", ""))

    def job_of(self, workload: Object) -> Object:
        """The Job of a TrainingJob, once it is there."""
        return self.wait(child(workload, "batch/v1", "Job"), lambda _: True)

    def deployment_of(self, workload: Object) -> Object:
        """The Deployment of an InferenceService, once it is there."""
        return self.wait(child(workload, "apps/v1", "Deployment"), lambda _: True)

    def pods_of(self, workload: Object) -> list[Object]:
        """Its pods."""
        selector = f"poolwise.dev/owner={workload['metadata']['name']}"
        return self.client.list("v1", "Pod", workload["metadata"]["namespace"], selector)

    def events_of(self, workload: Object) -> list[Object]:
        """Events about it, by the operator."""
        events = self.client.list("events.k8s.io/v1", "Event", workload["metadata"]["namespace"])
        uid = workload["metadata"]["uid"]
        return [event for event in events if event["regarding"].get("uid") == uid]


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
        yield Operated(control_plane, client, process)


def condition(document: Object, type_: str) -> Object:
    """One condition of an object; empty when it has none of that type."""
    conditions = document.get("status", {}).get("conditions", [])
    return next((each for each in conditions if each["type"] == type_), {})


def child(workload: Object, api_version: str, kind: str, suffix: str = "") -> Object:
    """What names a child of a workload."""
    metadata = workload["metadata"]
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": metadata["name"] + suffix, "namespace": metadata["namespace"]},
    }


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


def training_job(namespace: str, name: str, count: int, **spec: Any) -> Object:
    """A training job that fits on any number of H100s."""
    return {
        "apiVersion": API,
        "kind": "TrainingJob",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "model": {"preset": "llama-3.1-8b"},
            "training": {"globalBatchSize": 64, "sequenceLength": 4096, "tokens": "1G"},
            "accelerators": {"count": count},
            "run": {"image": "registry.example.com/train:1", "command": ["torchrun", "train.py"]},
            **spec,
        },
    }


def chat_service(namespace: str, name: str, **spec: Any) -> Object:
    """A service that one H100 serves."""
    return {
        "apiVersion": API,
        "kind": "InferenceService",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "model": {
                "preset": "llama-3.1-8b",
                "uri": "hf://meta-llama/Llama-3.1-8B-Instruct",
                "maxModelLength": 8192,
            },
            "traffic": {
                "requestsPerSecond": "2",
                "inputTokens": {"p50": 300, "p95": 1200},
                "outputTokens": {"p50": 200, "p95": 600},
            },
            "slo": [{"metric": "TTFT", "percentile": 99, "target": "5s"}],
            **spec,
        },
    }


def with_environment(workload: Object, **variables: str) -> Object:
    """The workload with variables for its containers: the fake kubelets read some."""
    env = [{"name": name, "value": value} for name, value in variables.items()]
    run = {**workload["spec"].get("run", {}), "env": env}
    return {**workload, "spec": {**workload["spec"], "run": run}}
