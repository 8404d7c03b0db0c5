"""docs/api.md tells every field, and its links lead somewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from poolwise.api import RESOURCES
from poolwise.api.base import Resource
from poolwise.api.crd import validation_schema
from poolwise.api.docs import main, page

PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "api.md"
by_kind = pytest.mark.parametrize("resource", RESOURCES, ids=lambda resource: resource.__name__)


def rows(title: str) -> dict[str, list[str]]:
    """Cells of the table below a heading, by field."""
    section = re.search(rf"^### {re.escape(title)}\n(.*?)(?=^##|\Z)", page(), re.M | re.S)
    assert section, f"no section {title}"
    lines = re.findall(r"^\| `(\w+)` (.*) \|$", section.group(1), re.M)
    return {name: re.split(r" *(?<!\\)\| *", rest)[1:] for name, rest in lines}


def fields(schema: Any) -> Iterator[str]:
    """Names of all fields, at any depth."""
    for name, child in schema.get("properties", {}).items():
        yield name
        yield from fields(child)
    yield from fields(schema["items"]) if "items" in schema else ()


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page()


def test_check_fails_where_the_file_differs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = tmp_path / "api.md"
    assert main(["--output", str(copy), "--check"]) == 1
    assert main(["--output", str(copy)]) == 0
    assert main(["--output", str(copy), "--check"]) == 0
    copy.write_text(copy.read_text(encoding="utf-8").replace("required", "optional"))
    assert main(["--output", str(copy), "--check"]) == 1
    assert capsys.readouterr().out.count(f"{copy} differs from the models: run make generate") == 2


@by_kind
def test_every_field_has_a_row(resource: type[Resource]) -> None:
    told = set(re.findall(r"^\| `(\w+)` \|", page(), re.M))
    properties = validation_schema(resource)["properties"]
    assert {*fields(properties["spec"]), *fields(properties["status"])} <= told


def test_every_row_has_a_type_and_a_meaning() -> None:
    fields_, _, _ = page().partition("## What a training container gets")
    lines = re.findall(r"^\| `.*", fields_, re.M)
    cells = [re.split(r"(?<!\\)\|", line) for line in lines]
    assert lines
    assert [
        each for each in cells if len(each) != 6 or not each[2].strip() or not each[4].strip()
    ] == []


def test_links_lead_to_headings() -> None:
    headings = re.findall(r"^##+ (.*)$", page(), re.M)
    anchors = {re.sub(r"[^\w -]", "", each.lower()).replace(" ", "-") for each in headings}
    assert len(anchors) == len(headings), "each heading has an anchor of its own"
    assert set(re.findall(r"\(#([^)]*)\)", page())) <= anchors


@pytest.mark.parametrize(
    ("title", "field", "type_", "default"),
    [
        pytest.param(
            "TrainingJob spec.training", "globalBatchSize", "integer", "required", id="int"
        ),
        pytest.param("TrainingJob spec.checkpoint", "interval", "duration", "`30m`", id="duration"),
        pytest.param("TrainingJob spec.training", "tokens", "quantity from 1", "", id="quantity"),
        pytest.param(
            "InferenceService spec.scaling", "mode", "`Direct` `External`", "`Direct`", id="enum"
        ),
        pytest.param(
            "InferenceService spec", "slo", "list of at most 12; each [object]", "", id="list"
        ),
        pytest.param(
            "AcceleratorPool spec", "nodeSelector", "map of 1 to 16", "required", id="map"
        ),
    ],
)
def test_a_row_tells_type_bounds_and_default(
    title: str, field: str, type_: str, default: str
) -> None:
    told, given, _ = rows(title)[field]
    assert type_ in told
    assert given == default


def test_rules_across_fields_stand_below_the_table_without_the_value_at_hand() -> None:
    assert "- `p95` must be at least p50\n" in page()
    assert "- must have exactly one of preset, transformer and custom\n" in page()
    assert not re.search(r"%[ds]", page())
