"""What a platform engineer gets from ``helm install``."""

from __future__ import annotations

import re

import pytest

from e2e.controlplane.client import Object
from e2e.kind.figures import Figures
from e2e.kind.release import CHART, IMAGE_VALUES, NAMESPACE, RELEASE
from e2e.suite.conftest import Kubectl
from e2e.suite.operator import LEASE, Operator
from e2e.workloads import Observer

pytestmark = [pytest.mark.core, pytest.mark.stage(1)]

ACCOUNT = f"system:serviceaccount:{NAMESPACE}:{RELEASE}"
RSS_BAR_MIB = 150.0
RSS_PROGRAM = "print(open('/proc/1/status').read())"
CONFINED_PROGRAM = """
import os, tempfile
tempfile.TemporaryFile(dir="/tmp")
for folder in ("/", "/usr", os.getcwd(), os.path.dirname(os.__file__)):
    try:
        open(os.path.join(folder, "written"), "w")
    except OSError as error:
        print(folder, error.strerror)
    else:
        print(folder, "can be written")
print(os.getuid(), os.getgid(), open("/proc/self/status").read().split("CapEff:")[1].split()[0])
"""


def test_both_replicas_are_ready_and_one_leads(operator: Operator, observer: Observer) -> None:
    pods = operator.pods()
    assert len(pods) == 2
    assert all(is_ready(pod) for pod in pods)
    observer.wait(LEASE, lambda lease: bool(lease["spec"].get("holderIdentity")))
    assert operator.leader()["metadata"]["name"] in {pod["metadata"]["name"] for pod in pods}


def test_the_charts_own_test_passes(operator: Operator) -> None:
    assert "Phase:          Succeeded" in operator.helm.test()


def test_it_runs_without_root_and_writes_only_to_tmp(operator: Operator) -> None:
    *folders, identity = operator.python(operator.leader(), CONFINED_PROGRAM).splitlines()
    assert identity.split() == ["65532", "65532", "0000000000000000"]
    assert len(folders) == 4
    assert all(line.endswith("Read-only file system") for line in folders), folders


def test_each_replica_takes_little_memory(operator: Operator, figures: Figures) -> None:
    for pod in operator.pods():
        status = operator.python(pod, RSS_PROGRAM)
        resident_kib = int(status.split("VmRSS:")[1].split()[0])
        figures.note(f"RSS of {pod['metadata']['name']}", resident_kib / 1024, "MiB", RSS_BAR_MIB)
        assert resident_kib / 1024 <= RSS_BAR_MIB


@pytest.mark.parametrize(
    ("verb", "resource"),
    [
        ("get", "secrets"),
        ("list", "secrets"),
        ("watch", "secrets"),
        ("patch", "nodes"),
        ("update", "nodes --subresource=status"),
        ("delete", "nodes"),
        ("create", "pods"),
        ("delete", "pods"),
        ("create", "pods --subresource=exec"),
        ("impersonate", "users"),
        ("escalate", "clusterroles.rbac.authorization.k8s.io"),
        ("bind", "clusterroles.rbac.authorization.k8s.io"),
        ("create", "clusterrolebindings.rbac.authorization.k8s.io"),
        ("delete", "trainingjobs.poolwise.dev"),
        ("update", "trainingjobs.poolwise.dev"),
        ("patch", "customresourcedefinitions.apiextensions.k8s.io"),
        ("create", "serviceaccounts --subresource=token"),
        ("*", "*"),
    ],
)
def test_its_account_may_not(kubectl: Kubectl, verb: str, resource: str) -> None:
    asked = kubectl("auth", "can-i", verb, *resource.split(), "--all-namespaces", f"--as={ACCOUNT}")
    assert asked.stdout.strip() == "no", f"{verb} {resource}: {asked.stdout}{asked.stderr}"


@pytest.mark.parametrize(
    ("verb", "resource"),
    [
        ("list", "nodes"),
        ("list", "pods"),
        ("patch", "jobs.batch"),
        ("patch", "deployments.apps"),
        ("patch", "trainingjobs.poolwise.dev --subresource=status"),
    ],
)
def test_its_account_may(kubectl: Kubectl, verb: str, resource: str) -> None:
    asked = kubectl("auth", "can-i", verb, *resource.split(), "--all-namespaces", f"--as={ACCOUNT}")
    assert asked.stdout.strip() == "yes", f"{verb} {resource}: {asked.stdout}{asked.stderr}"


def test_installing_again_is_refused_and_changes_nothing(operator: Operator) -> None:
    before = identities(operator)
    sets = [part for value in IMAGE_VALUES for part in ("--set", value)]
    again = operator.helm.attempt(["install", RELEASE, CHART, *sets])
    assert again.returncode != 0
    assert re.search("cannot re-?use a name that is still in use", again.stderr), again.stderr
    other = operator.helm.attempt(["install", "second", CHART, *sets])
    assert other.returncode != 0
    assert "poolwise" in other.stderr
    assert "exists" in other.stderr
    assert identities(operator) == before
    names = operator.helm.run(["list", "--all-namespaces", "--short"]).split()
    assert names == [RELEASE]


def is_ready(pod: Object) -> bool:
    conditions = pod["status"].get("conditions", [])
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def identities(operator: Operator) -> list[tuple[str, str, str]]:
    """What is installed, and its generation: every object that carries the release's labels."""
    kinds = "deployments,serviceaccounts,roles,rolebindings,pods,services,poddisruptionbudgets"
    wide = "clusterroles,clusterrolebindings,customresourcedefinitions"
    lines = ".metadata.name,.metadata.uid,.metadata.generation"
    columns = ",".join(f"{part.rpartition('.')[2].upper()}:{part}" for part in lines.split(","))
    label = f"--selector=app.kubernetes.io/instance={RELEASE}"
    printed = [
        operator.command(
            "get", f"{kinds}", f"--namespace={NAMESPACE}", label, "-o", f"custom-columns={columns}"
        ),
        operator.command("get", wide, label, "-o", f"custom-columns={columns}"),
    ]
    return sorted(tuple(line.split()) for text in printed for line in text.splitlines())  # type: ignore[misc]
