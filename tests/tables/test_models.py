from __future__ import annotations

import pytest

from poolwise.errors import TableError
from poolwise.tables import models
from poolwise.tables.reading import parse_rows

CELLS = {
    "name": "mine",
    "kind": "cnn",
    "parameters": "1e6",
    "active_parameters": "1e6",
    "counts_from": "shape",
    "native_format": "bf16",
    "forward_flops_per_item": "1e9",
    "source": "a paper",
}


def rows(*changes: dict[str, str]) -> tuple[models.ModelRow, ...]:
    cells = [CELLS | change for change in changes]
    header = list(cells[0])
    lines = [",".join(header), *(",".join(each[column] for column in header) for each in cells)]
    return parse_rows(models.FILE, lines, models.ModelRow)


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("llama-3.1-8b", "Llama-3.1-8B"),
        ("meta-llama/Llama-3.1-8B", "Llama-3.1-8B"),
        ("META-LLAMA/Llama-3.1-8B-Instruct", "Llama-3.1-8B"),
        ("deepseek-r1", "DeepSeek-V3"),
        ("resnet50", "ResNet-50"),
        ("LLAMA3.1_405B", "Llama-3.1-405B"),
        ("llama2-70b-99.9", "Llama-2-70b-hf"),
        ("Qwen3_235B_a22B", "Qwen3-235B-A22B"),
        ("DeepSeekV3", "DeepSeek-V3"),
        ("GPT OSS 120B", "gpt-oss-120b"),
        ("gptj-99", "GPT-J-6B"),
        ("deepseek3-671b", "DeepSeek-V3"),
        ("unsloth/Llama-3.1-8B", "Llama-3.1-8B"),
        ("zai-org/GLM-4.7", "GLM-4.6"),
        ("deepseek-ai/DeepSeek-R1-Distill-Qwen-32B", "Qwen2.5-32B"),
    ],
)
def test_every_spelling_leads_to_its_row(spelling: str, name: str) -> None:
    row = models.load().find(spelling)
    assert row is not None
    assert row.name == name


def test_counts_are_plain_numbers() -> None:
    row = models.load().find("llama-3.1-70b")
    assert row is not None
    assert row.parameters == 70.6e9


def test_another_organisation_s_unknown_model_is_none_of_ours() -> None:
    assert models.load().find("unsloth/Mystery-7B") is None
    assert models.load().find("unsloth/") is None


@pytest.mark.parametrize(
    ("name", "layers", "windowed", "tokens"),
    [
        ("gpt-oss-120b", 36, 18, 128),
        ("phi-3-mini", 32, None, 2047),
        ("gemma-3-27b", 62, 52, 1024),
        ("llama-4-maverick", 48, 36, 8192),
        ("OLMo-3-32B", 64, 48, 4096),
        ("Step-3.7-Flash", 45, 33, 512),
    ],
)
def test_windows_are_those_of_the_layers_that_have_one(
    name: str, layers: int, windowed: int | None, tokens: int
) -> None:
    row = models.load().find(name)
    assert row is not None
    assert (row.layers, row.windowed_layers) == (layers, windowed)
    assert row.sliding_window_tokens == tokens


@pytest.mark.parametrize(
    ("name", "width"),
    [("Nemotron-3-Nano", 3712), ("Nemotron-3-Super", 5376), ("Qwen1.5-MoE-A2.7B", 5632)],
)
def test_shared_experts_are_as_wide_as_config_json_has_them(name: str, width: int) -> None:
    """One shared expert that is wider than a routed one stands as several."""
    row = models.load().find(name)
    assert row is not None
    assert row.shared_experts is not None
    assert row.expert_ffn is not None
    assert row.shared_experts * row.expert_ffn == width


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"kind": "gnn"}, "kind: Input should be 'decoder'"),
        ({"layers": "two"}, "layers: Input should be a valid integer"),
        ({"layers": "2"}, "has layers, but not the whole shape"),
        ({"parameters": "-1"}, "parameters: Input should be greater than 0"),
        ({"forward_flops_per_item": ""}, "has neither layers nor forward_flops_per_item"),
        ({"serving_flops_per_item": "1e9"}, "has one of serving_flops_per_item and"),
    ],
    ids=str,
)
def test_a_malformed_row_is_refused(change: dict[str, str], sentence: str) -> None:
    with pytest.raises(TableError, match=sentence):
        rows(change)


def test_two_rows_of_one_name_are_refused() -> None:
    with pytest.raises(TableError, match="names both"):
        models.Models(rows({}, {"name": "MINE"}))


def test_a_model_is_as_long_as_its_positions_and_not_as_its_window() -> None:
    """litgpt, from which most rows are, stops Mistral-7B-v0.1 at the window that it lacks."""
    row = models.load().find("mistral-7b")
    assert row is not None
    assert row.sliding_window_tokens == 4096
    assert row.max_context_tokens == 32768
