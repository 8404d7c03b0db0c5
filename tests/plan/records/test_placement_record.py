"""The record survives the round trip, and nothing that is not one does any harm."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poolwise.model.work import Recompute, ServingLayout, TrainingLayout
from poolwise.plan.decision import Claim, Key, Kind, PlacementRecord
from poolwise.plan.records.placement_record import parse, render

JOB = Key(Kind.TRAINING_JOB, "research", "llama")
SERVICE = Key(Kind.INFERENCE_SERVICE, "chat", "llama")


def job_record() -> PlacementRecord:
    return PlacementRecord(
        generation=3,
        accelerator="H100-SXM5-80GB",
        resource="nvidia.com/gpu",
        count=16,
        replicas=None,
        layout=TrainingLayout(data=2, tensor=8, recompute=Recompute.SELECTIVE),
        claim=Claim(JOB, "h100", {"a": 8, "b": 8}, {}, {}),
    )


def cpu_record() -> PlacementRecord:
    return PlacementRecord(
        generation=1,
        accelerator="CPU",
        resource=None,
        count=0,
        replicas=2,
        layout=ServingLayout(cpu_cores=7.5, cpu_memory_bytes=2**33),
        claim=Claim(SERVICE, "cpu", {}, {"c": 15.0}, {"c": 2.0**34}),
        start_budget_seconds=120,
        drain_seconds=30,
    )


def groups_record() -> PlacementRecord:
    return PlacementRecord(
        generation=1,
        accelerator="H100-SXM5-80GB",
        resource="nvidia.com/gpu",
        count=16,
        replicas=1,
        layout=ServingLayout(tensor=8, pipeline=2),
        claim=Claim(SERVICE, "h100", {"a": 8, "b": 8}, {}, {}),
        runtime="LeaderWorkerSet",
        nodes_per_replica=2,
    )


@pytest.mark.parametrize(
    "record",
    [job_record(), cpu_record(), groups_record()],
    ids=["training", "cpu-service", "service-over-nodes"],
)
def test_round_trip(record):
    assert parse(render(record), record.claim.key) == record


@pytest.mark.parametrize(
    "damage", [{"runtime": "Pod"}, {"runtime": 7}, {"nodesPerReplica": 0}], ids=str
)
def test_a_kind_of_child_that_nobody_writes_is_no_record(damage):
    document = json.loads(render(groups_record())) | damage
    assert parse(json.dumps(document), SERVICE) is None


def test_is_small_and_sorted():
    text = render(job_record())
    assert len(text) < 400
    assert text == json.dumps(json.loads(text), sort_keys=True, separators=(",", ":"))


def test_order_of_nodes_does_not_matter():
    record = job_record()
    claim = Claim(JOB, "h100", {"b": 8, "a": 8}, {}, {})
    turned = PlacementRecord(3, record.accelerator, record.resource, 16, None, record.layout, claim)
    assert render(turned) == render(record)


@pytest.mark.parametrize(
    ("nodes", "per_pod", "pods"),
    [
        pytest.param({"a": 8, "b": 8}, 8, 2, id="whole nodes"),
        pytest.param({"a": 4}, 4, 1, id="half a node"),
        pytest.param({"a": 8, "b": 4}, 4, 3, id="pods are alike"),
    ],
)
def test_pods_follow_the_claim(nodes, per_pod, pods):
    count = sum(nodes.values())
    claim = Claim(JOB, "h100", nodes, {}, {})
    record = PlacementRecord(1, "H100", "nvidia.com/gpu", count, None, TrainingLayout(), claim)
    assert (record.accelerators_per_pod, record.pods) == (per_pod, pods)


def changed(**fields: object) -> str:
    return json.dumps(json.loads(render(job_record())) | fields)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(None, id="absent"),
        pytest.param("", id="empty"),
        pytest.param("{", id="no JSON"),
        pytest.param("[]", id="no object"),
        pytest.param("{}", id="nothing in it"),
        pytest.param(changed(version=2), id="from the future"),
        pytest.param(changed(count="many"), id="count is no number"),
        pytest.param(changed(claim={"a": [-8, 0, 0]}), id="gives capacity back"),
        pytest.param(changed(claim={"a": [8, 0, 0]}), id="holds half of what it runs"),
        pytest.param(changed(claim={"a": [16, float("nan"), 0]}), id="NaN cores"),
        pytest.param(changed(shape={"tensor": -1}), id="negative shape"),
        pytest.param(changed(shape={"recompute": 7}), id="unknown recompute"),
        pytest.param(changed(shape={"data": None}), id="null in the shape"),
        pytest.param(changed(shape={"data": [2]}), id="list in the shape"),
        pytest.param("[" * 100_000, id="very deep"),
    ],
)
def test_what_is_no_record_is_none(text):
    assert parse(text, JOB) is None


@given(st.text())
def test_never_raises_on_text(text):
    assert parse(text, JOB) is None


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(st.sampled_from(sorted(json.loads(render(job_record())))), JSON)
def test_one_damaged_field_is_no_record_or_one_that_can_be_written_again(field, value):
    found = parse(changed(**{field: value}), JOB)
    assert found is None or parse(render(found), JOB) == found


@given(st.sampled_from(["data", "zeroStage", "recompute", "cpuCores"]), JSON)
def test_a_damaged_shape_is_no_record_or_one_that_can_be_written_again(field, value):
    found = parse(changed(shape={field: value}), JOB)
    assert found is None or parse(render(found), JOB) == found
