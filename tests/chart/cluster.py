"""A control plane in which the chart is installed, apart from the one of the other tests."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import yaml

from e2e.controlplane.client import Client, Object
from e2e.controlplane.cluster import ControlPlane
from e2e.controlplane.served import await_served
from e2e.controlplane.supervised import REPOSITORY
from tests.chart import rendering
from tests.chart.rendering import NAMESPACE, Values

CRDS = REPOSITORY / "crds"
MONITORING_CRDS = Path(__file__).parent / "schemas"
POD_SECURITY = "pod-security.kubernetes.io/enforce"
WAIT = ("--wait", "--timeout=60s")

Done = subprocess.CompletedProcess[str]


@dataclass(frozen=True)
class Cluster:
    """The control plane, a client with all rights, and its command line tools."""

    control_plane: ControlPlane
    client: Client

    def kubectl(self, *arguments: str, stdin: str = "") -> Done:
        """As administrator; check ``returncode``."""
        command = [self.control_plane.state.binaries["kubectl"], *self._kubeconfig, *arguments]
        return subprocess.run(command, input=stdin, capture_output=True, text=True, check=False)

    def helm(self, *arguments: str, values: Values | None = None) -> Done:
        """As administrator, in the operator's namespace; check ``returncode``."""
        given = () if values is None else ("--values=-",)
        where = (f"--namespace={NAMESPACE}", *self._kubeconfig)
        return rendering.helm(*arguments, *where, *given, stdin=json.dumps(values))

    @property
    def _kubeconfig(self) -> tuple[str]:
        return (f"--kubeconfig={self.control_plane.kubeconfig}",)

    def apply(self, path: Path) -> None:
        """Apply CRDs and return once they are served."""
        done = self.kubectl("apply", "--server-side", f"--filename={path}", "--output=name")
        assert done.returncode == 0, done.stderr
        await_served(self.client, [each.rpartition("/")[2] for each in done.stdout.split()])

    def create_namespace(self, name: str, **labels: str) -> None:
        """A namespace with these labels."""
        metadata = {"name": name, "labels": labels}
        self.client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})

    @contextmanager
    def user(self, name: str) -> Iterator[Client]:
        """A client of a user that has what RBAC grants to that name."""
        client = Client(self.control_plane.kubeconfig_for(name))
        try:
            yield client
        finally:
            client.close()

    @contextmanager
    def service_account(self, name: str, namespace: str = NAMESPACE) -> Iterator[Client]:
        """A client with a token of that ServiceAccount."""
        account = self.control_plane.kubeconfig_for_service_account(namespace, name)
        client = Client(account)
        try:
            yield client
        finally:
            client.close()


@contextmanager
def running(name: str) -> Iterator[Cluster]:
    """A control plane with the operator's namespace, where only restricted pods may run."""
    with ControlPlane.prepare(name) as control_plane:
        client = Client(control_plane.kubeconfig)
        try:
            cluster = Cluster(control_plane, client)
            cluster.create_namespace(NAMESPACE, **{POD_SECURITY: "restricted"})
            yield cluster
        finally:
            client.close()


def as_text(documents: list[Object]) -> str:
    """Documents as ``kubectl apply --filename=-`` reads them."""
    return yaml.safe_dump_all(documents)
