"""Flags of the user's that say how large a replica is."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poolwise.errors import InvalidInput
from poolwise.plan.requests.engine_arguments import EngineArguments, read_arguments
from poolwise.plan.requests.request import ServingRequest
from tests.plan.requests.test_requests import SERVICE, changed, read


def _request(arguments: list[str], **fields: Any) -> ServingRequest:
    document = changed(SERVICE, "engine", {"args": arguments, **fields.pop("engine", {})})
    for path, value in fields.items():
        document = changed(document, path.replace("__", "."), value)
    request: ServingRequest = read(document).request
    return request


@pytest.mark.parametrize(
    ("engine", "arguments"),
    [
        ("vllm", ["--tensor-parallel-size=4", "--pipeline-parallel-size", "2"]),
        ("vllm", ["-tp", "4", "-pp=2", "--enforce-eager"]),
        ("sglang", ["--tp-size", "4", "--pp-size=2"]),
        ("sglang", ["--tp", "4", "--pipeline-parallel-size", "2"]),
    ],
)
def test_sizes_are_read_in_every_spelling(engine: str, arguments: list[str]) -> None:
    assert read_arguments(arguments, engine) == EngineArguments(4, 2)


def test_shards_of_an_engine_without_stages_are_read() -> None:
    assert read_arguments(["--num-shard", "2"], "tgi") == EngineArguments(2)


def test_a_flag_of_one_engine_says_nothing_to_another() -> None:
    assert read_arguments(["--tp-size=4", "--context-length=9"], "vllm") == EngineArguments()
    assert read_arguments(["--tensor-parallel-size=4"], "custom") == EngineArguments()


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("4096", 4096), ("8k", 8000), ("8K", 8192), ("1.5k", 1500), ("1M", 2**20),
        ("auto", None), ("-1", None), ("0", None), ("", None), ("$(LONGEST)", None),
        ("9" * 5000, None),
    ],
)  # fmt: skip
def test_the_longest_context_is_read_where_it_is_a_number(text: str, tokens: int | None) -> None:
    assert read_arguments([f"--max-model-len={text}"], "vllm").max_model_tokens == tokens


@pytest.mark.parametrize("text", ["fp8", "fp8_e5m2", "fp8_e4m3"])
def test_a_cache_in_fp8_is_one(text: str) -> None:
    assert read_arguments(["--kv-cache-dtype", text], "vllm").kv_format == "fp8"


@pytest.mark.parametrize("text", ["auto", "bfloat16", ""])
def test_any_other_cache_has_16_bits(text: str) -> None:
    assert read_arguments(["--kv-cache-dtype", text], "vllm").kv_format == "bf16"


@pytest.mark.parametrize("text", ["four", "0", "-2", "", "4.0", "9" * 5000])
def test_a_size_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"spec\.engine\.args: --tensor-parallel-size must be a"):
        read_arguments([f"--tensor-parallel-size={text}"], "vllm")


@pytest.mark.parametrize(
    ("engine", "sequences", "tokens"),
    [
        ("vllm", "--max-num-seqs", "--max-num-batched-tokens"),
        ("vllm", "--max_num_seqs", "--max_num_batched_tokens"),
        ("sglang", "--max-running-requests", "--chunked-prefill-size"),
    ],
)
def test_the_batch_is_read(engine: str, sequences: str, tokens: str) -> None:
    told = read_arguments([f"{sequences}=64", tokens, "4096"], engine)
    assert told == EngineArguments(max_num_seqs=64, max_batched_tokens=4096)


def test_prompts_that_are_not_cut_say_nothing_of_a_step() -> None:
    assert read_arguments(["--chunked-prefill-size", "-1"], "sglang") == EngineArguments()


def test_a_step_that_is_too_small_for_its_sequences_is_refused_as_vllm_does() -> None:
    arguments = ["--max-num-seqs=512", "--max-num-batched-tokens=256"]
    with pytest.raises(InvalidInput, match=r"--max-num-batched-tokens must be at least --max-num"):
        read_arguments(arguments, "vllm")
    assert read_arguments(["--max-num-seqs=512", "--max-num-batched-tokens=512"], "vllm")
    assert read_arguments(
        ["--max-running-requests=512", "--chunked-prefill-size=256"], "sglang"
    ) == EngineArguments(max_num_seqs=512, max_batched_tokens=256)


@pytest.mark.parametrize(
    ("engine", "flag"),
    [
        ("vllm", "--gpu-memory-utilization"),
        ("sglang", "--mem-fraction-static"),
        ("tgi", "--cuda-memory-fraction"),
    ],
)
def test_the_share_of_the_memory_is_read(engine: str, flag: str) -> None:
    for text, share in (("0.85", 0.85), (".5", 0.5), ("1", 1.0), ("1.0", 1.0)):
        assert read_arguments([flag, text], engine).memory_fraction == share
    for text in ("90", "0", "0.0", "-0.5", "", "half", "nan", "9" * 5000):
        with pytest.raises(InvalidInput, match=f"{flag} must be above 0 and at most 1, is "):
            read_arguments([f"{flag}={text}"], engine)


@pytest.mark.parametrize(
    ("engine", "arguments"),
    [("vllm", ["--quantization=fp8"]), ("vllm", ["-q", "fp8"]), ("tgi", ["--quantize", "fp8"])],
)
def test_weights_made_fp8_at_the_start_are_planned_as_such(
    engine: str, arguments: list[str]
) -> None:
    assert read_arguments(arguments, engine) == EngineArguments(quantization="fp8")
    assert _request(arguments, engine={"type": engine}).fixed.quantization == "fp8"


def test_formats_that_a_checkpoint_brings_are_left_to_the_spec() -> None:
    fields = {"model": {"preset": "Llama-3.1-8B", "quantization": "int4"}}
    assert _request(["--quantization=awq"], **fields).fixed.quantization == "int4"


@pytest.mark.parametrize(
    ("engine", "flag"),
    [("vllm", "--data-parallel-size"), ("vllm", "-dp"), ("sglang", "--dp-size")],
)
def test_groups_that_want_accelerators_of_their_own_are_refused(engine: str, flag: str) -> None:
    with pytest.raises(InvalidInput, match=f"args: {flag} must be 1, since Poolwise scales rep"):
        read_arguments([flag, "2"], engine)
    assert read_arguments([flag, "1"], engine) == EngineArguments()


def test_groups_that_share_the_accelerators_are_left_to_the_engine() -> None:
    arguments = ["--tp-size=8", "--dp-size=8", "--enable-dp-attention"]
    assert read_arguments(arguments, "sglang") == EngineArguments(tensor=8)


@given(st.lists(st.text(max_size=20), max_size=8), st.sampled_from(["vllm", "sglang", "tgi"]))
def test_no_arguments_raise_anything_else(arguments: list[str], engine: str) -> None:
    with contextlib.suppress(InvalidInput):
        read_arguments(arguments, engine)


def test_flags_win_over_the_spec_as_they_do_in_the_pod() -> None:
    request = _request(
        ["--tensor-parallel-size=4", "--max-model-len=4096"], parallelism={"tensor": 2}
    )
    assert (request.fixed.tensor, request.work.max_model_tokens) == (4, 4096)
    assert _request([], parallelism={"tensor": 2}).fixed.tensor == 2


def test_flags_of_a_replica_reach_its_plan() -> None:
    arguments = ["--max-num-seqs=64", "--max-num-batched-tokens=1k", "--gpu-memory-utilization=.8"]
    request = _request(arguments)
    fixed, work = request.fixed, request.work
    assert (fixed.max_num_seqs, fixed.max_batched_tokens, work.memory_fraction) == (64, 1000, 0.8)


def test_run_args_count_as_well() -> None:
    assert _request([], run={"args": ["-tp=2"]}).fixed.tensor == 2


def test_what_flags_and_spec_rule_out_together_is_told_of_the_flags() -> None:
    with pytest.raises(InvalidInput, match=r"spec\.engine\.args: tensor x pipeline must be acc"):
        _request(["-tp=4"], accelerators={"perReplica": 2})
    with pytest.raises(InvalidInput, match=r"spec\.engine\.args: must be at most the 131072 t"):
        _request(["--max-model-len=999999"])
