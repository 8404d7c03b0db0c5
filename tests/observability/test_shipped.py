"""What the chart hands to a cluster is what was tested here, and is scraped as it has to be."""

from __future__ import annotations

import json

import pytest
import yaml

from tests.chart.rendering import LEAN, documents, merged, select
from tests.chart.variations import MONITORING
from tests.observability.queries import DASHBOARDS, RULES, load

pytestmark = pytest.mark.tools("helm")

ON = merged(LEAN, *MONITORING.values())
ELSEWHERE = "https://runbooks.example.com/poolwise"


def test_the_rules_are_those_of_the_file():
    wanted = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    assert select(ON, "PrometheusRule")["spec"]["groups"] == wanted


def test_runbooks_can_be_elsewhere():
    values = merged(ON, {"monitoring": {"prometheusRule": {"runbookBaseUrl": ELSEWHERE}}})
    groups = select(values, "PrometheusRule")["spec"]["groups"]
    links = [
        rule["annotations"]["runbook_url"]
        for each in groups
        for rule in each["rules"]
        if "alert" in rule
    ]
    assert links and all(link.startswith(f"{ELSEWHERE}#poolwise") for link in links)


def test_the_dashboards_are_those_of_the_files():
    maps = [each["data"] for each in documents(ON) if "dashboard" in each["metadata"]["name"]]
    shipped = {name: json.loads(text) for data in maps for name, text in data.items()}
    assert shipped == {f"poolwise-{path.name}": load(path) for path in DASHBOARDS}


def test_labels_of_workloads_survive_scraping():
    """Without honorLabels their namespace becomes exported_namespace, and no query finds it."""
    monitor = select(ON, "ServiceMonitor")["spec"]["endpoints"]
    pods = select(ON, "PodMonitor", "poolwise")["spec"]["podMetricsEndpoints"]
    assert all(endpoint["honorLabels"] is True for endpoint in (*monitor, *pods))


def test_engines_get_the_name_of_their_service():
    for endpoint in select(ON, "PodMonitor", "poolwise-workloads")["spec"]["podMetricsEndpoints"]:
        given = {each["targetLabel"]: each["sourceLabels"] for each in endpoint["relabelings"]}
        assert given["name"] == ["__meta_kubernetes_pod_label_poolwise_dev_owner"]
        assert not endpoint.get("honorLabels", False)
