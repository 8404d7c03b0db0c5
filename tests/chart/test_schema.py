"""Values that cannot be meant are refused, with their path, before anything reaches a cluster."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from e2e.chart.generated import CRDS, OPERATOR
from e2e.chart.schema import ELSEWHERE
from e2e.chart.values import documented
from poolwise.environment import from_environment
from poolwise.settings import Settings
from tests.chart.rendering import IMAGE, LEAN, at, helm, merged, refusal, select

pytestmark = pytest.mark.tools("helm")

OF_A_PARENT = {"global", "enabled"}
"""What Helm hands to a chart that is part of another."""
BY_THE_API_SERVER = "API server checks"
"""Maps of Kubernetes' own with too many forms to repeat say so."""


def schema(chart: Path = OPERATOR) -> dict[str, Any]:
    return dict(json.loads((chart / "values.schema.json").read_text(encoding="utf-8")))


REFUSED = {
    "replica": (2, "at '': additional properties 'replica' not allowed"),
    "replicas": ("two", "at '/replicas': got string, want integer"),
    "image.pullPolicy": ("Sometimes", "at '/image/pullPolicy': value must be one of"),
    "image.digest": ("sha256:12", "at '/image/digest': 'sha256:12' does not match pattern"),
    "image.repository": ("r:5000/p:dev", "at '/image/repository': 'r:5000/p:dev' does not match"),
    "image.name": ("x", "at '/image': additional properties 'name' not allowed"),
    "settings.log_levle": ("debug", "at '/settings': additional properties 'log_levle'"),
    "settings.log_level": ("loud", "at '/settings/log_level': value must be one of"),
    "settings.queue_workers": (0, "at '/settings/queue_workers': minimum: got 0, want 1"),
    "settings.lease_seconds": ("15s", "at '/settings/lease_seconds': got string, want number"),
    "settings.metrics_listen": ("8080", "at '/settings/metrics_listen': '8080' does not match"),
    "settings.liveness_listen": (":::99999", "at '/settings/liveness_listen': ':::99999' does not"),
    "settings.default_input_tokens": ([1], "at '/settings/default_input_tokens': minItems"),
    "settings.namespaces": (["a"], "at '/settings': additional properties 'namespaces'"),
    "namespaces": (["Research"], "at '/namespaces/0': 'Research' does not match pattern"),
    "resources.limit": ({"cpu": 1}, "at '/resources': additional properties 'limit'"),
    "resources.limits.memory": ("1 GB", "at '/resources/limits/memory': 'anyOf' failed"),
    "nodeSelector.gpu": (True, "at '/nodeSelector/gpu': got boolean, want string"),
    "tolerations": ([{"efect": "x"}], "at '/tolerations/0': additional properties 'efect'"),
    "affinity.podAfinity": ({}, "at '/affinity': additional properties 'podAfinity'"),
    "extraEnv": ([{"value": "x"}], "at '/extraEnv/0': missing property 'name'"),
    "crds.keep": ("no", "at '/crds/keep': got string, want boolean"),
    "networkPolicy.apiServerPorts": ([70000], "at '/networkPolicy/apiServerPorts/0': maximum"),
    "networkPolicy.metricsFrom": ([{"pods": {}}], "at '/networkPolicy/metricsFrom/0': additional"),
    "admissionPolicy.operator.validationActions": ([], "/validationActions': minItems"),
    "monitoring.podMonitor.interval": (30, "'/monitoring/podMonitor/interval': got number"),
    "monitoring.dashboard.enabled": (True, "at '/monitoring': additional properties 'dashboard'"),
    "monitoring.prometheusRule.runbookBaseUrl": ("wiki", "/runbookBaseUrl': 'wiki' does not match"),
    "podDisruptionBudget.maxUnavailable": (
        "half",
        "'/podDisruptionBudget/maxUnavailable': 'anyOf'",
    ),
    "podSecurityContext.runAsUser": (0, "at '/podSecurityContext/runAsUser': minimum"),
}


