"""Whole predictions: published end-to-end figures, natural experiments, bottlenecks, CPU."""

import math
from dataclasses import replace

import pytest

from poolwise.model.bottleneck import bottleneck
from poolwise.model.hardware import Machine, Resource
from poolwise.model.serving.load import state, state_at_rate
from poolwise.model.serving.prediction import predict_serving
from poolwise.model.serving.replica import replica
from poolwise.model.serving.tuning import tuned
from poolwise.model.shapes import Custom, Model
from poolwise.model.work import Metric, ServingLayout, ServingWork, Target
from tests.model.serving_cases import (
    CALIBRATION,
    CHAT,
    capacity_requests_per_second,
    cpu_node,
    machine,
    service,
)

H100 = machine("H100-SXM5-80GB")
SERVICE = service("Llama-3.1-8B", (400, 1500), (200, 600), CHAT)
LARGE_STEPS = ServingLayout(max_batched_tokens=8192)


def label(work: ServingWork, layout: ServingLayout, where: Machine) -> Resource:
    chosen, _ = tuned(work, layout, where, CALIBRATION)
    return bottleneck(lambda each: capacity_requests_per_second(work, chosen, each), where).resource


@pytest.mark.parametrize(
    ("name", "tensor", "tokens", "clients", "milliseconds"),
    [
        # aiconfigurator's silicon_refs.csv, vLLM 0.12.
        pytest.param("Qwen3-32B", 2, 1024, 32, 20.06, id="Qwen3-32B TP2, 32 clients"),
        # llm-d workload-variant-autoscaler, docs/tutorials/parameter-estimation.md.
        pytest.param("Llama-3.1-8B", 1, 128, 1, 7.0, id="8B alone"),
        pytest.param("Llama-3.1-8B", 1, 128, 64, 8.7, id="8B, 64 clients"),
    ],
)
def test_time_per_token_on_h100(
    name: str, tensor: int, tokens: float, clients: float, milliseconds: float
) -> None:
    work = service(name, (tokens, tokens), (tokens, tokens))
    layout = replace(LARGE_STEPS, tensor=tensor)
    at = state(replica(work, layout, H100, CALIBRATION), clients)
    assert at.token_seconds * 1e3 == pytest.approx(milliseconds, rel=0.12)


@pytest.mark.parametrize(
    ("prompt", "output", "measured"),
    [
        # TensorRT-LLM's throughput tables, medians of pairs that differ in the device alone.
        pytest.param(128, 2048, 1.34, id="decode-heavy"),
        pytest.param(1000, 1000, 1.20, id="balanced"),
        pytest.param(2048, 128, 1.13, id="prefill-heavy"),
    ],
)
def test_more_bandwidth_and_memory_alone(prompt: float, output: float, measured: float) -> None:
    # H100 to H200: bandwidth x1.43, memory x1.76, FLOP/s x1.
    work = service("Llama-3.1-70B", (prompt, prompt), (output, output))
    work = replace(work, engine="triton")
    layout = replace(LARGE_STEPS, tensor=2, weight_format="fp8", kv_format="fp8", max_num_seqs=2048)
    old, new = (
        capacity_requests_per_second(work, layout, machine(each))
        for each in ("H100-SXM5-80GB", "H200-SXM-141GB")
    )
    assert new / old == pytest.approx(measured, rel=0.12)


@pytest.mark.parametrize("where", ["L40S", "H100-SXM5-80GB", "H200-SXM-141GB"])
def test_decode_heavy_chat_wants_bandwidth(where: str) -> None:
    targets = (Target(Metric.TTFT, 95, 1.0), Target(Metric.ITL, 95, 0.05))
    work = service("Llama-3.1-8B", (300, 800), (1200, 3000), targets)
    wanted = (Resource.MEMORY_BANDWIDTH, Resource.MEMORY_CAPACITY)
    assert label(work, ServingLayout(), machine(where)) in wanted


@pytest.mark.parametrize("where", ["L40S", "H100-SXM5-80GB", "A100-SXM4-80GB"])
def test_prefill_heavy_summarisation_wants_compute(where: str) -> None:
    targets = (Target(Metric.TTFT, 95, 8.0),)
    work = service("Llama-3.1-8B", (6000, 12000), (100, 200), targets)
    assert label(work, ServingLayout(max_model_tokens=16384), machine(where)) is Resource.COMPUTE


def test_a_cache_that_binds_wants_memory() -> None:
    targets = (Target(Metric.TTFT, 90, 3.0), Target(Metric.ITL, 90, 0.1))
    work = service("Qwen3-32B", (4000, 4300), (1000, 1080), targets)
    assert label(work, ServingLayout(), H100) is Resource.MEMORY_CAPACITY


