"""Nodes from a file: what the API server would not have stored is refused."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from e2e.profiles import render
from poolwise.cli.nodes import read_nodes
from poolwise.errors import InvalidInput


def read(tmp_path: Path, node: dict[str, Any]) -> list[Any]:
    file = tmp_path / "nodes.json"
    file.write_text(json.dumps(node))
    return list(read_nodes(str(file)))


@pytest.fixture
def node() -> dict[str, Any]:
    found = copy.deepcopy(next(each for each in render("demo") if "h100" in str(each).lower()))
    return dict(found)


def test_nodes_of_a_cluster_are_read_as_they_are(tmp_path: Path, node: dict[str, Any]) -> None:
    bare = {"kind": "Node", "metadata": {"name": "a", "labels": None}}
    assert read(tmp_path, {"kind": "List", "items": [node, bare]}) == [node, bare]


@pytest.mark.parametrize(
    ("part", "field", "value", "told"),
    [
        ("status", "allocatable", {"cpu": "x"}, "status.allocatable.cpu: 'x' cannot be used"),
        ("status", "allocatable", {"cpu": "NaN"}, "it is no quantity such as 450G"),
        ("status", "capacity", {"nvidia.com/gpu": "-8"}, "nvidia.com/gpu: '-8' cannot be used"),
        ("status", "capacity", ["cpu"], "status.capacity: is a list, expected an object"),
        ("spec", "taints", "gpu", "spec.taints: is a text, expected a list"),
        ("spec", "taints", [{"key": "a", "effect": "Stop"}], "spec.taints.0.effect: 'Stop' cannot"),
        ("spec", "taints", [{"effect": "NoExecute"}], "spec.taints.0.key: is missing"),
        ("metadata", "labels", {"a": 5}, "metadata.labels.a: is 5, expected a text"),
    ],
)
def test_what_cannot_be_is_named(
    tmp_path: Path, node: dict[str, Any], part: str, field: str, value: object, told: str
) -> None:
    node.setdefault(part, {})[field] = value
    with pytest.raises(InvalidInput) as refused:
        read(tmp_path, node)
    assert told in str(refused.value)
    assert f"(Node/{node['metadata']['name']})" in str(refused.value)
    assert "\n" not in str(refused.value)
