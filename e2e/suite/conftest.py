"""The cluster of the command line, Poolwise installed on it, and a namespace for each test."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from e2e import profiles
from e2e.controlplane import namespaces
from e2e.controlplane.client import Client
from e2e.kind.collect import collect, export
from e2e.kind.command import Completed, attempt
from e2e.kind.figures import Figures
from e2e.kind.nodes import HardwareKeeper, assign, workers
from e2e.kind.release import ENGINE_VALUES, IMAGE_VALUES, Helm
from e2e.suite.operator import Operator
from e2e.tools.build import binaries
from e2e.tools.catalog import HELM, KIND, KUBECTL
from e2e.workloads import Observer

PROFILE = "kind"
TEST_SECONDS = 600
WAIT_SECONDS = 180.0
INSTALL_BAR_SECONDS = 60.0
DEFAULT_STAGE = 50

Kubectl = Callable[..., Completed]
FIGURES = pytest.StashKey[Figures]()
FAILED = pytest.StashKey[list[str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--kubeconfig", type=Path, help="of the cluster; python -m e2e.kind makes one")
    parser.addoption("--kind", default="", help="its name, where it is a kind cluster")
    parser.addoption("--evidence", type=Path, help="a folder for logs and objects of failures")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "core: belongs to the short part")
    config.addinivalue_line("markers", f"stage(n): {DEFAULT_STAGE}, or later for what breaks more")
    config.stash[FIGURES] = Figures()
    config.stash[FAILED] = []
    if not config.getoption("kubeconfig") and not config.getoption("collectonly"):
        raise pytest.UsageError("no --kubeconfig: run make e2e, or python -m e2e.kind")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What others need goes first, what takes the cluster apart goes last."""

    def stage(item: pytest.Item) -> int:
        marker = item.get_closest_marker("stage")
        return int(marker.args[0]) if marker else DEFAULT_STAGE

    items.sort(key=stage)
    for item in items:
        if item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(TEST_SECONDS))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]):
    """Collect evidence of a failure while its objects are still there."""
    report = yield
    folder = item.config.getoption("evidence")
    if report.failed and folder is not None:
        name = re.sub(r"[^\w.-]+", "-", item.nodeid.rpartition("/")[2])
        found = binaries((KUBECTL,))["kubectl"]
        collect([found, f"--kubeconfig={item.config.getoption('kubeconfig')}"], folder / name)
        item.config.stash[FAILED].append(name)
    return report


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    for figure in config.stash[FIGURES].measured:
        terminalreporter.write_line(str(figure))
    if config.stash[FAILED]:
        terminalreporter.write_line(f"logs and objects: {config.getoption('evidence')}")


def pytest_sessionfinish(session: pytest.Session) -> None:
    """The nodes' own logs, once, where anything failed."""
    config = session.config
    if config.stash[FAILED] and config.getoption("kind"):
        folder = config.getoption("evidence") / "nodes"
        export(binaries((KIND,))["kind"], config.getoption("kind"), folder)


@pytest.fixture(scope="session")
def kubeconfig(request: pytest.FixtureRequest) -> Path:
    """The administrator's kubeconfig file."""
    given: Path = request.config.getoption("--kubeconfig")
    return given.resolve()


@pytest.fixture(scope="session")
def in_containers(request: pytest.FixtureRequest) -> None:
    """For tests that reach below Kubernetes: nodes have to be containers of this machine."""
    if not request.config.getoption("--kind"):
        pytest.skip("needs a kind cluster of this machine")


@pytest.fixture(scope="session")
def client(kubeconfig: Path) -> Iterator[Client]:
    """A client with the administrator's rights."""
    client = Client(kubeconfig)
    yield client
    client.close()


@pytest.fixture(scope="session")
def kubectl(kubeconfig: Path) -> Kubectl:
    """kubectl as administrator; check ``returncode``, ``stdout`` and ``stderr``."""
    command: list[str | Path] = [binaries((KUBECTL,))["kubectl"], f"--kubeconfig={kubeconfig}"]
    return lambda *words, stdin="": attempt([*command, *words], stdin)


@pytest.fixture(scope="session")
def helm(kubeconfig: Path, tmp_path_factory: pytest.TempPathFactory) -> Helm:
    """Helm, with a home of its own."""
    return Helm(binaries((HELM,))["helm"], kubeconfig, tmp_path_factory.mktemp("helm"))


@pytest.fixture(scope="session")
def figures(request: pytest.FixtureRequest) -> Figures:
    """Where to note what was measured."""
    return request.config.stash[FIGURES]


@pytest.fixture(scope="session", autouse=True)
def hardware(client: Client) -> Iterator[HardwareKeeper]:
    """The workers, with the accelerators of the profile."""
    names = workers(client.list("v1", "Node"))
    with HardwareKeeper(client, assign(profiles.render(PROFILE), names)) as keeper:
        yield keeper


@pytest.fixture(scope="session", autouse=True)
def operator(
    helm: Helm, client: Client, kubectl: Kubectl, hardware: HardwareKeeper, figures: Figures
) -> Iterator[Operator]:
    """Poolwise, installed as its chart does it, for all tests that do not say otherwise."""
    operator = Operator(helm, client, kubectl, (*IMAGE_VALUES, *ENGINE_VALUES))
    started = time.monotonic()
    try:
        operator.install()
        figures.note("helm install to Ready", time.monotonic() - started, "s", INSTALL_BAR_SECONDS)
        yield operator
    finally:
        operator.remove()


@pytest.fixture
def namespace(client: Client, operator: Operator) -> Iterator[str]:
    """A fresh namespace; what runs in it ends with the test."""
    name = namespaces.create(client)
    yield name
    namespaces.remove(client, name)


@pytest.fixture(scope="session")
def observer(client: Client) -> Observer:
    """Looks at objects until they are as expected."""
    return Observer(client, WAIT_SECONDS)


@pytest.fixture(scope="session", autouse=True)
def helm_log(helm: Helm, request: pytest.FixtureRequest) -> Iterator[None]:
    """What Helm was asked and said goes to the evidence."""
    yield
    folder = request.config.getoption("--evidence")
    if request.config.stash[FAILED] and folder and helm.log.exists():
        shutil.copy(helm.log, folder)
