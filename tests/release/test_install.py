"""install.yaml: what the chart renders, in one file that a real API server takes in one go."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from e2e.controlplane.client import Client, Object
from e2e.controlplane.cluster import ControlPlane
from e2e.release import manifests
from e2e.release.__main__ import main
from e2e.release.errors import NotReleasable
from e2e.release.image import Image

DIGEST = "sha256:" + "0123456789abcdef" * 4
REFERENCE = f"ghcr.io/you/poolwise@{DIGEST}"
ROOT = Path(__file__).resolve().parent.parent.parent
CRDS = {
    "acceleratorpools.poolwise.dev",
    "inferenceservices.poolwise.dev",
    "trainingjobs.poolwise.dev",
}
pytestmark = pytest.mark.tools("helm")

Kubectl = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("release")
    main(["files", f"--image={REFERENCE}", f"--output={folder}"])
    return folder


@pytest.fixture(scope="module")
def documents(output: Path) -> list[Object]:
    return list(yaml.safe_load_all((output / "install.yaml").read_text("utf-8")))


def of_kind(documents: list[Object], kind: str) -> list[Object]:
    return [each for each in documents if each["kind"] == kind]


def test_what_others_need_comes_first(documents: list[Object]) -> None:
    kinds = [each["kind"] for each in documents]
    assert kinds[:4] == ["Namespace", *["CustomResourceDefinition"] * 3]
    for owner in ("ServiceAccount", "ClusterRole", "Role"):
        assert kinds.index(owner) < kinds.index("Deployment")


def test_the_operator_is_the_released_image(documents: list[Object]) -> None:
    [deployment] = of_kind(documents, "Deployment")
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    assert container["image"] == REFERENCE


def test_nothing_says_that_helm_manages_it(output: Path, documents: list[Object]) -> None:
    assert "helm.sh/" not in (output / "install.yaml").read_text("utf-8")
    for each in documents:
        assert each["metadata"].get("labels", {}).get("app.kubernetes.io/managed-by") != "Helm"
        assert each["metadata"].get("namespace") in (None, manifests.NAMESPACE)


def test_the_crds_are_those_of_the_models(output: Path, documents: list[Object]) -> None:
    alone = list(yaml.safe_load_all((output / "crds.yaml").read_text("utf-8")))
    written = [
        yaml.safe_load(path.read_text("utf-8")) for path in sorted((ROOT / "crds").iterdir())
    ]
    assert alone == written
    assert {each["metadata"]["name"] for each in alone} == CRDS
    installed = of_kind(documents, "CustomResourceDefinition")
    assert [each["spec"] for each in installed] == [each["spec"] for each in alone]


@pytest.mark.parametrize("reference", ["ghcr.io/you/poolwise:1.0", f"@{DIGEST}", f"{REFERENCE}0"])
def test_an_image_without_digest_is_refused(reference: str) -> None:
    with pytest.raises(NotReleasable, match=r"is not REPOSITORY@sha256: and 64 digits"):
        Image.parse(reference)


@pytest.fixture(scope="module")
def fresh(request: pytest.FixtureRequest) -> Iterator[ControlPlane]:
    """A control plane on which nothing is installed."""
    if request.config.getoption("--cluster") != "local":
        pytest.skip("needs --cluster=local: it installs into the whole cluster")
    with ControlPlane.prepare("poolwise-release") as running:
        yield running


@pytest.fixture(scope="module")
def kubectl(fresh: ControlPlane) -> Kubectl:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [str(fresh.state.binaries["kubectl"]), f"--kubeconfig={fresh.kubeconfig}"]
        return subprocess.run([*command, *arguments], capture_output=True, text=True, check=False)

    return run


@pytest.fixture(scope="module")
def installed(kubectl: Kubectl, output: Path) -> list[str]:
    """The file, applied once; what was written."""
    applied = apply(kubectl, output / "install.yaml")
    assert applied.returncode == 0, applied.stderr
    return applied.stdout.splitlines()


def apply(kubectl: Kubectl, path: Path) -> subprocess.CompletedProcess[str]:
    return kubectl("apply", "--server-side", "-f", str(path))


@pytest.mark.apiserver
def test_one_apply_installs_it(installed: list[str], documents: list[Object]) -> None:
    assert len(installed) == len(documents)
    assert all(line.endswith(" serverside-applied") for line in installed)


@pytest.mark.apiserver
def test_the_resources_serve_at_once(installed: list[str], kubectl: Kubectl) -> None:
    assert kubectl("wait", "--for=condition=Established", "crd", *CRDS).returncode == 0
    example = ROOT / "examples" / "training-vision.yaml"
    made = kubectl("create", "--dry-run=server", "-f", str(example))
    assert made.returncode == 0, made.stderr


@pytest.mark.apiserver
def test_its_namespace_admits_the_operator(installed: list[str], fresh: ControlPlane) -> None:
    """Pod Security "restricted" would leave the ReplicaSet without pods, and say so in it."""
    client = Client(fresh.kubeconfig)
    [controlled] = client.list("apps/v1", "Deployment", manifests.NAMESPACE)

    def has_pods(deployment: Object) -> bool:
        return bool(deployment.get("status", {}).get("replicas") == 2)

    client.wait_for(controlled, has_pods, 60)
    client.close()


@pytest.mark.apiserver
def test_a_second_apply_changes_nothing(
    installed: list[str], kubectl: Kubectl, output: Path, documents: list[Object]
) -> None:
    before = generations(kubectl, documents)
    assert apply(kubectl, output / "install.yaml").returncode == 0
    assert generations(kubectl, documents) == before


def generations(kubectl: Kubectl, documents: list[Object]) -> dict[str, Any]:
    """The generation of every object that has one."""
    kinds = ",".join(sorted({each["kind"].lower() for each in documents}))
    told = kubectl("get", kinds, "-n", manifests.NAMESPACE, "-o", "yaml")
    assert told.returncode == 0, told.stderr
    listed = yaml.safe_load(told.stdout)["items"]
    return {
        f"{each['kind']}/{each['metadata']['name']}": each["metadata"].get("generation")
        for each in listed
    }


@pytest.mark.apiserver
def test_kustomize_changes_what_it_must(kubectl: Kubectl, output: Path, tmp_path: Path) -> None:
    """The overlay of docs/release.md."""
    page = (ROOT / "docs" / "release.md").read_text("utf-8")
    overlay = page.partition("```yaml\n# kustomization.yaml\n")[2].partition("```")[0]
    address = next(line for line in overlay.splitlines() if line.endswith("/install.yaml"))
    (tmp_path / "kustomization.yaml").write_text(
        overlay.replace(address, "- install.yaml"), "utf-8"
    )
    (tmp_path / "install.yaml").write_bytes((output / "install.yaml").read_bytes())
    built = kubectl("kustomize", str(tmp_path))
    assert built.returncode == 0, built.stderr
    [deployment] = of_kind(list(yaml.safe_load_all(built.stdout)), "Deployment")
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    assert {"name": "POOLWISE_CURRENCY", "value": "EUR"} in container["env"]
    assert deployment["spec"]["template"]["spec"]["priorityClassName"] == "system-cluster-critical"
