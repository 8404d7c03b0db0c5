"""Triton tells each of its models apart: which one counts."""

import math

import pytest

from poolwise.plan.signals.adapters import read
from poolwise.plan.signals.sample import Histogram, Sample
from tests.plan.signals import texts


def told(text: str, engine: str = "triton") -> Sample:
    found = read(text, engine, "pod-a", 0.0)
    assert isinstance(found, Sample), found
    return found


def model(name: str, requests: int, seconds: float | None = None, in_time: int | None = None,
          pending: int = 0) -> str:  # fmt: skip
    """What Triton itself tells of one."""
    labels = f'model="{name}",version="1"'
    lines = f"nv_inference_request_success{{{labels}}} {requests}\n"
    lines += f"nv_inference_pending_request_count{{{labels}}} {pending}\n"
    if seconds is not None:
        lines += f"nv_inference_request_duration_us{{{labels}}} {seconds * 1e6}\n"
    if in_time is not None:
        name = "nv_inference_first_response_histogram_ms"
        lines += texts.family(name, {"500": in_time, "+Inf": requests}, 6500, labels)
    return lines


def running(name: str, requests: int) -> str:
    """What TensorRT-LLM tells of a model that generates."""
    labels = f'model="{name}",request_type="active",version="1"'
    return f"nv_trt_llm_request_metrics{{{labels}}} {requests}\n"


def test_an_ensemble_counts_each_request_once():
    """Its tokenisers answer at once, one of them for each token."""
    text = (
        model("preprocessing", 100, 1.0, in_time=100)
        + model("postprocessing", 20_000, 9.0, in_time=20_000)
        + model("ensemble", 100, 700.0, in_time=0)
        + model("tensorrt_llm", 100, 650.0, in_time=0)
        + running("tensorrt_llm", 3)
    )
    sample = told(text)
    assert (sample.running, sample.finished_requests) == (3, 100)
    assert sample.ttft_seconds == Histogram((0.5, math.inf), (0, 100), 6.5)


def test_requests_by_two_fronts_are_those_of_the_model_that_generates():
    """The ensemble and the script that calls the same parts."""
    text = (
        model("ensemble", 40, 300.0)
        + model("tensorrt_llm_bls", 60, 400.0)
        + model("tensorrt_llm", 100, 650.0)
        + running("tensorrt_llm", 3)
    )
    assert told(text).finished_requests == 100


def test_a_draft_model_is_none_of_the_requests():
    text = (
        model("tensorrt_llm", 100, 650.0)
        + model("tensorrt_llm_draft", 900, 90.0)
        + running("tensorrt_llm", 3)
        + running("tensorrt_llm_draft", 1)
    )
    sample = told(text)
    assert (sample.running, sample.finished_requests) == (3, 100)


@pytest.mark.parametrize("seconds", [True, False])
def test_without_tensorrt_llm_the_front_counts(seconds):
    """By its times, which hold those of all parts; else by what is called at least once."""
    text = (
        model("a_tokenizer", 150, 1.0 if seconds else None, pending=7)
        + model("the_classifier", 150, 80.0 if seconds else None, pending=9)
        + model("whole", 100, 90.0 if seconds else None, pending=2)
        + model("zero", 0, 0.0 if seconds else None)
    )
    sample = told(text)
    assert (sample.finished_requests, sample.waiting) == (100, 2)


def test_what_the_first_model_does_not_tell_is_of_the_next():
    """Times to a first response are told of models that stream alone."""
    text = model("front", 100, 90.0) + model("engine", 100, 80.0, in_time=30) + model("x", 100, 1.0)
    assert told(text).ttft_seconds == Histogram((0.5, math.inf), (30, 100), 6.5)


def test_what_is_told_of_the_server_and_of_no_model_counts_beside_one():
    text = model("front", 100, 90.0) + model("engine", 100, 80.0)
    sample = told(text + 'nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="fraction"} 0.4\n')
    assert (sample.finished_requests, sample.kv_cache_usage) == (100, 0.4)


def test_versions_of_one_model_are_summed():
    text = model("m", 100, 90.0) + model("m", 10, 1.0).replace('version="1"', 'version="2"')
    assert told(text).finished_requests == 110


def test_a_model_that_is_alone_and_one_without_a_name():
    assert told(model("m", 100)).finished_requests == 100
    assert told("nv_inference_request_success 100\n").finished_requests == 100
    assert told(texts.TRITON).finished_requests == 10
    assert told(texts.TRTLLM_SERVE).running == 3


@pytest.mark.parametrize("engine", ["triton", "custom"])
def test_the_vllm_backend_tells_as_vllm_does_and_triton_counts(engine):
    """Its metrics lack a counter of requests that ended; Triton has it."""
    own = (
        'vllm:num_requests_running{model="m",version="1"} 7\n'
        'vllm:num_requests_waiting{model="m",version="1"} 2\n'
        'vllm:gpu_cache_usage_perc{model="m",version="1"} 0.25\n'
        'vllm:prompt_tokens_total{model="m",version="1"} 1000\n'
    ) + texts.family("vllm:time_to_first_token_seconds", {"0.5": 4, "+Inf": 10}, 6.5, 'model="m"')
    sample = told(own + model("m", 10, 90.0, in_time=9, pending=5), engine)
    assert (sample.running, sample.waiting, sample.kv_cache_usage) == (7, 2, 0.25)
    assert (sample.finished_requests, sample.prompt_tokens) == (10, 1000)
    assert sample.ttft_seconds == Histogram((0.5, math.inf), (4, 10), 6.5)


def test_vllm_that_tells_all_is_not_mixed_with_what_wraps_it():
    sample = told(texts.VLLM_NEW + model("m", 999, 90.0, in_time=9))
    assert sample == told(texts.VLLM_NEW, "vllm")
