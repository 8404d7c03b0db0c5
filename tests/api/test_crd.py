"""The files in crds/ are those that the models generate, and what kubectl shows of them."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from poolwise.api import RESOURCES, InferenceService
from poolwise.api.base import Resource
from poolwise.api.crd import crd, differing, files, main

CRDS = Path(__file__).resolve().parent.parent.parent / "crds"
by_kind = pytest.mark.parametrize("resource", RESOURCES, ids=lambda resource: resource.__name__)


def version(resource: type[Resource]) -> Any:
    (only,) = crd(resource)["spec"]["versions"]
    return only


def test_the_files_are_up_to_date() -> None:
    assert differing(CRDS) == []
    assert sorted(path.name for path in CRDS.glob("*.yaml")) == sorted(files())


def test_check_names_the_file_that_differs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--output", str(tmp_path)]) == 0
    assert main(["--output", str(tmp_path), "--check"]) == 0
    changed = tmp_path / "trainingjobs.yaml"
    changed.write_text(changed.read_text().replace("maximum: 65536", "maximum: 65537"))
    assert main(["--output", str(tmp_path), "--check"]) == 1
    assert capsys.readouterr().out.startswith(f"{changed} differs from the models")
    shutil.rmtree(tmp_path)
    assert len(differing(tmp_path)) == len(RESOURCES)


@by_kind
def test_a_file_is_small_enough_for_client_side_apply(resource: type[Resource]) -> None:
    """It keeps what was applied in an annotation, of 256 KiB at most; half is left for growth."""
    assert len(files()[f"{resource.__name__.lower()}s.yaml"]) < 131_072


@by_kind
def test_the_file_reads_back_as_the_definition(resource: type[Resource]) -> None:
    assert yaml.safe_load(files()[f"{resource.__name__.lower()}s.yaml"]) == crd(resource)


@by_kind
def test_columns_fit_a_terminal_and_read_fields_that_exist(resource: type[Resource]) -> None:
    columns = version(resource)["additionalPrinterColumns"]
    narrow = [column for column in columns if not column.get("priority")]
    assert len(narrow) + 1 <= 7  # NAME is always there
    assert [column["name"] for column in narrow][-2:] == ["Status", "Age"]
    for column in columns:
        assert _exists(version(resource)["schema"]["openAPIV3Schema"], column["jsonPath"])


def _exists(schema: Any, path: str) -> bool:
    if path.startswith(".metadata.") or "[?(" in path:
        return True
    for name in path.strip(".").split("."):
        schema = schema["properties"].get(name)
        if schema is None:
            return False
    return True


@by_kind
def test_status_and_scale_are_subresources(resource: type[Resource]) -> None:
    subresources = version(resource)["subresources"]
    assert subresources["status"] == {}
    assert ("scale" in subresources) == (resource is InferenceService)
    for path in subresources.get("scale", {}).values():
        assert _exists(version(resource)["schema"]["openAPIV3Schema"], path)


def test_names_are_short_and_grouped() -> None:
    spelled = [crd(resource)["spec"]["names"] for resource in RESOURCES]
    assert [names["shortNames"] for names in spelled] == [["tj"], ["isvcp"], ["apool"]]
    assert {tuple(names["categories"]) for names in spelled} == {("poolwise",)}
    assert [crd(resource)["spec"]["scope"] for resource in RESOURCES] == [
        *("Namespaced", "Namespaced", "Cluster"),
    ]
