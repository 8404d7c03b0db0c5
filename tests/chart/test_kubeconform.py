"""All manifests against the schemas of a real API server, our own kinds included."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from e2e.controlplane.supervised import REPOSITORY
from e2e.tools.build import binaries
from e2e.tools.catalog import KUBECONFORM
from tests.chart import openapi
from tests.chart.cases import CASES
from tests.chart.cluster import Cluster, as_text
from tests.chart.conftest import VALUES
from tests.chart.rendering import Object, documents

pytestmark = [pytest.mark.apiserver, pytest.mark.tools("helm", "kubeconform")]

EXAMPLES = sorted(path for path in (REPOSITORY / "examples").glob("*.yaml"))


@pytest.fixture(scope="session")
def schemas(release: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Schemas of all API versions that the chart uses, as files."""

    def read(path: str) -> str:
        done = release.kubectl("get", "--raw", path)
        assert done.returncode == 0, done.stderr
        return done.stdout

    folder = tmp_path_factory.mktemp("schemas")
    openapi.write(read, (each["apiVersion"] for each in documents(VALUES)), folder)
    return folder


def conform(schemas: Path, manifests: str) -> list[Object]:
    """What kubeconform says of each document that is not valid."""
    location = f"{schemas}/{openapi.LOCATION}"
    kubeconform = str(binaries((KUBECONFORM,))["kubeconform"])
    command = [kubeconform, "-strict", "-output=json", "-summary"]
    done = subprocess.run(
        [*command, f"-schema-location={location}"],
        input=manifests,
        capture_output=True,
        text=True,
        check=False,
    )
    told = json.loads(done.stdout)
    assert told["summary"]["valid"] + len(told["resources"]) > 0
    assert told["summary"]["skipped"] == 0
    return list(told["resources"])


@pytest.mark.parametrize("name", [*CASES, "everything"])
def test_the_manifests_conform(schemas: Path, name: str) -> None:
    assert conform(schemas, as_text(documents(CASES.get(name, VALUES)))) == []


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_examples_conform(schemas: Path, path: Path) -> None:
    assert conform(schemas, path.read_text(encoding="utf-8")) == []


WRONG = {
    "Deployment": ("spec", "replica"),
    "PodMonitor": ("spec", "podMetricsEndpoint"),
    "InferenceService": ("spec", "trafic"),
    "ValidatingAdmissionPolicy": ("spec", "validation"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_a_field_that_is_misspelt_is_found(schemas: Path, kind: str) -> None:
    document = next(each for each in documents(VALUES) if each["kind"] == kind)
    part, field = WRONG[kind]
    broken = {**document, part: {**document[part], field: 1}}
    [told] = conform(schemas, as_text([broken]))
    assert field in told["msg"] and told["status"] == "statusInvalid"
