"""Queues, flavors and checks of Kueue for the suite, and Kueue itself, installed and removed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from e2e.controlplane.client import Client, Object
from e2e.errors import ProcessFailed
from e2e.kind.command import told
from e2e.kind.integrations import Integration, Kubectl

API = "kueue.x-k8s.io/v1beta2"
DEPLOYMENT, NAMESPACE = "kueue-controller-manager", "kueue-system"
KUEUE = Integration(
    name="kueue",
    deployment=DEPLOYMENT,
    namespace=NAMESPACE,
    release="https://github.com/kubernetes-sigs/kueue/releases/download/v0.18.2/manifests.yaml",
    probe={
        "apiVersion": API,
        "kind": "ResourceFlavor",
        "metadata": {"name": "probe"},
        "spec": {"nodeLabels": {"a": "b"}},
    },
)
GPU = "nvidia.com/gpu"
PRODUCT = "nvidia.com/gpu.product"
H100_LABELS = {PRODUCT: "NVIDIA-H100-80GB-HBM3"}
KINDS = ("Workload", "LocalQueue", "ClusterQueue", "ResourceFlavor", "AdmissionCheck")


@dataclass(frozen=True)
class Kueue:
    """The running controller."""

    client: Client
    kubectl: Kubectl
    stack: ExitStack
    """Closing it removes what was installed."""

    def flavor(self, name: str, labels: Mapping[str, str]) -> None:
        """Nodes that a quota is for."""
        self.client.apply(_object("ResourceFlavor", name, spec={"nodeLabels": dict(labels)}))

    def cluster_queue(self, name: str, quotas: Mapping[str, int], **spec: Any) -> None:
        """GPUs by flavor, for all namespaces."""
        flavors = [
            {"name": flavor, "resources": [{"name": GPU, "nominalQuota": quota}]}
            for flavor, quota in quotas.items()
        ]
        group = {"coveredResources": [GPU], "flavors": flavors}
        whole = {"namespaceSelector": {}, "resourceGroups": [group], **spec}
        self.client.apply(_object("ClusterQueue", name, spec=whole))

    def local_queue(self, namespace: str, name: str, cluster_queue: str) -> None:
        """What jobs of a namespace name."""
        spec = {"clusterQueue": cluster_queue}
        self.client.apply(_object("LocalQueue", name, namespace, spec=spec))

    def check(self, name: str, controller: str) -> Object:
        """An AdmissionCheck, once somebody has said that it is answered."""
        check = _object("AdmissionCheck", name, spec={"controllerName": controller})
        self.client.apply(check)
        return check

    def answers_to(self, job: Object) -> list[Object]:
        """What AdmissionChecks say of a Job; nothing until Kueue has made a Workload for it."""
        return [
            answer
            for each in self.client.list(API, "Workload", job["metadata"]["namespace"])
            for owner in each["metadata"].get("ownerReferences", [])
            if owner["uid"] == job["metadata"]["uid"]
            for answer in each.get("status", {}).get("admissionChecks", [])
        ]

    def turn_on(self, gate: str) -> None:
        """Start the controller anew with a feature gate."""
        command = [{"op": "add", "path": _ARGUMENTS, "value": f"--feature-gates={gate}=true"}]
        where = f"--namespace={NAMESPACE}"
        self._run(
            "patch", where, "deployment", DEPLOYMENT, "--type=json", f"-p={json.dumps(command)}"
        )
        self._run("rollout", "status", where, f"deployment/{DEPLOYMENT}", "--timeout=180s")

    def remove(self) -> None:
        """Uninstall it with all its objects; without its controller nobody ends their finalizers.

        Once is enough: a second time finds nothing.
        """
        self.kubectl("scale", f"--namespace={NAMESPACE}", "--replicas=0", f"deploy/{DEPLOYMENT}")
        for kind in ("validating", "mutating"):
            name = f"kueue-{kind}-webhook-configuration"
            self.kubectl("delete", f"{kind}webhookconfiguration", "--ignore-not-found", name)
        if self.client.get("apiextensions.k8s.io/v1", "CustomResourceDefinition", _WORKLOADS):
            for kind in KINDS:
                for each in self.client.list(API, kind):
                    self.client.patch(each, {"metadata": {"finalizers": None}})
                    self.client.delete(each)
        self.stack.close()

    def _run(self, *words: str) -> None:
        completed = self.kubectl(*words)
        if completed.returncode:
            raise ProcessFailed(told(completed))


_ARGUMENTS = "/spec/template/spec/containers/0/args/-"
_WORKLOADS = "workloads.kueue.x-k8s.io"


def _object(kind: str, name: str, namespace: str = "", **parts: Any) -> Object:
    where = {"namespace": namespace} if namespace else {}
    return {"apiVersion": API, "kind": kind, "metadata": {"name": name, **where}, **parts}
