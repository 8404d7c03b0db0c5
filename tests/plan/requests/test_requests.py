"""Specs become requests; what cannot be planned is refused with a sentence, and nothing else."""

import copy
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given

from poolwise import tables
from poolwise.errors import InvalidInput
from poolwise.model.shapes import Custom, Transformer
from poolwise.model.work import Execution, Method, Metric, Recompute, Target, Tokens
from poolwise.plan.decision import Key, Kind
from poolwise.plan.requests.reading import identity, priority_classes, workload
from poolwise.plan.requests.request import FixedLayout, Goal, Topology
from poolwise.settings import Settings
from tests.plan.junk import broken

TABLES = tables.load()
TRAINING = {
    "kind": "TrainingJob",
    "metadata": {"name": "llama", "namespace": "research", "uid": "u-1", "generation": 3},
    "spec": {
        "model": {"preset": "LLAMA-3.1-70b"},
        "training": {"globalBatchSize": 512, "sequenceLength": 8192, "tokens": "2G"},
        "accelerators": {"count": 64},
        "run": {"image": "train"},
    },
}
SERVICE = {
    "kind": "InferenceService",
    "metadata": {"name": "chat", "namespace": "web", "uid": "u-2", "generation": 1},
    "spec": {
        "model": {"preset": "llama-3.1-8b", "maxModelLength": 8192},
        "traffic": {
            "requestsPerSecond": "12.5",
            "inputTokens": {"p50": 400, "p95": 1500},
            "outputTokens": {"p50": 200, "p95": 600},
            "prefixHitPercent": 30,
        },
        "slo": [{"metric": "ITL", "percentile": 99, "target": "50ms"}],
    },
}
SHAPE = {"layers": 32, "hidden": 4096, "ffn": 14336, "heads": 32, "vocab": 128256}
LONGER = "a variant with a longer context is described by spec.model.transformer"
COUNTS = {"parameters": "25M", "forwardFlopsPerSample": "4100M", "activationBytesPerSample": "90M"}


def read(document, **priorities):
    return workload(document, Kind(document["kind"]), TABLES, Settings(), priorities)


def changed(document, path, value):
    """A copy with one field set, or removed when the value is ``...``."""
    result = copy.deepcopy(document)
    *parents, last = path.split(".")
    place = result["spec"]
    for part in parents:
        place = place.setdefault(part, {})
    if value is ...:
        place.pop(last, None)
    else:
        place[last] = value
    return result


def refusal(document):
    with pytest.raises(InvalidInput) as caught:
        read(document)
    return str(caught.value)


def test_training_job_becomes_work():
    request = read(TRAINING).request
    assert isinstance(request.work.model.shape, Transformer)
    assert request.work.model.name == "Llama-3.1-70B"
    assert request.work.steps == pytest.approx(2e9 / (512 * 8192))
    assert (request.least, request.most) == (64, 64)
    assert request.goal is Goal.TIME
    assert request.fixed == FixedLayout()


def test_service_becomes_work():
    request = read(SERVICE).request
    assert request.work.requests_per_second == 12.5
    assert request.work.input_tokens == Tokens(400, 1500)
    assert request.work.prefix_hit_fraction == 0.3
    assert request.work.targets == (Target(Metric.ITL, 99.0, 0.05),)
    assert request.work.max_model_tokens == 8192
    assert (request.goal, request.given_replicas) == (Goal.COST, None)
    assert request.hub_id == "meta-llama/Llama-3.1-8B"


def test_where_only_the_rate_counts_targets_are_told_and_bound_nothing():
    service = changed(SERVICE, "trafficClass", "Throughput")
    work = read(service).request.work
    assert (work.targets, work.reported) == ((), (Target(Metric.ITL, 99.0, 0.05),))
    assert "must be E2E" in refusal(changed(service, "model", {"preset": "bert-base"}))


def test_identity_and_state():
    found = read(changed(TRAINING, "suspend", True))
    assert found.identity.key == Key(Kind.TRAINING_JOB, "research", "llama")
    assert (found.identity.uid, found.identity.generation) == ("u-1", 3)
    assert found.is_suspended
    assert read(changed(SERVICE, "mode", "Plan")).is_plan_only


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        pytest.param("samples", "512k", 1000.0, id="samples"),
        pytest.param("steps", "10k", 10_000.0, id="steps"),
    ],
)
def test_length_of_run_in_steps(field, value, expected):
    document = changed(changed(TRAINING, "training.tokens", ...), f"training.{field}", value)
    assert read(document).request.work.steps == expected