@pytest.mark.parametrize("path", REFUSED)
def test_what_cannot_be_meant_is_refused_with_its_path(path: str) -> None:
    value, sentence = REFUSED[path]
    assert sentence in refusal(merged(LEAN, at(path, value)))


def test_several_errors_are_told_at_once() -> None:
    told = refusal(merged(LEAN, {"replica": 1}, at("settings.currencey", "EUR")))
    assert "'replica'" in told and "'currencey'" in told


def test_an_image_has_to_be_named() -> None:
    assert "image.repository is empty: no image is published yet" in refusal({})


def objects(node: Any, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """All schemas of maps, with where they are."""
    if isinstance(node, dict):
        if node.get("type") == "object":
            yield path, node
        for key, value in node.items():
            yield from objects(value, f"{path}/{key}")
    elif isinstance(node, list):
        for each in node:
            yield from objects(each, path)


@pytest.mark.parametrize("chart", [OPERATOR, CRDS], ids=lambda chart: chart.name)
def test_no_map_takes_unknown_keys(chart: Path) -> None:
    open_maps = [
        (path, node.get("description", ""))
        for path, node in objects(schema(chart))
        if node.get("additionalProperties", True) is True
    ]
    unexplained = [
        path
        for path, text in open_maps
        if BY_THE_API_SERVER not in text and path != "/properties/global"
    ]
    assert [path for path in unexplained if "/valueFrom/" not in path] == []


@pytest.mark.parametrize("chart", [OPERATOR, CRDS], ids=lambda chart: chart.name)
def test_the_schema_knows_the_values_and_no_others(chart: Path) -> None:
    known = schema(chart)
    assert {each.path[0] for each in documented(chart / "values.yaml")} == (
        known["properties"].keys() - OF_A_PARENT
    )
    for value in documented(chart / "values.yaml"):
        node = known
        for step in value.path:
            node = node["properties"][step]
        assert node["description"] == value.meaning


def test_every_setting_may_be_given_and_is_read_as_it_was_written() -> None:
    known = schema()["properties"]["settings"]["properties"]
    assert known.keys() | ELSEWHERE == Settings.model_fields.keys()
    assert all(each["description"] for each in known.values())
    given = Settings(queue_workers=7, retry_seconds=0.25, log_level="debug", leader_election=False)
    settings = {name: json.loads(given.model_dump_json())[name] for name in known}
    deployment = select(merged(LEAN, {"replicas": 1, "settings": settings}), "Deployment")
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    assert from_environment({each["name"]: each["value"] for each in container["env"]}) == given


def test_what_the_schema_takes_as_an_address_the_operator_takes() -> None:
    pattern = schema()["properties"]["settings"]["properties"]["metrics_listen"]["pattern"]
    for listen in ("0.0.0.0:8080", "[::]:9090", ""):
        assert re.search(pattern, listen)
        assert from_environment({"POOLWISE_METRICS_LISTEN": listen}).metrics_listen == listen


def test_the_chart_works_as_part_of_another(tmp_path: Path) -> None:
    """Which hands its ``global`` down, and its condition."""
    parent = tmp_path / "platform"
    (parent / "charts").mkdir(parents=True)
    (parent / "charts" / "poolwise").symlink_to(OPERATOR)
    needs = [{"name": "poolwise", "version": ">0.0.0", "condition": "poolwise.enabled"}]
    chart = {"apiVersion": "v2", "name": "platform", "version": "1.0.0", "dependencies": needs}
    (parent / "Chart.yaml").write_text(json.dumps(chart))
    values = {"global": {"region": "eu"}, "poolwise": merged(IMAGE, {"enabled": True})}
    done = helm("template", "x", str(parent), "--values=-", stdin=json.dumps(values))
    assert done.returncode == 0, done.stderr
    assert "kind: Deployment" in done.stdout
