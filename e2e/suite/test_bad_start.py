"""What Poolwise says when it is started without what it needs, and that it recovers by itself."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from e2e.controlplane.client import Object
from e2e.controlplane.supervised import REPOSITORY
from e2e.kind.release import NAMESPACE, RELEASE
from e2e.suite.operator import CRDS, DEPLOYMENT, SELECTOR, Operator
from e2e.workloads import Observer

pytestmark = pytest.mark.stage(80)

READYZ = """
import sys, urllib.error, urllib.request
try:
    answer = urllib.request.urlopen("http://127.0.0.1:8081/readyz", timeout=10)
except urllib.error.HTTPError as error:
    answer = error
except urllib.error.URLError:
    sys.exit(print("0 it does not listen yet"))
print(answer.status, answer.read().decode().strip())
"""


@pytest.fixture
def as_before(operator: Operator) -> Iterator[None]:
    """The release as the session installed it, whatever a test left of it."""
    yield
    if operator.is_installed():
        operator.helm.uninstall()
    operator.install()


@pytest.mark.usefixtures("as_before")
def test_without_its_resources_it_says_so_and_waits_for_them(
    operator: Operator, observer: Observer
) -> None:
    operator.helm.uninstall()
    operator.command("delete", "crd", *CRDS)
    operator.helm.install_without_waiting(*operator.values, "crds.install=false")
    check_unready(operator, observer, "poolwise.dev")
    operator.command("apply", "--server-side", "-f", str(REPOSITORY / "crds"))
    observer.wait(DEPLOYMENT, is_ready)
    assert not was_restarted(operator)
    operator.command("delete", "crd", *CRDS)  # Helm does not take over what it did not make


@pytest.mark.usefixtures("as_before")
def test_without_a_right_it_names_the_right_and_waits_for_it(
    operator: Operator, observer: Observer
) -> None:
    binding = operator.command("get", "clusterrolebinding", f"{RELEASE}-cluster", "-o", "json")
    operator.command("delete", "clusterrolebinding", f"{RELEASE}-cluster")
    operator.command("delete", "pods", f"--namespace={NAMESPACE}", f"--selector={SELECTOR}")
    check_unready(operator, observer, "forbidden", "acceleratorpools", "rights.yaml")
    operator.command("apply", "-f", "-", stdin=binding)
    observer.wait(DEPLOYMENT, is_ready)
    assert not was_restarted(operator)


def check_unready(operator: Operator, observer: Observer, *words: str) -> None:
    """Each replica runs, is not ready, and says why in one line: to probes and in its log, once."""
    observer.until(lambda: all_running(operator), "two replicas do not run")
    for pod in operator.pods():
        check_says(operator, observer, pod, *words)
    deployment = observer.look(DEPLOYMENT) or {}
    assert deployment["status"].get("readyReplicas", 0) == 0


def check_says(operator: Operator, observer: Observer, pod: Object, *words: str) -> None:
    name = pod["metadata"]["name"]
    observer.until(
        lambda: names_all(operator.python(pod, READYZ), words),
        f"/readyz of {name} does not say {words}",
    )
    status, _, line = operator.python(pod, READYZ).strip().partition(" ")
    assert status == "503"
    assert "\n" not in line
    log = operator.command("logs", f"--namespace={NAMESPACE}", name).splitlines()
    assert len([each for each in log if names_all(each, words)]) == 1, log


def names_all(line: str, words: tuple[str, ...]) -> bool:
    return all(word.lower() in line.lower() for word in words)


def all_running(operator: Operator) -> bool:
    pods = operator.pods()
    return len(pods) == 2 and all(pod["status"]["phase"] == "Running" for pod in pods)


def is_ready(deployment: Object) -> bool:
    status = deployment.get("status", {})
    return bool(status.get("readyReplicas", 0) == deployment["spec"]["replicas"])


def was_restarted(operator: Operator) -> bool:
    return any(
        each["restartCount"]
        for pod in operator.pods()
        for each in pod["status"]["containerStatuses"]
    )
