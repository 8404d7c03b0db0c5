"""Install over what is there, upgrade the first chart, uninstall with live objects: all stays."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.chart.generated import CRDS as CRDS_CHART
from e2e.chart.generated import OPERATOR
from e2e.controlplane.client import Object
from e2e.controlplane.served import await_served
from tests.apiserver.operated import training_job
from tests.chart.cluster import CRDS, Cluster, running
from tests.chart.rendering import IMAGE, NAMESPACE, RELEASE, merged

pytestmark = [pytest.mark.apiserver, pytest.mark.tools("helm")]

EARLIER = Path(__file__).parent / "earlier" / "poolwise"
"""The chart as of 0.1.0, which had the CRDs in ``crds/``."""
CRD = ("apiextensions.k8s.io/v1", "CustomResourceDefinition", "trainingjobs.poolwise.dev")
APART = {"crds": {"install": False}}


@pytest.fixture
def empty() -> Iterator[Cluster]:
    """A cluster without anything of ours: a new one, which is there sooner than CRDs are gone of
    which one has just changed (the API server may take minutes for those)."""
    with running("poolwise-lifecycle") as cluster:
        yield cluster


def live(cluster: Cluster) -> Object:
    """A workload that somebody has there: helm returns before its kind is served."""
    await_served(cluster.client, [CRD[2]])
    return cluster.client.create(training_job("default", "train", 8))


def uid_of(cluster: Cluster, workload: Object) -> str:
    found = cluster.client.get(workload["apiVersion"], workload["kind"], "train", "default")
    return str(found["metadata"]["uid"]) if found else ""


def changed(folder: Path) -> Path:
    """A newer chart, in which a CRD has changed."""
    newer = folder / "poolwise"
    shutil.copytree(OPERATOR, newer)
    crd = newer / "files" / "crds" / "trainingjobs.yaml"
    crd.write_text(re.sub(r"shortNames:\n( +)- ", r"shortNames:\n\1- x\n\1- ", crd.read_text()))
    return newer


def short_names(cluster: Cluster) -> list[str]:
    crd = cluster.client.get(*CRD)
    assert crd
    return list(crd["spec"]["names"]["shortNames"])


def test_crds_that_are_there_are_left_alone_until_they_are_handed_over(
    empty: Cluster, tmp_path: Path
) -> None:
    empty.apply(CRDS)
    workload = live(empty)
    install = ("install", RELEASE, str(OPERATOR))
    refused = empty.helm(*install, values=IMAGE)
    assert refused.returncode != 0
    assert "trainingjobs.poolwise.dev" in refused.stderr or "acceleratorpools" in refused.stderr
    assert "exists and cannot be imported into the current release" in refused.stderr
    taken = empty.helm(*install, "--take-ownership", values=IMAGE)
    assert taken.returncode == 0, taken.stderr
    newer = str(changed(tmp_path))
    upgrade = ("upgrade", RELEASE, newer, "--reuse-values")
    conflict = empty.helm(*upgrade)
    assert 'conflict with "kubectl"' in conflict.stderr
    forced = empty.helm(*upgrade, "--force-conflicts")
    assert forced.returncode == 0, forced.stderr
    assert short_names(empty)[0] == "x"
    assert uid_of(empty, workload) == workload["metadata"]["uid"]


def test_the_first_chart_is_upgraded_with_its_values(empty: Cluster, tmp_path: Path) -> None:
    earlier = tmp_path / "poolwise"
    shutil.copytree(EARLIER, earlier)
    shutil.copytree(CRDS, earlier / "crds")
    given = merged(IMAGE, {"replicas": 3, "settings": {"currency": "EUR"}})
    installed = empty.helm("install", RELEASE, str(earlier), values=given)
    assert installed.returncode == 0, installed.stderr
    workload = live(empty)
    upgrade = ("upgrade", RELEASE, str(OPERATOR), "--reuse-values")
    assert "cannot be imported" in empty.helm(*upgrade).stderr
    upgraded = empty.helm(*upgrade, "--take-ownership")
    assert upgraded.returncode == 0, upgraded.stderr
    deployment = empty.client.get("apps/v1", "Deployment", "poolwise", NAMESPACE)
    assert deployment and deployment["spec"]["replicas"] == 3
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    assert {"name": "POOLWISE_CURRENCY", "value": "EUR"} in container["env"]
    assert uid_of(empty, workload) == workload["metadata"]["uid"]
    again = empty.helm("upgrade", RELEASE, str(changed(tmp_path / "newer")), "--reuse-values")
    assert again.returncode == 0, again.stderr
    assert short_names(empty)[0] == "x"


def test_uninstalling_leaves_workloads_and_installing_again_finds_them(empty: Cluster) -> None:
    install = ("install", RELEASE, str(OPERATOR))
    assert empty.helm(*install, values=IMAGE).returncode == 0
    workload = live(empty)
    twice = empty.helm(*install, values=IMAGE)
    assert "cannot reuse a name that is still in use" in twice.stderr
    for values in (IMAGE, merged(IMAGE, APART)):
        second = empty.helm("install", "second", str(OPERATOR), values=values)
        assert f"release {NAMESPACE}/{RELEASE} exists and serves this cluster" in second.stderr
    removed = empty.helm("uninstall", RELEASE, "--wait")
    assert removed.returncode == 0, removed.stderr
    assert uid_of(empty, workload) == workload["metadata"]["uid"]
    left = [name for name in everything(empty) if not name.startswith("customresourcedefinition")]
    assert left == []
    assert empty.helm(*install, values=IMAGE).returncode == 0
    assert uid_of(empty, workload) == workload["metadata"]["uid"]


def test_no_upgrade_deletes_crds(empty: Cluster) -> None:
    lost = merged(IMAGE, {"crds": {"keep": False}})
    assert empty.helm("install", RELEASE, str(OPERATOR), values=lost).returncode == 0
    workload = live(empty)
    upgrade = ("upgrade", RELEASE, str(OPERATOR))
    for values in (merged(IMAGE, APART), merged(lost, APART)):
        refused = empty.helm(*upgrade, values=values)
        assert "upgrade with crds.keep=true first" in refused.stderr
    for values in (IMAGE, merged(IMAGE, APART)):
        assert empty.helm(*upgrade, values=values).returncode == 0
    assert uid_of(empty, workload) == workload["metadata"]["uid"]


KINDS = (
    "crds,clusterroles,clusterrolebindings,validatingadmissionpolicies,"
    "validatingadmissionpolicybindings,deployments,services,serviceaccounts,roles,rolebindings,"
    "networkpolicies,poddisruptionbudgets,secrets"
)


def everything(cluster: Cluster) -> list[str]:
    """What carries the release's label, of all kinds that the chart has."""
    selector = "--selector=app.kubernetes.io/instance=poolwise"
    return cluster.kubectl("get", KINDS, "-A", selector, "--output=name").stdout.split()


def test_the_crds_move_to_their_own_chart(empty: Cluster) -> None:
    assert empty.helm("install", RELEASE, str(OPERATOR), values=IMAGE).returncode == 0
    workload = live(empty)
    apart = ("install", "poolwise-crds", str(CRDS_CHART))
    assert "cannot be imported" in empty.helm(*apart).stderr
    assert empty.helm(*apart, "--take-ownership").returncode == 0
    without = empty.helm("upgrade", RELEASE, str(OPERATOR), values=merged(IMAGE, APART))
    assert without.returncode == 0, without.stderr
    assert empty.helm("uninstall", "poolwise-crds").returncode == 0
    assert uid_of(empty, workload) == workload["metadata"]["uid"]
