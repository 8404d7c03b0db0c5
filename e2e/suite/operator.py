"""Poolwise as it is installed in the cluster: its release, its pods, and which of them leads."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

from e2e.controlplane.client import Client, Object
from e2e.errors import ProcessFailed
from e2e.kind.command import Completed, told
from e2e.kind.release import NAMESPACE, RELEASE, Helm

CRDS = (
    "acceleratorpools.poolwise.dev",
    "inferenceservices.poolwise.dev",
    "trainingjobs.poolwise.dev",
)
LEASE = {
    "apiVersion": "coordination.k8s.io/v1",
    "kind": "Lease",
    "metadata": {"name": "poolwise", "namespace": NAMESPACE},
}
DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": RELEASE, "namespace": NAMESPACE},
}
SELECTOR = f"app.kubernetes.io/name=poolwise,app.kubernetes.io/instance={RELEASE}"


@dataclass(frozen=True)
class Operator:
    """The release of the session; tests that change it leave it installed as they found it."""

    helm: Helm
    client: Client
    kubectl: Callable[..., Completed]
    values: tuple[str, ...]

    def install(self, *values: str) -> None:
        """Install the chart of this checkout, and return once both replicas are ready."""
        self.helm.install(*self.values, *values)

    def remove(self) -> None:
        """Uninstall it, and delete what a user would have to delete by hand: CRDs, namespace."""
        if self.is_installed():
            self.helm.uninstall()
        self.command("delete", "crd", "--ignore-not-found", *CRDS)
        self.command("delete", "namespace", "--ignore-not-found", NAMESPACE)

    def is_installed(self) -> bool:
        """Whether Helm has the release."""
        listed = json.loads(self.helm.run(["list", "--output", "json"]))
        return any(release["name"] == RELEASE for release in listed)

    def pods(self) -> list[Object]:
        """Its pods that are not being deleted."""
        pods = self.client.list("v1", "Pod", NAMESPACE, SELECTOR)
        return [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]

    def leader(self) -> Object:
        """The pod that holds the Lease; raises :class:`LookupError` while none does."""
        held = self.client.get("coordination.k8s.io/v1", "Lease", "poolwise", NAMESPACE) or {}
        holder = held.get("spec", {}).get("holderIdentity") or ""
        for pod in self.pods():
            if holder.startswith(pod["metadata"]["name"]):
                return pod
        raise LookupError(f"no pod is {holder!r}, which holds the Lease")

    def python(self, pod: Object, program: str) -> str:
        """What a Python program printed that ran in the operator's container."""
        name = pod["metadata"]["name"]
        return self.command("exec", f"--namespace={NAMESPACE}", name, "--", "python", "-c", program)

    def command(self, *words: str, stdin: str = "") -> str:
        """What kubectl printed; raises :class:`ProcessFailed`."""
        completed = self.kubectl(*words, stdin=stdin)
        if completed.returncode:
            raise ProcessFailed(told(completed))
        return completed.stdout
