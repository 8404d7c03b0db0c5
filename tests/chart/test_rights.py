"""Rights: as few as the operator needs, and the same ones under which the tests run it."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from e2e.operator_rights import RIGHTS, ROLES
from poolwise.cluster.resources import CACHED, LEASES
from poolwise.settings import Settings
from tests.chart.cases import CASES
from tests.chart.rendering import LEAN, Object, documents, having, merged, select

pytestmark = pytest.mark.tools("helm")

NEVER = {"*", "secrets", "escalate", "bind", "impersonate", "pods/exec", "serviceaccounts/token"}
READ = {"get", "list", "watch"}
READ_ONLY = {"nodes", "priorityclasses", "horizontalpodautoscalers", "inferencepools"}


def rights() -> dict[str, list[dict[str, Any]]]:
    return dict(yaml.safe_load(RIGHTS.read_text(encoding="utf-8")))


def roles(name: str) -> list[Object]:
    return having(CASES[name], lambda each: each["kind"] in ("Role", "ClusterRole"))


@pytest.mark.parametrize("part", ROLES)
def test_the_roles_are_those_under_which_the_tests_run(part: str) -> None:
    kind, name = ROLES[part]
    assert rights().keys() == ROLES.keys()
    assert select(LEAN, kind, name)["rules"] == rights()[part]


@pytest.mark.parametrize("name", CASES)
def test_no_right_is_wider_than_it_says(name: str) -> None:
    for rule in (rule for role in roles(name) for rule in role["rules"]):
        assert not {*rule["apiGroups"], *rule["resources"], *rule["verbs"]} & NEVER
        if READ_ONLY & set(rule["resources"]):
            assert set(rule["verbs"]) <= READ
        if "pods" in rule["resources"]:
            assert set(rule["verbs"]) <= READ | {"patch"}  # what for, an admission policy says


@pytest.mark.parametrize("name", CASES)
def test_the_operator_has_no_other_roles(name: str) -> None:
    account = select(CASES[name], "Deployment")["spec"]["template"]["spec"]["serviceAccountName"]
    bound = [
        each["roleRef"]["name"]
        for each in documents(CASES[name])
        if any(subject["name"] == account for subject in each.get("subjects", ()))
    ]
    prefix = select(CASES[name], "Deployment")["metadata"]["name"]
    assert set(bound) == {prefix, f"{prefix}-cluster", f"{prefix}-lease"}


@pytest.mark.parametrize("name", CASES)
def test_nothing_is_bound_to_a_group(name: str) -> None:
    kinds = {s["kind"] for each in documents(CASES[name]) for s in each.get("subjects", ())}
    assert kinds == {"ServiceAccount"}


def test_all_that_is_watched_may_be_watched() -> None:
    rules = [rule for part in ("workloads", "cluster") for rule in rights()[part]]
    may = {
        (group, resource)
        for rule in rules
        if set(rule["verbs"]) >= READ
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    assert {(resource.group, resource.plural) for resource in CACHED} <= may


def test_rights_on_workloads_are_bound_in_the_namespaces_that_are_served() -> None:
    values = merged(LEAN, {"namespaces": ["research", "search"]})
    bindings = [
        (each["kind"], each["metadata"].get("namespace"))
        for each in documents(values)
        if each.get("roleRef", {}).get("name") == "poolwise"
    ]
    assert bindings == [("RoleBinding", "research"), ("RoleBinding", "search")]


def test_the_lease_is_the_one_of_the_settings() -> None:
    named = [rule["resourceNames"] for rule in rights()["lease"] if "resourceNames" in rule]
    assert named == [[Settings().lease_name]]
    assert all(rule["resources"] == [LEASES.plural] for rule in rights()["lease"])
    lease = {"lease_name": "another", "lease_namespace": "leases"}
    role = select(merged(LEAN, {"settings": lease}), "Role", "poolwise-lease")
    assert role["metadata"]["namespace"] == "leases"
    assert [rule.get("resourceNames") for rule in role["rules"]] == [None, ["another"]]


def test_users_get_workloads_through_the_roles_that_they_have() -> None:
    aggregated = {
        each["metadata"]["name"]: sorted(
            label.rpartition("-")[2] for label in each["metadata"]["labels"] if "aggregate" in label
        )
        for each in documents(LEAN)
        if each["kind"] == "ClusterRole"
    }
    assert aggregated == {
        "poolwise": [],
        "poolwise-cluster": [],
        "poolwise-view": ["admin", "edit", "view"],
        "poolwise-edit": ["admin", "edit"],
    }
    [reading] = {
        tuple(rule["verbs"]) for rule in select(LEAN, "ClusterRole", "poolwise-view")["rules"]
    }
    assert set(reading) == READ


def test_no_token_is_mounted_where_none_is_asked_for() -> None:
    for account in having(LEAN, lambda each: each["kind"] == "ServiceAccount"):
        assert account["automountServiceAccountToken"] is False
