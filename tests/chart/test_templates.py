"""What single templates do with single values."""

from __future__ import annotations

import re

import pytest
import yaml

from e2e.chart import generated
from e2e.chart.generated import CRDS, OPERATOR
from e2e.controlplane.supervised import REPOSITORY
from poolwise import __version__
from tests.chart.rendering import (
    LEAN,
    Object,
    documents,
    having,
    helm,
    merged,
    refusal,
    select,
    text,
)
from tests.chart.variations import DIGEST

pytestmark = pytest.mark.tools("helm")


def container(**values: object) -> Object:
    deployment = select(merged(LEAN, values), "Deployment")
    [found] = deployment["spec"]["template"]["spec"]["containers"]
    return dict(found)


def kinds(**values: object) -> set[str]:
    return {each["kind"] for each in documents(merged(LEAN, values))}


def test_the_generated_files_are_what_their_sources_say() -> None:
    assert generated.stale() == []


@pytest.mark.parametrize("chart", [OPERATOR, CRDS], ids=lambda chart: chart.name)
def test_the_versions_are_those_of_the_package(chart) -> None:
    described = yaml.safe_load((chart / "Chart.yaml").read_text(encoding="utf-8"))
    assert described["version"] == described["appVersion"] == __version__
    assert described["annotations"]["artifacthub.io/license"] == "Apache-2.0"


def test_the_changes_are_told_as_artifact_hub_reads_them() -> None:
    described = yaml.safe_load((OPERATOR / "Chart.yaml").read_text(encoding="utf-8"))
    changes = yaml.safe_load(described["annotations"]["artifacthub.io/changes"])
    assert {each["kind"] for each in changes} <= {"added", "changed", "fixed", "removed"}
    assert all(each["description"] for each in changes)


def test_the_chart_of_the_crds_lints() -> None:
    done = helm("lint", "--strict", str(CRDS))
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_template_fills_in_defaults_first() -> None:
    for path in (OPERATOR / "templates").rglob("*"):
        if path.suffix in (".yaml", ".txt"):
            source = re.sub(r"{{- /\*.*?\*/}}\n", "", path.read_text(), flags=re.DOTALL)
            assert source.startswith('{{- include "poolwise.init" . }}'), path


def test_a_digest_wins_over_a_tag() -> None:
    assert container()["image"] == "registry.example.com/poolwise:dev"
    assert container(image={"tag": ""})["image"].endswith(f":{__version__}")
    image = container(image={"tag": "1", "digest": DIGEST})["image"]
    assert image == f"registry.example.com/poolwise@{DIGEST}"


def test_the_image_starts_the_operator_by_its_own_entry_point() -> None:
    assert "command" not in container()
    assert container(extraArgs=["--context=x"])["args"] == ["run", "--context=x"]


def test_ports_follow_the_settings() -> None:
    moved = container(settings={"metrics_listen": "0.0.0.0:9100", "liveness_listen": "[::]:9101"})
    assert [port["containerPort"] for port in moved["ports"]] == [9100, 9101]
    off = {"settings": {"metrics_listen": "", "liveness_listen": ""}}
    assert not container(**off).keys() & {"ports", "livenessProbe", "readinessProbe"}
    assert "Service" not in kinds(**off)


def test_one_replica_has_no_budget_that_would_hold_up_a_drain() -> None:
    assert "PodDisruptionBudget" in kinds()
    assert "PodDisruptionBudget" not in kinds(replicas=1)


def test_without_election_only_one_replica_writes() -> None:
    alone = {"settings": {"leader_election": False}}
    told = "settings.leader_election is false with 2 replicas, which would all write"
    assert told in refusal(merged(LEAN, alone))
    deployment = select(merged(LEAN, alone, {"replicas": 1}), "Deployment")
    assert deployment["spec"]["strategy"] == {"type": "Recreate"}
    assert "strategy" not in select(LEAN, "Deployment")["spec"]


def test_replicas_are_kept_apart_by_node_and_zone() -> None:
    pod = select(LEAN, "Deployment")["spec"]["template"]["spec"]
    keys = [each["topologyKey"] for each in pod["topologySpreadConstraints"]]
    assert keys == ["kubernetes.io/hostname", "topology.kubernetes.io/zone"]
    [term] = pod["affinity"]["podAntiAffinity"].values()
    assert term[0]["podAffinityTerm"]["topologyKey"] == "kubernetes.io/hostname"


