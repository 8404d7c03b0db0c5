"""What a cluster's administrator asks of any chart, over several sets of values."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import yaml

from e2e.chart.generated import OPERATOR
from poolwise import __version__
from poolwise.settings import Settings
from tests.chart.cases import CASES
from tests.chart.rendering import IMAGE, Object, documents, helm, merged, select

pytestmark = [pytest.mark.tools("helm"), pytest.mark.parametrize("name", CASES)]

SAFE_VOLUMES = {"emptyDir", "configMap", "secret", "projected"}


def pods(name: str) -> Iterator[Object]:
    """Pod specs of everything that runs, the test's pod included."""
    for each in documents(CASES[name]):
        if each["kind"] == "Pod":
            yield each["spec"]
        elif "template" in each.get("spec", {}):
            yield each["spec"]["template"]["spec"]


def containers(name: str) -> list[Object]:
    return [each for pod in pods(name) for each in pod["containers"]]


def test_there_are_pods_to_look_at(name: str) -> None:
    assert len(list(pods(name))) == 2


def test_pods_meet_the_restricted_profile(name: str) -> None:
    for pod in pods(name):
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["runAsUser"] > 0
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    for container in containers(name):
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }


def test_pods_have_nothing_of_their_node(name: str) -> None:
    for pod in pods(name):
        assert not pod.keys() & {"hostNetwork", "hostPID", "hostIPC", "nodeName"}
        sources = {key for volume in pod["volumes"] for key in volume if key != "name"}
        assert sources <= SAFE_VOLUMES
        assert pod["enableServiceLinks"] is False
    assert not any("hostPort" in p for each in containers(name) for p in each.get("ports", ()))


def test_requests_and_limits_are_set(name: str) -> None:
    for container in containers(name):
        assert {"cpu", "memory"} <= container["resources"]["requests"].keys()
        assert "memory" in container["resources"]["limits"]
    assert all("sizeLimit" in v["emptyDir"] for pod in pods(name) for v in pod["volumes"])


def test_images_are_of_a_version(name: str) -> None:
    for container in containers(name):
        image, _, version = container["image"].rpartition(":")
        assert image
        assert "/" not in version  # else it is of the registry's port
        assert version != "latest"


def test_the_operator_is_probed(name: str) -> None:
    [container] = select(CASES[name], "Deployment")["spec"]["template"]["spec"]["containers"]
    paths = {key: container[key]["httpGet"]["path"] for key in container if key.endswith("Probe")}
    assert paths == {
        "startupProbe": "/healthz",
        "livenessProbe": "/healthz",
        "readinessProbe": "/readyz",
    }


def test_objects_say_whose_they_are_and_where(name: str) -> None:
    for each in documents(CASES[name]):
        labels = each["metadata"]["labels"]
        assert labels["app.kubernetes.io/instance"] == "poolwise"
        assert labels["app.kubernetes.io/managed-by"] == "Helm"
        assert labels["app.kubernetes.io/version"] == __version__
        assert len(each["metadata"]["name"]) <= 63


def test_the_service_selects_the_operator_and_not_the_test(name: str) -> None:
    selector = select(CASES[name], "Service")["spec"]["selector"].items()
    deployment = select(CASES[name], "Deployment")["spec"]
    assert selector <= deployment["template"]["metadata"]["labels"].items()
    assert deployment["selector"]["matchLabels"].items() == selector
    assert not selector <= select(CASES[name], "Pod")["metadata"]["labels"].items()


def test_it_lints(name: str) -> None:
    values = yaml.safe_dump(merged(CASES[name], IMAGE))
    done = helm("lint", "--strict", str(OPERATOR), "--values=-", stdin=values)
    assert done.returncode == 0, done.stdout + done.stderr


def test_ports_are_those_of_the_settings(name: str) -> None:
    [container] = select(CASES[name], "Deployment")["spec"]["template"]["spec"]["containers"]
    listen = {"metrics": Settings().metrics_listen, "health": Settings().liveness_listen}
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert ports == {key: int(value.rpartition(":")[2]) for key, value in listen.items()}