def test_a_tiny_model_on_eight_devices_is_bound_by_what_is_fixed() -> None:
    work = service("Qwen3-0.6B", (200, 400), (200, 400))
    layout = ServingLayout(tensor=8, max_num_seqs=4)
    assert label(work, layout, H100) in (Resource.LATENCY, Resource.HOST)


def test_latency_rises_with_the_rate() -> None:
    tails = [
        predict_serving(SERVICE, ServingLayout(), H100, CALIBRATION, rate)
        for rate in (0.1, 2.0, 8.0, 16.0, 24.0)
    ]
    for metric in ("ttft_seconds", "itl_seconds", "e2e_seconds"):
        seconds = [getattr(each, metric).mid for each in tails]
        assert seconds == sorted(seconds)
    assert [each.concurrency for each in tails] == sorted(each.concurrency for each in tails)


@pytest.mark.parametrize("rate", [0.0, 1.0, 20.0])
def test_the_ledger_sums_to_the_mean_of_a_whole_request(rate: float) -> None:
    predicted = predict_serving(SERVICE, ServingLayout(), H100, CALIBRATION, rate)
    total = sum(term.seconds for term in predicted.ledger)
    if rate:
        assert predicted.concurrency / rate == pytest.approx(total)
    assert all(term.seconds >= 0.0 for term in predicted.ledger)


def test_intervals_hold_the_prediction_and_widen_with_ignorance() -> None:
    known = predict_serving(SERVICE, ServingLayout(), H100, CALIBRATION, 1.0)
    assert known.ttft_seconds.low < known.ttft_seconds.mid < known.ttft_seconds.high
    node = cpu_node("Xeon-8488C", 48, 384e9)
    layout = ServingLayout(cpu_cores=96, cpu_memory_bytes=128e9)
    guessed = predict_serving(SERVICE, layout, node, CALIBRATION, 0.1)
    assert guessed.itl_seconds.high / guessed.itl_seconds.mid > (
        known.itl_seconds.high / known.itl_seconds.mid
    )
    assert guessed.provenance == "specification"
    assert known.provenance == "fitted"


def test_nobody_measured_how_this_accelerator_generates() -> None:
    found = predict_serving(SERVICE, ServingLayout(), machine("L40S"), CALIBRATION, 1.0)
    assert found.provenance == "inherited"


def test_memory_at_the_load_is_within_what_the_engine_takes() -> None:
    capacity = capacity_requests_per_second(SERVICE, ServingLayout(), H100)
    idle, busy = (
        predict_serving(SERVICE, ServingLayout(), H100, CALIBRATION, rate).memory
        for rate in (0.01, capacity)
    )
    assert idle.needed_bytes < busy.needed_bytes <= busy.usable_bytes


def test_beyond_saturation_latency_is_infinite() -> None:
    predicted = predict_serving(SERVICE, ServingLayout(), H100, CALIBRATION, 1e4)
    assert math.isinf(predicted.ttft_seconds.mid)
    assert math.isinf(predicted.e2e_seconds.mid)
    assert math.isfinite(predicted.itl_seconds.mid)
    assert predicted.tokens_per_second is not None
    assert math.isfinite(predicted.tokens_per_second)


def test_a_model_that_only_reads_draws_power_while_it_reads() -> None:
    """A fifth of its limit while it waits, and all of it while it reads."""
    work = replace(service("BERT-base", (128, 128), (1, 1)), engine="custom")
    rate = 0.3 * capacity_requests_per_second(work, ServingLayout(), H100)
    at = state_at_rate(replica(work, ServingLayout(), H100, CALIBRATION), rate)
    assert at is not None
    busy = at.requests_per_second * at.prompt_service_seconds
    assert 0.1 < busy < 1.0
    found = predict_serving(work, ServingLayout(), H100, CALIBRATION, rate)
    assert found.power_watts == pytest.approx(H100.device.power_watts * (busy + 0.2 * (1 - busy)))


def test_generation_is_below_the_ridge_and_reading_above() -> None:
    one = predict_serving(SERVICE, ServingLayout(), H100, CALIBRATION, 0.1)
    assert one.arithmetic_intensity < 0.1 * one.ridge_point
    many = predict_serving(SERVICE, ServingLayout(), H100, CALIBRATION, 5.0)
    assert many.concurrency > 9
    assert many.arithmetic_intensity > 5 * one.arithmetic_intensity, "weights are read for all"
    reading = service("Llama-3.1-8B", (8000, 8000), (2, 2))
    layout = ServingLayout(max_model_tokens=16384)
    long = predict_serving(reading, layout, H100, CALIBRATION, 0.5)
    assert long.arithmetic_intensity > long.ridge_point


