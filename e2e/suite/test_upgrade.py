"""From a previous chart to this one and back, under running work."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.controlplane.client import Client, Object
from e2e.kind.images import PREVIOUS
from e2e.kind.release import CHART, NAMESPACE
from e2e.suite.doubles import service, training
from e2e.suite.fleet import restarts
from e2e.suite.operator import DEPLOYMENT, Operator
from e2e.workloads import Observer

pytestmark = pytest.mark.stage(85)

OLD_VERSION = "0.0.9"
OLD_IMAGE = "image.tag=" + PREVIOUS.partition(":")[2]


@pytest.fixture(scope="module")
def previous_chart(operator: Operator, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A package of the chart under an older version."""
    folder = tmp_path_factory.mktemp("previous")
    copy = folder / "poolwise"
    shutil.copytree(CHART, copy)
    about = copy / "Chart.yaml"
    about.write_text(
        re.sub(r"(?m)^(version|appVersion):.*", rf'\1: "{OLD_VERSION}"', about.read_text())
    )
    operator.helm.run(["package", copy, "--destination", folder])
    return folder / f"poolwise-{OLD_VERSION}.tgz"


@pytest.fixture
def upgraded_from(operator: Operator, previous_chart: Path) -> Iterator[None]:
    """The previous chart is installed; in the end the session's own is, as before."""
    operator.helm.uninstall()
    operator.helm.install(*operator.values, OLD_IMAGE, chart=previous_chart)
    yield
    operator.helm.upgrade(*operator.values, options=["--reset-values"])


@pytest.mark.usefixtures("upgraded_from")
def test_work_runs_on_through_upgrades_and_back(
    client: Client, observer: Observer, operator: Operator, namespace: str
) -> None:
    workloads = [
        client.create(training(namespace, "gang", 16, 600)),
        client.create(service(namespace, "chat")),
    ]
    for workload in workloads:
        observer.wait_condition(workload, "Ready", "True")
    before = [identity(observer, workload) for workload in workloads]
    assert image(observer).endswith(PREVIOUS)

    operator.helm.upgrade(options=["--reuse-values"])
    assert version(observer) != OLD_VERSION
    operator.helm.upgrade(*operator.values)
    assert image(observer).endswith("poolwise:dev")
    late = client.create(service(namespace, "late"))
    observer.wait_condition(late, "Ready", "True")
    operator.helm.rollback()
    operator.helm.rollback("1")
    assert (image(observer), version(observer)) == (PREVIOUS, OLD_VERSION)

    for workload in (*workloads, late):
        observer.wait_condition(workload, "Ready", "True")
    assert [identity(observer, workload) for workload in workloads] == before


def identity(observer: Observer, workload: Object) -> tuple[str, str, dict[str, int]]:
    """What must not change: the object, where it runs, and its pods with their restarts."""
    seen = observer.look(workload) or {}
    pool = seen["status"]["plan"]["pool"]
    return seen["metadata"]["uid"], pool, restarts(observer.pods_of(workload))


def image(observer: Observer) -> str:
    deployment = observer.look(DEPLOYMENT) or {}
    return str(deployment["spec"]["template"]["spec"]["containers"][0]["image"])


def version(observer: Observer) -> str:
    deployment = observer.look(DEPLOYMENT) or {}
    assert deployment["metadata"]["namespace"] == NAMESPACE
    return str(deployment["metadata"]["labels"]["app.kubernetes.io/version"])
