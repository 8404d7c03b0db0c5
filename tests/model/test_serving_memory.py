"""Weights, cache and what is left, against published counts and measured engines."""

import math
from dataclasses import replace

import pytest

from poolwise.model.efficiency import Calibration
from poolwise.model.serving.memory import (
    footprint,
    kv_tokens,
    replica_machine,
    request_cache_bytes,
    resident_weight_bytes,
    serving_memory,
)
from poolwise.model.shapes import Custom, Model, Transformer
from poolwise.model.transformer import parameters
from poolwise.model.work import ServingLayout
from tests.model.serving_cases import CALIBRATION, TABLES, cpu_node, machine, model, service

KIB = 1024
CHAT = service("Llama-3.1-8B", (400, 1500), (200, 600))
QWEN = service("Qwen3-32B", (4000, 4300), (1000, 1080))
AT_95 = CALIBRATION.replaced({("serving", "memory_fraction", "*", "*"): 0.95})


@pytest.mark.parametrize(
    ("weight_format", "expected_bytes"),
    [
        pytest.param("bf16", 16.06e9, id="all in 16 bits: 8.03 G parameters"),
        # 6.98 G in layers, 1.05 G in embedding and head, which stay in 16 bits.
        pytest.param("fp8", 6.98e9 + 2.10e9, id="layers in 8 bits"),
        pytest.param("int4", 0.53 * 6.98e9 + 2.10e9, id="layers in 4 bits and scales"),
    ],
)
def test_weights_by_format(weight_format: str, expected_bytes: float) -> None:
    layout = ServingLayout(weight_format=weight_format)
    assert resident_weight_bytes(CHAT, layout) == pytest.approx(expected_bytes, rel=0.01)


def test_mxfp4_is_a_format_of_the_experts() -> None:
    # gpt-oss-120b: OpenAI's model card gives 60.8 GiB for the checkpoint.
    weights = resident_weight_bytes(
        service("gpt-oss-120b", (1000, 1000), (1000, 1000)), ServingLayout(weight_format="mxfp4")
    )
    assert weights == pytest.approx(60.8 * 2**30, rel=0.05)


@pytest.mark.parametrize(
    ("name", "kib"), [("Llama-3-8B", 128), ("Llama-3-70B", 320), ("Qwen3-32B", 256)]
)
def test_cache_of_one_token(name: str, kib: float) -> None:
    cached = request_cache_bytes(service(name, (1, 1), (1, 1)), ServingLayout(), 1.0)
    assert cached == kib * KIB


def test_latent_cache_is_replicated_under_tensor_parallelism() -> None:
    deepseek = service("DeepSeek-V3", (1000, 1000), (1000, 1000))
    alone = request_cache_bytes(deepseek, ServingLayout(tensor=1), 1000.0)
    assert request_cache_bytes(deepseek, ServingLayout(tensor=8), 1000.0) == alone


def test_key_value_heads_replicate_beyond_their_count() -> None:
    # 8 heads: 16 devices hold what 8 do.
    at_8 = request_cache_bytes(CHAT, ServingLayout(tensor=8), 1000.0)
    assert request_cache_bytes(CHAT, ServingLayout(tensor=16), 1000.0) == at_8
    assert request_cache_bytes(CHAT, ServingLayout(tensor=4), 1000.0) == 2 * at_8


def test_tensorrt_llm_keeps_what_left_the_window() -> None:
    # gpt-oss-120b: every other of 36 layers attends to 128 tokens; 8 heads of 64 in 16 bits.
    freeing = service("gpt-oss-120b", (8000, 8000), (500, 500))
    per_key = 2 * 8 * 64 * 2
    for engine, keys in (("vllm", 18 * 8192 + 18 * 128), ("triton", 36 * 8192)):
        work = replace(freeing, engine=engine)
        assert request_cache_bytes(work, ServingLayout(), 8192.0) == per_key * keys


def test_an_fp8_cache_is_half() -> None:
    layout = ServingLayout(kv_format="fp8")
    assert 2 * request_cache_bytes(CHAT, layout, 1.0) == request_cache_bytes(
        CHAT, ServingLayout(), 1.0
    )


@pytest.mark.parametrize(("tensor", "measured_tokens"), [(1, 48_000), (2, 350_000)])
def test_cached_tokens_of_llm_d(tensor: int, measured_tokens: float) -> None:
    # llm-d's guides: Qwen3-32B in bf16 on 80 GB H100s, which they run at 0.95 of the memory.
    layout = ServingLayout(tensor=tensor, max_batched_tokens=8192)
    tokens = kv_tokens(QWEN, layout, machine("H100-SXM5-80GB"), AT_95)
    assert tokens == pytest.approx(measured_tokens, rel=0.08)