@pytest.mark.parametrize(("field", "value"), [("tokens", "1M"), ("samples", "1")])
def test_a_run_shorter_than_a_step_takes_that_step(field, value):
    document = changed(TRAINING, "training.tokens", ...)
    document = changed(document, f"training.{field}", value)
    assert read(document).request.work.steps == 1.0


def test_given_parts_of_the_layout_are_kept():
    document = changed(TRAINING, "training.parallelism", {"tensor": 8, "pipeline": 2})
    document = changed(document, "training.recompute", "None")
    fixed = read(document).request.fixed
    assert fixed == FixedLayout(tensor=8, pipeline=2, recompute=Recompute.NONE)


def test_own_models():
    shape = read(changed(TRAINING, "model", {"transformer": SHAPE})).request.work.model.shape
    assert (shape.kv_heads, shape.head_dim) == (32, 128)
    document = changed(TRAINING, "model", {"custom": {**COUNTS, "activeParameters": "5M"}})
    assert read(document).request.work.model.shape == Custom(25e6, 5e6, 4.1e9, 9e7)


def test_a_status_of_an_earlier_version_is_no_reason_to_refuse_a_spec():
    status = {"plan": {"stepsAhead": "many", "replicas": -1}, "conditions": "none"}
    assert read({**TRAINING, "status": status}) == read(TRAINING)


def test_experts_that_no_layer_has_are_none():
    experts = {"count": 8, "topK": 2, "ffn": 1024, "denseLayers": 32}
    document = changed(TRAINING, "model", {"transformer": {**SHAPE, "experts": experts}})
    assert read(document).request.work.model.shape.experts is None


def test_limits_and_places():
    document = changed(TRAINING, "objective", {"goal": "Cost", "deadline": "2026-12-24T00:00:00"})
    document = changed(document, "placement", {"pools": ["a"], "topology": {"mode": "Required"}})
    document = changed(
        document, "accelerators", {"min": 8, "max": 64, "products": ["h100-sxm-80gb", "cpu"]}
    )
    request = read(document).request
    assert request.deadline == datetime(2026, 12, 24, tzinfo=UTC)
    assert request.where.products == {"H100-SXM5-80GB", "CPU"}
    assert request.where.pools == {"a"}
    assert request.where.topology is Topology.REQUIRED
    assert (request.least, request.most) == (8, 64)


