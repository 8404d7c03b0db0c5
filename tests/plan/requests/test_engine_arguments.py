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


def test_run_args_count_as_well() -> None:
    assert _request([], run={"args": ["-tp=2"]}).fixed.tensor == 2


def test_what_flags_and_spec_rule_out_together_is_told_of_the_flags() -> None:
    with pytest.raises(InvalidInput, match=r"spec\.engine\.args: tensor x pipeline must be acc"):
        _request(["-tp=4"], accelerators={"perReplica": 2})
    with pytest.raises(InvalidInput, match=r"spec\.engine\.args: must be at most the 131072 t"):
        _request(["--max-model-len=999999"])