def test_the_engine_refuses_a_length_that_its_cache_cannot_hold() -> None:
    # llm-d's guide: Qwen3-32B with 40960 tokens on one H100 does not start at 0.90, does at 0.95.
    layout = ServingLayout(max_model_tokens=40960)
    h100 = machine("H100-SXM5-80GB")
    assert not serving_memory(QWEN, layout, h100, CALIBRATION).fits
    assert serving_memory(QWEN, layout, h100, AT_95).fits


def test_what_does_not_fit_says_so_with_numbers() -> None:
    memory = serving_memory(
        service("Llama-3.1-70B", (400, 1500), (200, 600)),
        ServingLayout(max_model_tokens=131072),
        machine("L40S"),
        CALIBRATION,
    )
    assert not memory.fits
    assert memory.weights_bytes == pytest.approx(141e9, rel=0.01)
    # A cache of one request beyond the whole device: 131072 tokens at 320 KiB.
    assert memory.kv_cache_bytes == pytest.approx(131072 * 320 * KIB)
    assert memory.usable_bytes < 0.9 * 48e9


def test_pipeline_stages_share_layers_and_cache() -> None:
    one, two = ServingLayout(tensor=4), ServingLayout(tensor=4, pipeline=2)
    work = service("Llama-3.1-70B", (400, 1500), (200, 600))
    assert resident_weight_bytes(work, two) == pytest.approx(
        resident_weight_bytes(work, one) / 2, rel=0.02
    )
    assert request_cache_bytes(work, two, 1.0) == request_cache_bytes(work, one, 1.0) / 2


def test_a_cpu_replica_has_its_share_of_the_node() -> None:
    node = cpu_node("Xeon-8488C", 48, 384e9)
    share = replica_machine(ServingLayout(cpu_cores=24, cpu_memory_bytes=64e9), node).device
    assert share.memory_bytes == 64e9
    assert share.memory_bandwidth_bytes_per_second == pytest.approx(307.2e9 / 4)
    assert share.peak_flops_per_second["bf16"] == pytest.approx(118e12 / 4)


def test_a_custom_model_has_no_cache() -> None:
    encoder = Model("mine", Custom(100e6, 100e6, 22e9, 20e6))
    work = service(encoder, (1, 1), (1, 1))
    node = cpu_node("Xeon-8488C", 48, 384e9)
    layout = ServingLayout(cpu_cores=4, cpu_memory_bytes=4e9, max_num_seqs=32)
    memory = serving_memory(work, layout, node, CALIBRATION)
    assert memory.kv_cache_bytes == 0.0
    assert memory.fits
    small = replace(layout, cpu_memory_bytes=1e9)
    assert not serving_memory(work, small, node, CALIBRATION).fits


def test_what_must_fit_is_the_upper_end_of_what_is_predicted() -> None:
    layout, where = ServingLayout(max_model_tokens=8192), machine("H100-SXM5-80GB")
    likely = footprint(CHAT, layout, where, CALIBRATION)
    most = likely.at_most()
    assert likely.more_bytes > 0.5e9
    assert likely.cache_bytes - most.cache_bytes == pytest.approx(likely.more_bytes)
    assert most.more_bytes == 0.0
    told = serving_memory(CHAT, layout, where, CALIBRATION)
    assert told.most_bytes - told.needed_bytes == pytest.approx(likely.more_bytes)
    assert most.with_cache(told.kv_cache_bytes).needed_bytes == pytest.approx(told.most_bytes)


def test_a_cache_in_use_has_what_the_rest_leaves_however_much_that_takes() -> None:
    layout, where = ServingLayout(max_model_tokens=8192), machine("H100-SXM5-80GB")
    likely = footprint(CHAT, layout, where, CALIBRATION)
    calm = likely.under_load(likely.cache_bytes / 2)
    assert calm.more_bytes == likely.more_bytes
    full = likely.under_load(likely.cache_bytes)
    assert full.needed_bytes == pytest.approx(full.usable_bytes)
    assert full.most_bytes == pytest.approx(full.usable_bytes)
    busy = likely.under_load(likely.cache_bytes - likely.more_bytes / 2)
    assert busy.most_bytes == pytest.approx(busy.usable_bytes)


def spreads(weights: float, working: float) -> Calibration:
    """The shipped constants with other spreads of memory, for every engine and format."""
    of_terms = {"weights_bytes": weights, "working_bytes": working}
    return Calibration(
        row.model_copy(update={"spread": of_terms.get(row.term, row.spread)})
        for row in TABLES.efficiencies
    )


def test_what_is_independent_is_not_at_its_worst_together() -> None:
    layout, where = ServingLayout(max_model_tokens=8192), machine("H100-SXM5-80GB")

    def more(weights: float, working: float) -> float:
        return footprint(CHAT, layout, where, spreads(weights, working)).more_bytes

    apart = (more(0.02, 0.0), more(0.0, 0.4))
    assert more(0.02, 0.4) == pytest.approx(math.hypot(*apart))
    assert more(0.02, 0.0) == pytest.approx(16.06e9 * math.expm1(1.645 * 0.02), rel=0.01)


