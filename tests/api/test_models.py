"""The resources as Python values."""

from __future__ import annotations

import copy
from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import ValidationError

from poolwise.api import RESOURCES, AcceleratorPool, InferenceService, TrainingJob
from poolwise.api.base import Resource
from poolwise.api.validation import defaulted
from tests.api.mutations import mutations
from tests.apiserver.bad_input import ACCEPTED, BASES, changed


def job(**changes: Any) -> TrainingJob:
    paths = {path.replace("__", "."): value for path, value in changes.items()}
    return TrainingJob.model_validate(changed(BASES["job"], paths))


def service(**changes: Any) -> InferenceService:
    paths = {path.replace("__", "."): value for path, value in changes.items()}
    return InferenceService.model_validate(changed(BASES["service"], paths))


SHAPE = {"layers": 80, "hidden": 8192, "ffn": 28672, "heads": 64, "vocab": 128256}


def test_quantities_and_durations_are_numbers() -> None:
    spec = job(
        data={"bytesPerSample": "32Ki", "cpuTimePerSample": "5ms"},
        checkpoint={"claimName": "ckpt", "interval": "1h"},
        objective={"maxCost": "40000", "deadline": "2026-12-24T00:00:00Z"},
    ).spec
    assert spec.data.bytes_per_sample == 32768.0
    assert spec.data.cpu_time_per_sample == 0.005
    assert spec.checkpoint is not None
    assert spec.checkpoint.interval == 3600.0
    assert spec.objective.max_cost == 40000.0
    assert spec.objective.deadline == datetime(2026, 12, 24, tzinfo=UTC)
    assert spec.training.tokens == 20e9


def test_what_is_absent_has_the_documented_default() -> None:
    spec = job().spec
    assert (spec.mode, spec.runtime, spec.suspend, spec.backoff_limit) == ("Run", "Auto", False, 3)
    assert (spec.start_timeout, spec.run.processes_per_node) == (1800.0, "Auto")
    assert spec.training.method == "Full"
    assert spec.placement.capacity_types == ("Reserved", "OnDemand", "Spot")
    assert (spec.data.bytes_per_sample, spec.data.cpu_time_per_sample) == (0.0, 0.0)


@pytest.mark.parametrize("case", [c for c in ACCEPTED if c.condition is None], ids=lambda c: c.name)
def test_defaults_of_the_models_are_those_of_the_schema(case: Any) -> None:
    model = next(r for r in RESOURCES if r.__name__ == case.document["kind"])
    assert model.model_validate(case.document) == model.model_validate(defaulted(case.document))


def test_heads_follow_from_the_shape() -> None:
    shape = job(model={"transformer": SHAPE}).spec.model.transformer
    assert shape is not None
    assert (shape.kv_heads, shape.head_dim) == (64, 128)
    grouped = job(model={"transformer": SHAPE | {"kvHeads": 8, "headDim": 64}}).spec.model
    assert grouped.transformer is not None
    assert (grouped.transformer.kv_heads, grouped.transformer.head_dim) == (8, 64)


def test_a_custom_model_is_dense_unless_it_says_otherwise() -> None:
    counts = {"parameters": "25M", "forwardFlopsPerSample": "4100M", "activationBytesPerSample": 1}
    custom = job(model={"custom": counts}).spec.model.custom
    assert custom is not None
    assert custom.active_parameters == custom.parameters == 25e6


def test_a_length_without_p95_is_always_the_same() -> None:
    lengths = service(traffic={"inputTokens": {"p50": 400}}).spec.traffic.input_tokens
    assert lengths is not None
    assert (lengths.p50, lengths.p95) == (400, 400)


@pytest.mark.parametrize("given", [99, "99", "99.9"])
def test_a_percentile_is_a_number(given: int | str) -> None:
    target = {"metric": "ITL", "percentile": given, "target": "50ms"}
    assert service(slo=[target]).spec.slo[0].percentile == float(given)


def test_null_and_the_empty_string_are_absent() -> None:
    assert job(queueName=None, data=None, run=None, placement__pools=None) == job(run={})
    assert job(queueName="", placement__topology={"level": ""}) == job()


def test_no_capacity_type_is_every_capacity_type() -> None:
    assert job(placement={"capacityTypes": []}).spec.placement == job().spec.placement


def test_unknown_fields_are_left_to_newer_versions() -> None:
    assert job(training__newKnob=1) == job()


def test_a_manifest_has_what_was_given_and_no_defaults() -> None:
    run = job(
        run={
            "env": [{"name": "A", "value": "b"}, {"name": "C"}],
            "resources": {"requests": {"cpu": 16, "memory": "128Gi"}},
            "volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}],
        }
    ).spec.run
    assert run.as_manifest("env") == [{"name": "A", "value": "b"}, {"name": "C"}]
    assert run.as_manifest("resources") == {"requests": {"cpu": "16", "memory": "128Gi"}}
    assert run.as_manifest("volumes") == [
        {"name": "d", "persistentVolumeClaim": {"claimName": "data"}}
    ]
    assert run.as_manifest("ports") is None


def test_a_pool_reads_its_overrides() -> None:
    interconnect = {"intraNodeBytesPerSecond": "450G", "topologyKeys": ["rack", "block"]}
    changes = {"interconnect": interconnect, "nodeStartup": "4m", "price": {"perNodeHour": 55}}
    spec = AcceleratorPool.model_validate(changed(BASES["pool"], changes)).spec
    assert spec.interconnect.intra_node_bytes_per_second == 450e9
    assert spec.interconnect.topology_keys == ("rack", "block")
    assert spec.node_startup == 240.0
    assert spec.price is not None
    assert (spec.price.per_node_hour, spec.price.currency) == (55.0, "USD")


@pytest.mark.parametrize("resource", RESOURCES, ids=lambda resource: resource.__name__)
def test_reading_bad_input_fails_only_as_invalid(resource: type[Resource]) -> None:
    for mutation in mutations(resource):
        before = copy.deepcopy(mutation.document)
        try:
            resource.model_validate(mutation.document)
        except ValidationError as error:
            assert error.error_count() > 0
        assert mutation.document == before
