"""The chart says what the code says: its version, its CRDs, and rights without more than needed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from e2e.operator_rights import RIGHTS, ROLES
from poolwise import __version__
from poolwise.api.crd import differing
from poolwise.cluster.resources import LEASES, WATCHED
from poolwise.settings import Settings

CHART = Path(__file__).resolve().parent.parent / "charts" / "poolwise"


def rights() -> dict[str, list[dict[str, Any]]]:
    return dict(yaml.safe_load(RIGHTS.read_text(encoding="utf-8")))


def test_the_versions_are_those_of_the_package() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    assert chart["version"] == chart["appVersion"] == __version__


def test_the_crds_are_those_of_the_models() -> None:
    assert differing(CHART / "crds") == []


def test_the_roles_are_those_under_which_the_tests_run() -> None:
    roles = (CHART / "templates" / "roles.yaml").read_text(encoding="utf-8")
    assert rights().keys() == ROLES.keys()
    assert all(f"toYaml $rights.{part} " in roles for part in ROLES)


@pytest.mark.parametrize("part", ROLES)
def test_no_right_is_wider_than_it_says(part: str) -> None:
    for rule in rights()[part]:
        named = {*rule["apiGroups"], *rule["resources"], *rule["verbs"]}
        assert not named & {"*", "secrets", "escalate", "bind", "impersonate", "deletecollection"}


def test_all_that_is_watched_may_be_watched() -> None:
    rules = [rule for part in ("workloads", "cluster") for rule in rights()[part]]
    may = {
        (group, resource)
        for rule in rules
        if {"get", "list", "watch"} <= set(rule["verbs"])
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    assert {(resource.group, resource.plural) for resource in WATCHED} <= may


def test_the_lease_is_the_one_of_the_settings() -> None:
    named = [rule["resourceNames"] for rule in rights()["lease"] if "resourceNames" in rule]
    assert named == [[Settings().lease_name]]
    assert all(rule["resources"] == [LEASES.plural] for rule in rights()["lease"])


def test_every_value_is_used() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    templates = "".join(path.read_text() for path in (CHART / "templates").iterdir())
    assert [name for name in values if f".Values.{name}" not in templates] == []


def test_ports_are_those_of_the_settings() -> None:
    deployment = (CHART / "templates" / "deployment.yaml").read_text(encoding="utf-8")
    for name, listen in (
        ("metrics", Settings().metrics_listen),
        ("health", Settings().liveness_listen),
    ):
        port = listen.rpartition(":")[2]
        assert f"{{name: {name}, containerPort: {port}}}" in deployment