E2E_200_MS = (Target(Metric.E2E, 99, 0.2),)
ENCODER = Model("encoder-100m", Custom(100e6, 100e6, 22e9, 20e6))


@pytest.mark.parametrize(
    ("name", "lengths"),
    [
        pytest.param("BERT-base", (64, 128), id="BERT-base"),
        pytest.param(ENCODER, (1, 1), id="a user's encoder, 100 M"),
    ],
)
def test_a_small_encoder_meets_its_target_on_cpu(
    name: str | Model, lengths: tuple[float, float]
) -> None:
    work = service(name, lengths, (1, 1), E2E_200_MS)
    node = cpu_node("Xeon-8488C", 48, 192e9)
    layout = ServingLayout(cpu_cores=8, cpu_memory_bytes=8e9, max_num_seqs=16)
    assert capacity_requests_per_second(work, layout, node) > 20.0
    predicted = predict_serving(work, layout, node, CALIBRATION, 5.0)
    assert predicted.e2e_seconds.mid < 0.2
    assert predicted.memory.fits


def test_more_cores_serve_more() -> None:
    work = service("BERT-base", (64, 128), (1, 1), E2E_200_MS)
    node = cpu_node("Xeon-8488C", 48, 192e9)
    rates = [
        capacity_requests_per_second(
            work, ServingLayout(cpu_cores=cores, cpu_memory_bytes=8e9), node
        )
        for cores in (4, 8, 16, 32)
    ]
    assert rates == sorted(rates)
    assert rates[0] < rates[-1] / 4


def test_bert_large_offline_on_two_xeons() -> None:
    # MLPerf Inference v4.1, closed, offline, int8, 2x Xeon 8592+: 1667 samples/s of 178 tokens.
    work = replace(service("BERT-large", (178, 178), (1, 1)), engine="custom")
    node = cpu_node("Xeon-8592+", 128, 1024e9)
    layout = ServingLayout(
        cpu_cores=256, cpu_memory_bytes=900e9, weight_format="int8", max_batched_tokens=8192
    )
    rate = capacity_requests_per_second(work, layout, node)
    assert rate == pytest.approx(1667, rel=0.25)


@pytest.mark.parametrize(
    ("name", "device", "items_per_second"),
    [
        # MLPerf Inference v4.1 and v5.1, closed, medians per accelerator.
        pytest.param("SDXL-base", "H100-SXM5-80GB", 2.04, id="SDXL on H100"),
        pytest.param("SDXL-base", "H200-SXM-141GB", 2.08, id="SDXL on H200"),
        pytest.param("SDXL-base", "B200-SXM-180GB", 3.56, id="SDXL on B200"),
        pytest.param("SDXL-base", "L4", 0.252, id="SDXL on L4"),
        pytest.param("Whisper-large-v3", "H200-SXM-141GB", 67.1, id="Whisper on H200"),
        pytest.param("Whisper-large-v3", "L40S", 18.3, id="Whisper on L40S"),
        pytest.param("Whisper-large-v3", "L4", 5.5, id="Whisper on L4"),
    ],
)
def test_an_answer_is_all_of_its_passes(name: str, device: str, items_per_second: float) -> None:
    work = service(name, (1, 1), (1, 1))
    layout = ServingLayout(max_num_seqs=64 if name.startswith("Whisper") else 8)
    rate = capacity_requests_per_second(work, layout, machine(device))
    assert rate == pytest.approx(items_per_second, rel=0.4)


@pytest.mark.parametrize(
    ("device", "samples_per_second"),
    [
        # MLPerf Inference v4.1, closed, offline, bert-99.9: in 8 bits, so an upper bound of bf16.
        pytest.param("H100-SXM5-80GB", 7769, id="H100-SXM"),
        pytest.param("H100-PCIe-80GB", 4939, id="H100-PCIe"),
    ],
)
def test_an_encoder_is_bound_by_the_device(device: str, samples_per_second: float) -> None:
    work, layout = service("BERT-large", (178, 178), (1, 1)), ServingLayout(max_batched_tokens=8192)
    rate = capacity_requests_per_second(work, layout, machine(device))
    assert 0.5 * samples_per_second < rate < samples_per_second
    half = capacity_requests_per_second(work, layout, machine("L4"))
    assert half < rate / 5


def test_one_image_is_classified_within_milliseconds() -> None:
    target = (Target(Metric.E2E, 99, 0.015),)
    work = service("ResNet-50", (1, 1), (1, 1), target)
    alone = predict_serving(work, ServingLayout(), H100, CALIBRATION, 1.0)
    assert 0.001 < alone.e2e_seconds.mid < 0.005
    # MLPerf Inference v4.1, server, int8 and no network: 78,181 a second.
    assert 20_000 < alone.capacity_requests_per_second < 78_181
