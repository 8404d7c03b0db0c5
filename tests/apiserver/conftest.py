"""A real API server for the tests of this folder, and what they need around it."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

import pytest
import yaml

from e2e.controlplane import namespaces
from e2e.controlplane import nodes as fake_nodes
from e2e.controlplane.audit import AuditLog
from e2e.controlplane.client import Client, Object
from e2e.controlplane.cluster import ControlPlane
from e2e.controlplane.existing import ExistingCluster
from e2e.controlplane.served import await_served
from e2e.controlplane.supervised import Supervised
from tests.apiserver.operated import Operated, operated

CRDS = Path(__file__).resolve().parent.parent.parent / "crds"


class Kubectl(Protocol):
    """Run the pinned kubectl; ``stdin`` is what ``-f -`` reads, one document or several."""

    def __call__(
        self, *arguments: str, stdin: Object | Sequence[Object] | str = ""
    ) -> subprocess.CompletedProcess[str]: ...


NodeFactory = Callable[[Iterable[Object]], list[Object]]


@pytest.fixture(scope="session")
def cluster(request: pytest.FixtureRequest) -> Iterator[Supervised]:
    """The cluster of this session, as ``--cluster`` says."""
    kind, _, context = request.config.getoption("--cluster").partition(":")
    if kind == "local":
        running: Supervised = ControlPlane.prepare("poolwise-tests")
    elif kind == "context" and context:
        running = ExistingCluster.prepare(context)
    else:
        raise pytest.UsageError("--cluster is local or context:NAME")
    with running:
        yield running


@pytest.fixture(scope="session")
def control_plane(cluster: Supervised) -> ControlPlane:
    """The cluster, for tests that need one of our own: its certificates, flags or audit log."""
    if not isinstance(cluster, ControlPlane):
        pytest.skip("needs --cluster=local")
    return cluster


@pytest.fixture(scope="session")
def kubeconfig(cluster: Supervised) -> Path:
    """The administrator's kubeconfig file."""
    return cluster.kubeconfig


@pytest.fixture(scope="session")
def kubectl(cluster: Supervised) -> Kubectl:
    """The pinned kubectl as administrator; check ``returncode``, ``stdout`` and ``stderr``."""

    def run(
        *arguments: str, stdin: Object | Sequence[Object] | str = ""
    ) -> subprocess.CompletedProcess[str]:
        documents = [stdin] if isinstance(stdin, dict) else stdin
        text = stdin if isinstance(stdin, str) else yaml.safe_dump_all(documents)
        kubectl = [cluster.state.binaries["kubectl"], f"--kubeconfig={cluster.kubeconfig}"]
        return subprocess.run(
            [*kubectl, *arguments], input=text, capture_output=True, text=True, check=False
        )

    return run


@pytest.fixture(scope="session")
def client(kubeconfig: Path) -> Iterator[Client]:
    """A client with the administrator's rights."""
    client = Client(kubeconfig)
    yield client
    client.close()


@pytest.fixture(scope="session")
def crds(kubectl: Kubectl, client: Client) -> Iterator[list[str]]:
    """Poolwise's resources, served; their names. Those that were not there go at the end."""
    present = kubectl("get", "crds", "-o", "name").stdout.split()
    applied = kubectl("apply", "--server-side", "-f", str(CRDS), "-o", "name")
    assert applied.returncode == 0, applied.stderr
    names = applied.stdout.split()
    plain = [name.rpartition("/")[2] for name in names]
    await_served(client, plain)
    yield plain
    if added := sorted(set(names) - set(present)):
        kubectl("delete", *added)


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


@pytest.fixture
def namespace(request: pytest.FixtureRequest, client: Client, nodes: NodeFactory) -> Iterator[str]:
    """A fresh namespace, ready for pods; what runs in it ends with the test, before the nodes.

    A parameter is its labels.
    """
    name = namespaces.create(client, getattr(request, "param", {}))
    yield name
    namespaces.remove(client, name)


@pytest.fixture(scope="module")
def operator(
    request: pytest.FixtureRequest,
    control_plane: ControlPlane,
    client: Client,
    crds: list[str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Operated]:
    """The operator as a process of its own, under its own user, with the module's ``SETTINGS``."""
    log = tmp_path_factory.mktemp("operator") / "operator.log"
    settings = getattr(request.module, "SETTINGS", None)
    with operated(control_plane, client, log, settings) as operator:
        yield operator


@pytest.fixture
def audit(control_plane: ControlPlane) -> AuditLog:
    """The API server's record of writes: ``mark()``, then ``writes(since=mark, user=...)``."""
    return control_plane.audit