def test_the_network_is_closed_but_for_scrapes_probes_dns_the_api_server_and_what_is_read() -> None:
    spec = select(LEAN, "NetworkPolicy")["spec"]
    assert spec["policyTypes"] == ["Ingress", "Egress"]
    *rules, engines, gateways = spec["ingress"] + spec["egress"]
    ports = [[port["port"] for port in rule["ports"]] for rule in rules]
    assert ports == [[8080], [8081], [53, 53], [443, 6443]]
    [peer] = engines["to"]  # on any port: an engine's is the user's choice
    assert peer["podSelector"] == {"matchLabels": {"app.kubernetes.io/managed-by": "poolwise"}}
    assert "ports" not in engines
    assert gateways == {
        "to": [{"namespaceSelector": {}}],
        "ports": [{"port": 9090, "protocol": "TCP"}],
    }
    without = merged(LEAN, {"networkPolicy": {"gatewayMetricsPorts": []}})
    assert gateways not in select(without, "NetworkPolicy")["spec"]["egress"]
    closed = select(merged(LEAN, {"networkPolicy": {"metricsFrom": []}}), "NetworkPolicy")["spec"]
    assert [rule["ports"][0]["port"] for rule in closed["ingress"]] == [8081]


@pytest.mark.parametrize("chart", [OPERATOR, CRDS], ids=lambda chart: chart.name)
def test_the_crds_are_those_of_the_models_and_are_kept(chart) -> None:
    values = {"image": LEAN["image"]} if chart is OPERATOR else {}
    rendered = {each["metadata"]["name"]: each for each in documents(values, chart) if is_crd(each)}
    for path in sorted((REPOSITORY / "crds").glob("*.yaml")):
        crd = yaml.safe_load(path.read_text(encoding="utf-8"))
        found = rendered.pop(crd["metadata"]["name"])
        assert found["spec"] == crd["spec"]
        assert found["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}
    assert not rendered


def test_crds_go_with_the_release_only_where_that_is_asked_for() -> None:
    values = merged({"image": LEAN["image"]}, {"crds": {"keep": False}})
    crds = having(values, is_crd)
    assert len(crds) == 3 and not any("annotations" in crd["metadata"] for crd in crds)
    assert not having(LEAN, is_crd)


def is_crd(document: Object) -> bool:
    return bool(document["kind"] == "CustomResourceDefinition")


def test_the_test_reads_one_service_and_nothing_else() -> None:
    hooks = {
        each["kind"]: each
        for each in documents(LEAN)
        if each["metadata"].get("annotations", {}).get("helm.sh/hook") == "test"
    }
    assert hooks.keys() == {"InferenceService", "ServiceAccount", "Role", "RoleBinding", "Pod"}
    name = hooks["InferenceService"]["metadata"]["name"]
    [rule] = hooks["Role"]["rules"]
    assert (rule["resources"], rule["resourceNames"]) == (["inferenceservices"], [name])
    assert rule["verbs"] == ["get"]
    assert hooks["Pod"]["spec"]["serviceAccountName"] == hooks["ServiceAccount"]["metadata"]["name"]
    assert hooks["InferenceService"]["spec"]["mode"] == "Plan"


def test_the_notes_tell_the_next_three_commands() -> None:
    done = helm(
        "install", "poolwise", str(OPERATOR), "--dry-run=client", "--values=-", stdin=str(LEAN)
    )
    assert done.returncode == 0, done.stderr
    notes = done.stdout.partition("NOTES:")[2]
    assert re.findall(r"^(\d)\. ", notes, re.MULTILINE) == ["1", "2", "3"]
    assert "kubectl -n default rollout status deployment/poolwise" in notes
    assert "helm test poolwise" in notes
    assert "deletes the CustomResourceDefinitions" not in notes


def test_the_notes_hand_the_workload_to_a_namespace_that_is_served() -> None:
    given = str(merged(LEAN, {"namespaces": ["ml", "other"]}))
    install = ("install", "poolwise", str(OPERATOR), "--dry-run=client", "--values=-")
    assert "kubectl apply -n ml -f examples/" in helm(*install, stdin=given).stdout


def test_a_release_with_dots_has_names_that_a_service_can_have() -> None:
    done = helm("template", "team.a", str(OPERATOR), "--values=-", stdin=str(LEAN))
    service = next(
        each for each in yaml.safe_load_all(done.stdout) if each and each["kind"] == "Service"
    )
    assert service["metadata"]["name"] == "team-a-poolwise-metrics"
    assert service["spec"]["selector"]["app.kubernetes.io/instance"] == "team.a"


def test_names_keep_within_their_limits() -> None:
    long = merged(LEAN, {"nameOverride": "n" * 60})
    names = {each["metadata"]["name"] for each in documents(long)}
    assert max(map(len, names)) <= 63 and "n" * 30 in text(long)