@pytest.mark.parametrize("gpu", ["H100-SXM5-80GB", "A100-SXM4-80GB"])
@pytest.mark.parametrize("chunk", [2048, 8192])
def test_llama_70b_in_16_bits_starts_on_two_devices_of_80_gb(gpu: str, chunk: int) -> None:
    """It does with engines of today, at 0.90 of the memory and 8192 tokens of context."""
    layout = ServingLayout(
        tensor=2, max_num_seqs=256, max_batched_tokens=chunk, max_model_tokens=8192
    )
    of_70b = service("Llama-3.1-70B", (400, 1500), (200, 600))
    longest = request_cache_bytes(of_70b, layout, 8192.0)
    assert footprint(of_70b, layout, machine(gpu), CALIBRATION).surely_holds(longest)


@pytest.mark.parametrize(
    ("model", "gpu", "layout"),
    [
        pytest.param(
            "Llama-3.1-70B",
            "H100-SXM5-80GB",
            ServingLayout(max_model_tokens=2048),
            id="141 GB of weights on 80",
        ),
        pytest.param(
            "DeepSeek-V3",
            "H100-SXM5-80GB",
            ServingLayout(tensor=8, weight_format="fp8", max_model_tokens=2048),
            id="671 GB of weights on 640",
        ),
        pytest.param(
            "Qwen2.5-72B",
            "A100-SXM4-40GB",
            ServingLayout(tensor=4, max_num_seqs=1024, max_model_tokens=8192),
            id="failed at 0.95 on Polaris, so at 0.90",
        ),
        pytest.param(
            "Qwen3-32B",
            "H100-SXM5-80GB",
            ServingLayout(max_model_tokens=40960),
            id="refuses that length at 0.90 (llm-d)",
        ),
        pytest.param(
            "Llama-3.1-70B",
            "H100-SXM5-80GB",
            ServingLayout(tensor=2, max_model_tokens=32768),
            id="5.4 GB of cache where 4.4 is left beside weights alone",
        ),
        pytest.param(
            "Llama-3.1-8B",
            "T4",
            ServingLayout(weight_format="fp16", max_model_tokens=2048),
            id="16.1 GB of weights on 16",
        ),
    ],
)
def test_what_cannot_start_is_refused(model: str, gpu: str, layout: ServingLayout) -> None:
    work = service(model, (400, 1500), (200, 600))
    longest = request_cache_bytes(work, layout, layout.max_model_tokens)
    assert not footprint(work, layout, machine(gpu), CALIBRATION).surely_holds(longest)


def test_no_batch_is_small_enough_where_the_weights_alone_are_too_large() -> None:
    small, large = (machine(name) for name in ("L4", "H100-SXM5-80GB"))
    layout = ServingLayout(max_num_seqs=1024, max_batched_tokens=8192, max_model_tokens=8192)
    service_70b = service("Llama-3.1-70B", (400, 1500), (200, 600))
    assert footprint(CHAT, layout, large, CALIBRATION).holds_weights
    assert footprint(CHAT, layout, small, CALIBRATION).holds_weights
    assert not footprint(service_70b, layout, large, CALIBRATION).holds_weights
    least = replace(layout, max_num_seqs=1, max_batched_tokens=1)
    assert not serving_memory(service_70b, least, large, CALIBRATION).fits


def test_the_fullest_of_uneven_stages_counts() -> None:
    """126 layers in 8 stages: some have 16, not 15.75."""
    work = service("Llama-3.1-405B", (400, 1500), (200, 600))
    assert isinstance(work.model.shape, Transformer) and work.model.shape.layers == 126
    even, uneven = ServingLayout(tensor=8, pipeline=2), ServingLayout(tensor=8, pipeline=8)
    count = parameters(work.model)
    held = 2 * (count.body * 16 / 126 + max(count.embedding, count.head)) / 8
    assert resident_weight_bytes(work, uneven) == pytest.approx(held)
    cached = request_cache_bytes(work, even, 1.0) / 63 * 16
    assert request_cache_bytes(work, uneven, 1.0) == pytest.approx(cached)


def test_who_writes_no_tokens_keeps_no_logits() -> None:
    """An encoder of 250,002 words (XLM-R) would keep 1 GB of them for a batch of 1,024."""
    bert = model("BERT-large")
    assert isinstance(bert.shape, Transformer)
    work = service(replace(bert, shape=replace(bert.shape, vocab=250_002)), (256, 512), (0, 0))
    few, many = (
        footprint(work, ServingLayout(max_num_seqs=count), machine("L4"), CALIBRATION)
        for count in (1, 1024)
    )
    assert many.activations_bytes == few.activations_bytes
