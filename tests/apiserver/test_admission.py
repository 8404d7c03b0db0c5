"""What a real API server refuses and accepts, and that it is told offline in the same words."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from e2e.controlplane.client import Client, Object, Refused
from poolwise.api import RESOURCES, AcceleratorPool, InferenceService, TrainingJob
from poolwise.api.base import Resource
from poolwise.api.validation import defaulted, problems
from tests.api.mutations import mutations
from tests.apiserver import bad_input
from tests.apiserver.admission import in_namespace, verdict
from tests.apiserver.conftest import Kubectl

pytestmark = [pytest.mark.apiserver, pytest.mark.usefixtures("crds")]


@pytest.mark.parametrize("case", bad_input.REFUSED, ids=lambda case: case.name)
def test_bad_input_is_refused_with_field_and_range(client: Client, case: bad_input.Refused) -> None:
    document = in_namespace(case.document, "default")
    sentences, _ = verdict(client, document)
    assert sentences
    if not case.name.startswith("B46"):  # there, the client already finds no such kind
        assert sentences == sorted(problems(document))
        for words in case.says:
            assert words in "\n".join(sentences)


@pytest.mark.parametrize("case", bad_input.ACCEPTED, ids=lambda case: case.name)
def test_what_only_looks_bad_is_accepted(client: Client, case: bad_input.Accepted) -> None:
    document = in_namespace(case.document, "default")
    sentences, stored = verdict(client, document)
    assert sentences == [] == problems(document)
    assert stored["spec"] == defaulted(document)["spec"]


SHARED = ("spec.run.", "spec.placement.", "spec.model.transformer.", "spec.model.custom.")
"""Blocks of the InferenceService that the TrainingJob has too."""


@pytest.mark.parametrize(
    ("resource", "without"),
    [(TrainingJob, ()), (InferenceService, SHARED), (AcceleratorPool, ())],
    ids=["TrainingJob", "InferenceService", "AcceleratorPool"],
)
def test_every_single_mutation_gets_the_same_sentences_offline_or_can_be_read(
    client: Client, resource: type[Resource], without: tuple[str, ...]
) -> None:
    tried, differing = 0, []
    for mutation in mutations(resource, without):
        tried += 1
        document = in_namespace(mutation.document, "default")
        sentences, stored = verdict(client, document)
        offline = sorted(problems(document))
        if offline != sentences:
            differing.append(f"{mutation}\n  server  {sentences}\n  offline {offline}")
        elif stored and stored["spec"] != defaulted(document)["spec"]:
            differing.append(f"{mutation}: other defaults")
        elif stored:
            resource.model_validate(stored)
    assert tried > 200
    assert not differing, "\n".join(differing)


def test_resources_are_established_and_structural(client: Client) -> None:
    found = client.list("apiextensions.k8s.io/v1", "CustomResourceDefinition")
    ours = [crd for crd in found if crd["spec"]["group"] == "poolwise.dev"]
    assert {crd["spec"]["names"]["kind"] for crd in ours} == {r.__name__ for r in RESOURCES}
    for crd in ours:
        conditions = {each["type"]: each["status"] for each in crd["status"]["conditions"]}
        assert conditions["Established"] == "True"
        assert conditions.get("NonStructuralSchema", "False") == "False"


@pytest.fixture
def placed(client: Client, namespace: str) -> Object:
    """A job whose pods exist, as its status says."""
    job = client.create(in_namespace(bad_input.BASES["job"], namespace))
    mark(client, job, ["Placed"])
    return job


def mark(client: Client, job: Object, conditions: Iterable[str]) -> None:
    known = {"status": "True", "reason": "Test", "lastTransitionTime": "2026-11-01T00:00:00Z"}
    status = {"conditions": [{"type": name, **known} for name in conditions]}
    client.patch(job, {"status": status}, "status")


FROZEN = pytest.mark.parametrize(
    "changes",
    [
        {"training": {"globalBatchSize": 512}},
        {"model": {"preset": "llama-3.1-70b"}},
        {"accelerators": {"count": 16}},
        {"run": {"image": "other"}},
        {"checkpoint": {"claimName": "new"}},
        {"queueName": "other"},
        {"mode": "Plan"},
        {"backoffLimit": 1},
    ],
    ids=lambda changes: next(iter(changes)),
)
FREE = pytest.mark.parametrize(
    "changes",
    [
        {"suspend": True},
        {"priorityClassName": "high"},
        {"objective": {"goal": "Cost"}},
        {"placement": {"pools": ["other"]}},
        {"activeDeadlineSeconds": 60},
        {"ttlSecondsAfterFinished": 60},
        {"startTimeout": "1h"},
    ],
    ids=lambda changes: next(iter(changes)),
)


@FROZEN
def test_b38_a_placed_job_keeps_what_its_pods_were_made_from(
    client: Client, placed: Object, changes: Object
) -> None:
    with pytest.raises(Refused) as refusal:
        client.patch(placed, {"spec": changes})
    assert f"spec.{next(iter(changes))}" in refusal.value.message
    assert "delete and create again, or set suspend first" in refusal.value.message


@FREE
def test_b38_a_placed_job_may_change_the_rest(
    client: Client, placed: Object, changes: Object
) -> None:
    stored = client.patch(placed, {"spec": changes})
    wanted = defaulted({**placed, "spec": placed["spec"] | changes})
    assert stored["spec"] == wanted["spec"]


def test_b38_a_suspended_job_may_change_everything(client: Client, placed: Object) -> None:
    client.patch(placed, {"spec": {"suspend": True}})
    mark(client, placed, ["Suspended"])
    changed = client.patch(placed, {"spec": {"training": {"globalBatchSize": 512}}})
    assert changed["spec"]["training"]["globalBatchSize"] == 512


@pytest.fixture(params=["Complete", "Failed"])
def ended(request: pytest.FixtureRequest, client: Client, namespace: str) -> Object:
    """A job that has ended, with the volume that its checkpoints went to."""
    job = {**bad_input.BASES["job"]}
    job["spec"] = {**job["spec"], "checkpoint": {"claimName": "ckpt"}}
    made = client.create(in_namespace(job, namespace))
    mark(client, made, ["Accepted", "Planned", request.param])
    return made


@FROZEN
def test_b38_a_job_that_has_ended_keeps_what_it_was(
    client: Client, ended: Object, changes: Object
) -> None:
    with pytest.raises(Refused, match="delete and create again") as refusal:
        client.patch(ended, {"spec": changes})
    assert f"spec.{next(iter(changes))}" in refusal.value.message


@FREE
def test_b38_a_job_that_has_ended_may_change_the_rest(
    client: Client, ended: Object, changes: Object
) -> None:
    metadata = {"labels": {"team": "a"}, "annotations": {"poolwise.dev/paused": "true"}}
    stored = client.patch(ended, {"metadata": metadata, "spec": changes})
    wanted = defaulted({**ended, "spec": ended["spec"] | changes})
    assert stored["spec"] == wanted["spec"]
    assert stored["metadata"]["labels"] == {"team": "a"}


def test_b38_suspend_opens_no_job_that_has_ended(client: Client, placed: Object) -> None:
    client.patch(placed, {"spec": {"suspend": True}})
    mark(client, placed, ["Suspended", "Complete"])
    with pytest.raises(Refused, match="delete and create again"):
        client.patch(placed, {"spec": {"training": {"globalBatchSize": 512}}})


def test_b39_a_removed_field_gets_its_default_back(client: Client, namespace: str) -> None:
    document = in_namespace(bad_input.BASES["job"], namespace)
    given = {**document["spec"], "startTimeout": "1h", "objective": {"goal": "Cost"}}
    assert client.apply({**document, "spec": given})["spec"]["objective"] == {"goal": "Cost"}
    restored = client.apply(document)["spec"]
    assert (restored["startTimeout"], restored["objective"]) == ("30m", {"goal": "Time"})


def test_b48_one_name_in_two_namespaces_is_two_objects(client: Client, namespace: str) -> None:
    here = client.create(in_namespace(bad_input.BASES["service"], namespace))
    there = client.create(in_namespace(bad_input.BASES["service"], "default"))
    client.delete(there)
    assert here["metadata"]["uid"] != there["metadata"]["uid"]


def test_a_service_scales_by_its_scale_subresource(client: Client, namespace: str) -> None:
    document = bad_input.changed(bad_input.BASES["service"], {"scaling": {"mode": "External"}})
    service = client.create(in_namespace(document, namespace))
    name = service["metadata"]["name"]
    scaled = client.patch(service, {"spec": {"replicas": 3}}, "scale")
    assert scaled["spec"]["replicas"] == 3
    stored = client.get(service["apiVersion"], "InferenceService", name, namespace)
    assert stored is not None
    assert stored["spec"]["replicas"] == 3
    with pytest.raises(Refused, match="scaleToZero"):
        client.patch(service, {"spec": {"replicas": 0}}, "scale")


def test_a_number_that_mode_direct_ignores_counts_once_the_mode_is_another(
    client: Client, namespace: str
) -> None:
    service = client.create(in_namespace(bad_input.BASES["service"], namespace))
    client.patch(service, {"spec": {"replicas": 0}}, "scale")
    with pytest.raises(Refused, match="in scaling modes External and Off"):
        client.patch(service, {"spec": {"scaling": {"mode": "External"}}})


def test_explain_describes_every_field(kubectl: Kubectl, tmp_path: Path) -> None:
    for field in ("tj.spec.training", "isvcp.spec.scaling", "apool.spec.interconnect"):
        shown = kubectl("explain", field, f"--cache-dir={tmp_path}")
        assert shown.returncode == 0, shown.stderr
        assert "<no description>" not in shown.stdout
        assert "Example:" in shown.stdout