@pytest.mark.parametrize(
    "moment", ["2027-02-30T00:00:00Z", "2027-02-20T00:00:00+25:00", "0000-01-01T00:00:00Z"]
)
def test_a_moment_that_no_calendar_has_is_told_so(moment):
    document = changed(TRAINING, "objective", {"deadline": moment})
    assert refusal(document) == (
        f"spec.objective.deadline: is '{moment}': "
        "must be a time that exists, such as 2026-12-24T00:00:00Z"
    )


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        (
            "H100",
            {"H100-SXM5-80GB", "H100-PCIe-80GB", "H100-NVL-94GB", "H100-SXM-96GB-HBM2e-500W"},
        ),
        ("a100-80gb", {"A100-SXM4-80GB", "A100-PCIE-80GB"}),
        ("B200", {"B200-SXM-180GB"}),
        ("L40", {"L40"}),
        ("NVIDIA-H100-80GB-HBM3", {"H100-SXM5-80GB"}),
        ("A100-SXM4-40GB-MIG-1g.5gb", {"A100-SXM4-40GB-MIG-1g.5gb"}),
        ("TPU", {"TPU v3", "TPU v4", "TPU v5e", "TPU v5p", "TPU v6e", "TPU v7x"}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_short_name_of_a_product_means_all_that_it_names(given, meant):
    document = changed(TRAINING, "accelerators", {"count": 8, "products": [given]})
    assert read(document).request.where.products == meant


def test_lora():
    document = changed(TRAINING, "training.method", "Lora")
    assert read(document).request.work.method is Method.LORA


@pytest.mark.parametrize("execution", Execution)
def test_execution(execution):
    document = changed(TRAINING, "training.execution", execution.value)
    assert read(document).request.work.execution is execution
    assert read(TRAINING).request.work.execution is Execution.FUSED


def test_untold_lengths_come_from_a_public_trace():
    work = read(changed(SERVICE, "traffic", ...)).request.work
    assert (work.requests_per_second, work.input_tokens) == (None, Tokens(1015, 4085))


def test_untold_lengths_are_cut_to_a_short_context():
    document = changed(changed(SERVICE, "traffic", ...), "model.maxModelLength", 1024)
    work = read(document).request.work
    assert work.input_tokens.p95 + work.output_tokens.p95 == pytest.approx(1024)


def test_only_what_is_not_told_is_cut():
    traffic = {"inputTokens": {"p50": 400, "p95": 900}}
    work = read(changed(changed(SERVICE, "traffic", traffic), "model.maxModelLength", 1024))
    assert work.request.work.input_tokens == Tokens(400, 900)
    assert work.request.work.output_tokens.p95 == pytest.approx(124)


def test_priorities():
    classes: list[Any] = [
        {"metadata": {"name": "high"}, "value": 1000, "preemptionPolicy": "Never"},
        {"metadata": {"name": "usual"}, "value": 10, "globalDefault": True},
        {"metadata": None, "value": "junk"},
    ]
    known = priority_classes(classes)
    high = read(changed(TRAINING, "priorityClassName", "high"), **known).priority
    assert (high.value, high.may_preempt) == (1000, False)
    usual = read(TRAINING, **known).priority
    assert (usual.value, usual.may_preempt) == (10, True)
    assert read(TRAINING).priority.value == 0


@pytest.mark.parametrize(
    ("document", "path", "value", "says"),
    [
        pytest.param(
            TRAINING,
            "model.preset",
            "lama-3.1-70b",
            ("spec.model.preset", "'lama-3.1-70b' is not a known model", "Llama-3.1-70B"),
            id="unknown preset names the nearest",
        ),
        pytest.param(
            TRAINING,
            "accelerators.products",
            ["H100-SXM5-80G"],
            ("spec.accelerators.products", "nearest: H100-SXM5-80GB"),
            id="unknown product",
        ),
        pytest.param(
            TRAINING,
            "accelerators.products",
            ["SXM5"],
            ("nearest: H100-SXM5-80GB",),
            id="part of a product's name",
        ),
        pytest.param(
            TRAINING,
            "model.preset",
            "acme/qwen3-32b-ours",
            ("nearest: Qwen3-32B",),
            id="preset with more around it",
        ),
        pytest.param(TRAINING, "model", {}, ("spec.model", "has 0"), id="no model"),
        pytest.param(
            TRAINING,
            "model",
            {"preset": "llama-3-8b", "custom": COUNTS},
            ("has 2",),
            id="two models",
        ),
        pytest.param(
            TRAINING,
            "model",
            {"custom": {**COUNTS, "activeParameters": "26M"}},
            ("spec.model.custom.activeParameters", "at most parameters"),
            id="B82 active above total",
        ),
        pytest.param(
            TRAINING,
            "model",
            {"transformer": {**SHAPE, "kvHeads": 5}},
            ("kvHeads", "must divide heads (32), is 5"),
            id="kvHeads",
        ),
        pytest.param(
            TRAINING,
            "model",
            {"transformer": {**SHAPE, "experts": {"count": 8, "topK": 9, "ffn": 1024}}},
            ("topK", "at most count (8), is 9"),
            id="more experts than there are",
        ),
        pytest.param(
            TRAINING,
            "training.sequenceLength",
            200_000,
            ("spec.training.sequenceLength", "131072 tokens of Llama-3.1-70B, is 200000", LONGER),
            id="B13 context beyond the model",
        ),
        pytest.param(
            TRAINING,
            "training.globalBatchSize",
            0,
            ("spec.training.globalBatchSize", "is 0", "greater than or equal to 1"),
            id="B13 batch 0",
        ),
        pytest.param(TRAINING, "training.sequenceLength", ..., ("is required",), id="no sequence"),
        pytest.param(TRAINING, "training.steps", 7, ("exactly one of",), id="two lengths"),
        pytest.param(TRAINING, "training.tokens", ..., ("has 0",), id="no length"),
        pytest.param(
            TRAINING,
            "training.parallelism",
            {"data": 2, "tensor": 8, "pipeline": 2, "context": 1},
            ("spec.training.parallelism", "number of accelerators (64), is 32"),
            id="B14 product is not the count",
        ),
        pytest.param(
            TRAINING,
            "training.parallelism",
            {"tensor": 6},
            ("6", "does not divide 64"),
            id="B14 indivisible",
        ),
        pytest.param(
            TRAINING,
            "training.parallelism",
            {"data": 3},
            ("does not divide 64",),
            id="data and count",
        ),
        pytest.param(
            TRAINING,
            "training.microBatchSize",
            7,
            ("must divide globalBatchSize (512), is 7",),
            id="micro-batch",
        ),
        pytest.param(TRAINING, "accelerators", {"min": 9, "max": 8}, ("at most max (8)",), id="B4"),
        pytest.param(TRAINING, "accelerators", {}, ("either count, or both",), id="no count"),
        pytest.param(TRAINING, "accelerators.count", "many", ("'many'",), id="not a number"),
        pytest.param(
            SERVICE,
            "model.maxModelLength",
            200_000,
            ("131072 tokens", LONGER),
            id="B13 service context",
        ),
        pytest.param(
            SERVICE,
            "model",
            {"preset": "gpt2"},
            ("2100 tokens long", "1024", LONGER),
            id="lengths above the model's own",
        ),
        pytest.param(
            SERVICE,
            "model.maxModelLength",
            1024,
            ("2100 tokens long", "1024"),
            id="lengths above it",
        ),
        pytest.param(SERVICE, "slo", [], ("spec.slo", "Throughput"), id="no target"),
        pytest.param(
            SERVICE,
            "model",
            {"custom": COUNTS},
            ("spec.slo[0].metric", "must be E2E"),
            id="tokens of a model without",
        ),
        pytest.param(
            SERVICE,
            "slo",
            [{"metric": "ITL", "percentile": 100, "target": "1s"}],
            ("percentile",),
            id="B9",
        ),
        pytest.param(
            SERVICE,
            "slo",
            [{"metric": "ITL", "percentile": 99, "target": "P1D"}],
            ("'P1D'",),
            id="B10",
        ),
        pytest.param(
            SERVICE,
            "scaling",
            {"minReplicas": 5, "maxReplicas": 4},
            ("at most maxReplicas (4)",),
            id="B4 replicas",
        ),
    ],
)
def test_refusals_say_what_where_and_what_is_allowed(document, path, value, says):
    sentence = refusal(changed(document, path, value))
    for part in says:
        assert part in sentence


def test_parallel_sizes_and_accelerators_of_a_replica_must_agree():
    document = changed(SERVICE, "accelerators", {"perReplica": 4})
    document = changed(document, "parallelism", {"tensor": 2, "pipeline": 1})
    assert "perReplica (4), is 2" in refusal(document)


@given(broken(TRAINING) | broken(SERVICE))
def test_nothing_but_invalid_input_is_ever_raised(document):
    kind = Kind(document["kind"])
    identity(document, kind)
    try:
        workload(document, kind, TABLES, Settings(), {})
    except InvalidInput as error:
        assert error.problem


@pytest.mark.parametrize("parameters", ["0", "-1", "1e300"])
def test_b12_impossible_counts(parameters):
    document = changed(TRAINING, "model", {"custom": {**COUNTS, "parameters": parameters}})
    assert "must be a quantity from 1 to 100T" in refusal(document)


def test_an_encoder_writes_no_tokens():
    """A prompt as long as BERT's 512 tokens leaves none for an answer, and needs none."""
    targets = [{"metric": "E2E", "percentile": 99, "target": "100ms"}]
    prompt = {"requestsPerSecond": "50", "inputTokens": {"p50": 128, "p95": 512}}
    for traffic in (prompt, {**prompt, "outputTokens": {"p50": 10, "p95": 20}}):
        spec = {"model": {"preset": "bert-base"}, "traffic": traffic, "slo": targets}
        work = read({**SERVICE, "spec": spec}).request.work
        assert work.input_tokens == Tokens(128, 512)
        assert work.output_tokens == Tokens(0, 0)


@pytest.mark.parametrize("traffic", [{}, {"inputTokens": {"p50": 1, "p95": 50}}])
def test_an_encoder_of_images_reads_all_of_each(traffic):
    """ViT-L cuts each picture into 196 patches and a class token, however long prompts are."""
    targets = [{"metric": "E2E", "percentile": 99, "target": "100ms"}]
    load = {"requestsPerSecond": "50", **traffic}
    spec = {"model": {"preset": "vit-l-16"}, "traffic": load, "slo": targets}
    work = read({**SERVICE, "spec": spec}).request.work
    assert work.input_tokens == Tokens(197, 197)
    assert work.output_tokens == Tokens(0, 0)


def test_a_variant_with_a_longer_context_is_what_the_sentence_says():
    million = changed(TRAINING, "training.sequenceLength", 1_048_576)
    assert LONGER in refusal(million)
    shape = {**SHAPE, "kvHeads": 8}
    assert read(changed(million, "model", {"transformer": shape})).request.work.sequence_tokens


@pytest.mark.parametrize("preset", ["vit-b-16", "bert-base-cased"])
def test_an_encoder_has_no_variant_of_another_length(preset):
    document = changed(TRAINING, "model.preset", preset)
    assert "spec.model.transformer" not in refusal(document)


def test_an_encoder_has_no_prefix_to_find_again():
    """Each of its tokens attends to those that follow: no two texts have a start in common."""
    reads = changed(SERVICE, "model", {"preset": "bert-large"})
    reads = changed(reads, "slo", [{"metric": "E2E", "percentile": 99, "target": "50ms"}])
    reads = changed(reads, "traffic", {"requestsPerSecond": "12.5", "prefixHitPercent": 90})
    assert read(reads).request.work.prefix_hit_fraction == 0.0
