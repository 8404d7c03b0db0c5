"""Monitors, alerts and dashboards: they find what they are for, and carry the files as they are."""

from __future__ import annotations

import json

import pytest
import yaml

from e2e.chart.generated import OPERATOR
from poolwise.plan import names
from tests.chart.rendering import LEAN, Object, documents, having, merged, select
from tests.chart.variations import MONITORING
from tests.plan.children.cases import CASES, manifests

pytestmark = pytest.mark.tools("helm")

ALL = merged(LEAN, *MONITORING.values())
ALERTS = yaml.safe_load((OPERATOR / "files" / "alerts.yaml").read_text(encoding="utf-8"))
DASHBOARDS = sorted((OPERATOR / "files" / "dashboards").glob("*.json"))
BASE = "https://poolwise.dev/docs/alerts"


def rule(base: str = BASE) -> Object:
    values = merged(ALL, {"monitoring": {"prometheusRule": {"runbookBaseUrl": base}}})
    return select(values, "PrometheusRule")


def test_nothing_of_the_prometheus_operator_is_asked_for_by_default() -> None:
    assert not having(LEAN, lambda each: each["apiVersion"].startswith("monitoring.coreos.com"))


def test_the_alerts_are_those_of_the_file() -> None:
    assert rule()["spec"] == {"groups": ALERTS["groups"]}


def test_runbooks_are_linked_where_they_can_be_read() -> None:
    moved = json.dumps(rule("https://wiki.example.com/poolwise/")["spec"])
    assert BASE not in moved
    assert (
        json.loads(moved.replace("https://wiki.example.com/poolwise", BASE))["groups"]
        == (ALERTS["groups"])
    )
    assert "https://wiki.example.com/poolwise#" in moved


def test_every_dashboard_is_in_a_config_map_for_the_sidecar() -> None:
    found = {
        name: json.loads(text)
        for each in having(ALL, lambda each: "-dashboard-" in each["metadata"]["name"])
        for name, text in each["data"].items()
        if each["metadata"]["labels"]["grafana_dashboard"] == "1"
    }
    wanted = {f"poolwise-{path.name}": json.loads(path.read_text()) for path in DASHBOARDS}
    assert found == wanted and wanted


def test_the_service_monitor_selects_the_service() -> None:
    monitor, service = select(ALL, "ServiceMonitor"), select(ALL, "Service")
    wanted = monitor["spec"]["selector"]["matchLabels"].items()
    assert wanted <= service["metadata"]["labels"].items()
    [endpoint] = monitor["spec"]["endpoints"]
    assert endpoint["port"] in [port["name"] for port in service["spec"]["ports"]]
    assert endpoint["honorLabels"] is True


def test_the_pod_monitor_selects_the_operators_pods() -> None:
    template = select(ALL, "Deployment")["spec"]["template"]
    spec = select(ALL, "PodMonitor", "poolwise")["spec"]
    assert spec["selector"]["matchLabels"].items() <= template["metadata"]["labels"].items()
    [endpoint] = spec["podMetricsEndpoints"]
    [container] = template["spec"]["containers"]
    assert endpoint["port"] in [port["name"] for port in container["ports"]]


def test_a_service_monitor_needs_its_service() -> None:
    values = merged(ALL, {"monitoring": {"service": {"enabled": False}}})
    assert "ServiceMonitor" not in {each["kind"] for each in documents(values)}


SERVICES = [
    name for name in CASES if any(each["kind"] == "Deployment" for each in manifests(CASES[name]()))
]


@pytest.mark.parametrize("name", SERVICES)
def test_the_engines_are_scraped_by_the_labels_and_ports_that_they_have(name: str) -> None:
    template = next(e for e in manifests(CASES[name]()) if e["kind"] == "Deployment")["spec"][
        "template"
    ]
    spec = select(ALL, "PodMonitor", "poolwise-workloads")["spec"]
    assert spec["selector"]["matchLabels"].items() <= template["metadata"]["labels"].items()
    [container] = template["spec"]["containers"]
    ports = {port["name"] for port in container["ports"]}
    assert ports & {endpoint["port"] for endpoint in spec["podMetricsEndpoints"]}


def test_jobs_are_not_scraped_as_engines() -> None:
    spec = select(ALL, "PodMonitor", "poolwise-workloads")["spec"]
    wanted = spec["selector"]["matchLabels"].items()
    job = next(
        each for each in manifests(CASES["training-one-accelerator"]()) if each["kind"] == "Job"
    )
    assert not wanted <= job["spec"]["template"]["metadata"]["labels"].items()


def test_series_of_engines_carry_the_name_of_their_workload() -> None:
    spec = select(ALL, "PodMonitor", "poolwise-workloads")["spec"]
    for endpoint in spec["podMetricsEndpoints"]:
        targets = {each["targetLabel"]: each["sourceLabels"] for each in endpoint["relabelings"]}
        for target, label in (("name", names.OWNER_NAME), ("pool", names.POOL)):
            flat = label.replace(".", "_").replace("/", "_")
            assert targets[target] == [f"__meta_kubernetes_pod_label_{flat}"]


def test_engines_are_scraped_in_the_namespaces_that_are_served() -> None:
    everywhere = select(ALL, "PodMonitor", "poolwise-workloads")["spec"]["namespaceSelector"]
    assert everywhere == {"any": True}
    values = merged(ALL, {"namespaces": ["research"]})
    some = select(values, "PodMonitor", "poolwise-workloads")["spec"]["namespaceSelector"]
    assert some == {"matchNames": ["research"]}
