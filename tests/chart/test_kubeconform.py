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


def test_all_manifests_conform(schemas: Path) -> None:
    rendered = [each for values in (*CASES.values(), VALUES) for each in documents(values)]
    assert conform(schemas, as_text(rendered)) == []


def test_all_examples_conform(schemas: Path) -> None:
    assert EXAMPLES
    assert conform(schemas, "\n---\n".join(path.read_text() for path in EXAMPLES)) == []


WRONG = {
    "Deployment": ("spec", "replica"),
    "InferenceService": ("spec", "trafic"),
    "PodMonitor": ("spec", "podMetricsEndpoint"),
    "ValidatingAdmissionPolicy": ("spec", "validation"),
}


def broken(kind: str) -> Object:
    """A document of that kind with a field that is misspelt."""
    document = next(each for each in documents(VALUES) if each["kind"] == kind)
    part, field = WRONG[kind]
    return {**document, part: {**document[part], field: 1}}


def test_fields_that_are_misspelt_are_found(schemas: Path) -> None:
    told = {each["kind"]: each for each in conform(schemas, as_text([broken(k) for k in WRONG]))}
    assert told.keys() == WRONG.keys()
    for kind, (_, field) in WRONG.items():
        assert told[kind]["status"] == "statusInvalid"
        assert field in told[kind]["msg"]
