from __future__ import annotations

import re
from typing import Any

import pytest
import yaml

from e2e import profiles
from e2e.profiles.__main__ import main
from poolwise.api.quantity import parse_quantity
from poolwise.api.validation import problems

LABEL_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
KEY_PREFIX = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
ASKED_FOR = {
    "gke-a3-g2",
    "eks-p5-g6",
    "aks-nd",
    "bare-h200-l40s",
    "mixed-mi300x-nvidia",
    "cpu-only",
    "demo",
}


def every_node() -> list[Any]:
    return [
        pytest.param(node, id=f"{name}-{node['metadata']['name']}")
        for name in profiles.names()
        for node in profiles.render(name)
    ]


def test_the_platforms_are_there() -> None:
    assert set(profiles.names()) >= ASKED_FOR
    assert any(name.startswith("dirty") for name in profiles.names())


@pytest.mark.parametrize("node", every_node())
def test_the_api_server_would_take_every_node(node: dict[str, Any]) -> None:
    metadata, status = node["metadata"], node["status"]
    assert re.fullmatch(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?", metadata["name"])
    for key, value in metadata["labels"].items():
        prefix, _, name = key.rpartition("/")
        assert LABEL_NAME.fullmatch(name)
        assert not prefix or KEY_PREFIX.fullmatch(prefix)
        assert value == "" or LABEL_NAME.fullmatch(value), f"{key}={value}"
    for part in ("capacity", "allocatable"):
        assert {"cpu", "memory", "pods"} <= status[part].keys()
        assert all(parse_quantity(amount) >= 0 for amount in status[part].values())
    for name, amount in status["allocatable"].items():
        assert parse_quantity(amount) <= parse_quantity(status["capacity"][name])


@pytest.mark.parametrize("node", every_node())
def test_kwok_runs_every_node(node: dict[str, Any]) -> None:
    assert node["metadata"]["annotations"]["kwok.x-k8s.io/node"] == "fake"
    assert node["metadata"]["labels"]["kubernetes.io/hostname"] == node["metadata"]["name"]


@pytest.mark.parametrize("name", profiles.names())
def test_no_two_nodes_share_a_name(name: str) -> None:
    names = [node["metadata"]["name"] for node in profiles.render(name)]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("name", profiles.names())
def test_declared_pools_are_valid(name: str) -> None:
    for pool in profiles.pools(name):
        assert problems(pool) == []


def test_the_command_prints_what_kubectl_prints(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cpu-only"]) == 0
    printed = yaml.safe_load(capsys.readouterr().out)
    assert (printed["kind"], printed["items"]) == ("List", profiles.render("cpu-only"))


def test_the_command_tells_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(profiles.names())
    assert main(["nowhere"]) == 2
    assert "no profile 'nowhere'; there are aks-nd" in capsys.readouterr().err
