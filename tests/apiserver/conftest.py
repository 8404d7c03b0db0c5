"""A real API server for the tests of this folder, and what they need around it."""

from __future__ import annotations

import secrets
import subprocess
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

import pytest
import yaml

from e2e.controlplane import nodes as fake_nodes
from e2e.controlplane.audit import AuditLog
from e2e.controlplane.client import Client, Object
from e2e.controlplane.cluster import ControlPlane

CRDS = Path(__file__).resolve().parent.parent.parent / "crds"
WORKLOADS = (
    ("poolwise.dev/v1alpha1", "TrainingJob"),
    ("poolwise.dev/v1alpha1", "InferenceService"),
    ("batch/v1", "Job"),
    ("apps/v1", "Deployment"),
)


class Kubectl(Protocol):
    """Run the pinned kubectl; ``stdin`` is what ``-f -`` reads, one document or several."""

    def __call__(
        self, *arguments: str, stdin: Object | Sequence[Object] | str = ""
    ) -> subprocess.CompletedProcess[str]: ...


NodeFactory = Callable[[Iterable[Object]], list[Object]]


@pytest.fixture(scope="session")
def cluster(request: pytest.FixtureRequest) -> Iterator[ControlPlane]:
    """The control plane of this session."""
    with ControlPlane.prepare("poolwise-tests") as control_plane:
        yield control_plane


@pytest.fixture(scope="session")
def kubeconfig(cluster: ControlPlane) -> Path:
    """The administrator's kubeconfig file."""
    return cluster.kubeconfig


@pytest.fixture(scope="session")
def kubectl(cluster: ControlPlane, kubeconfig: Path) -> Kubectl:
    """The pinned kubectl as administrator; check ``returncode``, ``stdout`` and ``stderr``."""

    def run(
        *arguments: str, stdin: Object | Sequence[Object] | str = ""
    ) -> subprocess.CompletedProcess[str]:
        documents = [stdin] if isinstance(stdin, dict) else stdin
        text = stdin if isinstance(stdin, str) else yaml.safe_dump_all(documents)
        command = [cluster.state.binaries["kubectl"], f"--kubeconfig={kubeconfig}", *arguments]
        return subprocess.run(command, input=text, capture_output=True, text=True, check=False)

    return run


@pytest.fixture(scope="session")
def client(kubeconfig: Path) -> Iterator[Client]:
    """A client with the administrator's rights."""
    client = Client(kubeconfig)
    yield client
    client.close()


@pytest.fixture(scope="session")
def crds(client: Client, kubectl: Kubectl) -> list[str]:
    """Poolwise's resources, established; their names."""
    applied = kubectl("apply", "--server-side", "-f", str(CRDS), "-o", "name")
    assert applied.returncode == 0, applied.stderr
    names = applied.stdout.split()
    established = kubectl("wait", "--for=condition=Established", "--timeout=30s", *names)
    assert established.returncode == 0, established.stderr
    return [name.rpartition("/")[2] for name in names]


@pytest.fixture
def namespace(client: Client) -> Iterator[str]:
    """A fresh namespace, ready for pods; workloads in it are gone when the test has ended."""
    name = f"test-{secrets.token_hex(4)}"
    document = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    client.create(document)
    account = {"name": "default", "namespace": name}
    client.wait_for(
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account}, lambda _: True
    )
    yield name
    client.delete(document)


@pytest.fixture
def audit(cluster: ControlPlane) -> AuditLog:
    """The API server's record of writes: ``mark()``, then ``writes(since=mark, user=...)``."""
    return cluster.audit


@pytest.fixture
def nodes(client: Client) -> Iterator[NodeFactory]:
    """Add fake nodes, ready to be scheduled to; they are deleted when the test has ended."""
    created: list[Object] = []

    def add(documents: Iterable[Object]) -> list[Object]:
        added = fake_nodes.add(client, documents)
        created.extend(added)
        return added

    yield add
    fake_nodes.remove(client, created)
