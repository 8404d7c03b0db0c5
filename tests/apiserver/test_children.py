"""Every manifest of the golden cases, shown to a real API server."""

import copy
import json
import re
import time

import pytest

from poolwise.cluster.difference import covers
from tests.plan.children.cases import CASES, manifests

pytestmark = pytest.mark.apiserver

MANAGER = "poolwise"
APPLY = ("apply", "--server-side", f"--field-manager={MANAGER}", "-f", "-")


def in_namespace(name, namespace):
    children = copy.deepcopy(manifests(CASES[name]()))
    for child in children:
        child["metadata"]["namespace"] = namespace
    return children


def stored(output):
    text = json.loads(output)
    return text["items"] if text["kind"] == "List" else [text]


def warned(standard):
    """In a namespace that warns of pods below this Pod Security Standard."""
    labels = {"pod-security.kubernetes.io/warn": standard}
    return pytest.mark.parametrize("namespace", [labels], ids=[standard], indirect=True)


@warned("baseline")
@pytest.mark.parametrize("name", CASES)
def test_accepted_without_a_warning_under_baseline(name, kubectl, namespace):
    children = in_namespace(name, namespace)
    answer = kubectl(*APPLY, "--dry-run=server", "-o", "json", stdin=children)
    assert answer.returncode == 0, answer.stderr
    assert answer.stderr == ""


@pytest.mark.parametrize("name", CASES)
def test_what_is_stored_is_what_was_sent(name, kubectl, namespace):
    children = in_namespace(name, namespace)
    answer = kubectl(*APPLY, "--dry-run=server", "-o", "json", stdin=children)
    for sent, live in zip(children, stored(answer.stdout), strict=True):
        assert covers(live, sent)


@warned("restricted")
def test_restricted_asks_for_two_things_more(kubectl, namespace):
    children = in_namespace("vllm", namespace)
    answer = kubectl(*APPLY, "--dry-run=server", stdin=children)
    (warning,) = re.findall(r'would violate PodSecurity "restricted:latest": (.*)', answer.stderr)
    missing = re.findall(r"(?:^|, )([\w ]+?)(?: !=|\?| \()", warning)
    assert missing == ["unrestricted capabilities", "runAsNonRoot"], warning


def test_applying_again_writes_nothing(kubectl, namespace):
    """Our entry in managedFields has the time of our last change; controllers write the status."""
    children = in_namespace("training-two-nodes", namespace)
    for child in children:
        del child["metadata"]["ownerReferences"]  # an owner that is not there: garbage
    entries = []
    for _ in range(2):
        answer = kubectl(*APPLY, "-o", "json", "--show-managed-fields", stdin=children[:1])
        fields = [each["metadata"]["managedFields"] for each in stored(answer.stdout)]
        entries.append([entry for each in fields for entry in each if entry["manager"] == MANAGER])
        time.sleep(1.1)  # the times are in whole seconds
    assert entries[0]
    assert entries[0] == entries[1]


@pytest.mark.parametrize("now", ["another-object", "nothing"])
def test_an_apply_with_a_uid_is_for_that_object_alone(kubectl, namespace, now):
    """What was deleted, and made anew by somebody else, is never taken over."""
    children = in_namespace("vllm", namespace)
    service = next(each for each in children if each["kind"] == "Service")
    del service["metadata"]["ownerReferences"]
    first = stored(kubectl(*APPLY, "-o", "json", stdin=[service]).stdout)[0]
    gone = {"uid": first["metadata"]["uid"]}
    mine = {**service, "metadata": {**service["metadata"], **gone}}
    again = kubectl(*APPLY, "-o", "json", stdin=[mine])
    [live] = stored(again.stdout)
    assert live["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
    kind, name = service["kind"], service["metadata"]["name"]
    assert kubectl("delete", kind, name, "-n", namespace).returncode == 0
    if now == "another-object":
        assert kubectl("create", "-f", "-", stdin=[service]).returncode == 0
    answer = kubectl(*APPLY, "--force-conflicts", stdin=[mine])
    assert answer.returncode != 0
    assert "Conflict" in answer.stderr or "uid" in answer.stderr.lower(), answer.stderr
