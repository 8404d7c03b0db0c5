from __future__ import annotations

from dataclasses import replace

import pytest

from poolwise.model import presets, transformer
from poolwise.model.shapes import Custom, Model, Transformer
from poolwise.tables import models
from tests.model.counted import forward_flops_per_token
from tests.model.shapes import preset

COUNTED_DIFFERENTLY = {
    "falcon-7b": "7.2 B counts the tied output matrix a second time",
    "falcon-40b": "41.8 B counts the tied output matrix a second time",
    "Llama-4-Scout-17B-16E-Instruct": "109 B includes the vision tower",
    "OPT-13B": "13 B is rounded from 12.85",
    "BERT-base": "110 M includes positions, pooler and biases",
    "ViT-B/16-224": "86.6 M includes patch embedding, positions and classifier",
}
SHAPED = [row for row in models.load() if row.layers]


@pytest.mark.parametrize("row", SHAPED, ids=lambda row: row.name)
def test_parameters_meet_the_published_count(row: models.ModelRow) -> None:
    counted = transformer.parameters(preset(row.name)).total
    tolerance = 0.045 if row.name in COUNTED_DIFFERENTLY else 0.01
    assert counted == pytest.approx(row.parameters, rel=tolerance)


@pytest.mark.parametrize(
    ("name", "active"),
    [
        ("mixtral-8x7b", 12.9e9),
        ("mixtral-8x22b", 39.1e9),
        ("deepseek-v3", 37e9),
        ("deepseek-v2", 21e9),
        ("qwen3-30b-a3b", 3.3e9),
        ("qwen3-235b-a22b", 22e9),
        ("kimi-k2", 32.6e9),
        ("llama-4-maverick", 17e9),
        ("nemotron-3-super", 12e9),
        ("dbrx", 36.5e9),
        ("qwen2-57b-a14b", 14.2e9),
        ("ling-flash-2.0", 6.1e9),
        ("olmoe-1b-7b", 1.28e9),
        ("deepseek-moe-16b", 2.83e9),
    ],
)
def test_active_parameters_meet_the_published_count(name: str, active: float) -> None:
    assert transformer.parameters(preset(name)).active == pytest.approx(active, rel=0.02)


@pytest.mark.parametrize(
    ("name", "tokens", "flops"),
    [
        pytest.param("gpt-3-175b", 300e9, 3.14e23, id="GPT-3 paper, table D.1"),
        pytest.param("llama-3.1-405b", 15.6e12, 3.8e25, id="Llama 3 report, section 3.2"),
        pytest.param("deepseek-v3", 14.8e12, 6 * 37e9 * 14.8e12, id="DeepSeek-V3, 6ND active"),
    ],
)
def test_training_flops_meet_published_totals(name: str, tokens: float, flops: float) -> None:
    per_token = forward_flops_per_token(preset(name), 2048)
    without_attention = sum(per_token.values()) - per_token["attention"]
    assert 3 * tokens * without_attention == pytest.approx(flops, rel=0.02)


def test_flops_meet_the_formula_of_megatron() -> None:
    """arXiv 2104.04473: 96*s*L*h^2*(1 + s/6h + V/16Lh), with the layers' recomputation.

    Without it the layers count three times instead of four, and so the head's V/16 is V/12.
    """
    model = preset("gpt-3-175b")
    shape = model.shape
    assert isinstance(shape, Transformer)
    s, h, layers = 2048, shape.hidden, shape.layers
    published = 72 * layers * h**2 * (1 + s / (6 * h) + shape.vocab / (12 * layers * h))
    bidirectional = replace(model, shape=replace(shape, is_decoder=False))
    counted = 3 * sum(forward_flops_per_token(bidirectional, s).values())
    assert counted == pytest.approx(published, rel=0.001)


@pytest.mark.parametrize(
    ("name", "gflops"), [("vit-b-16", 35.2), ("vit-l-16", 123.2), ("vit-h-14", 334.4)]
)
def test_flops_meet_published_figures_of_vision_transformers(name: str, gflops: float) -> None:
    model = preset(name)
    tokens = model.max_context_tokens
    assert tokens is not None
    counted = tokens * sum(forward_flops_per_token(model, tokens).values())
    assert counted / 1e9 == pytest.approx(gflops, rel=0.02)


def test_a_window_that_covers_the_sequence_changes_nothing() -> None:
    shape = Transformer(2, 64, 256, 4, 4, 16, 1000, sliding_window=512)
    open_shape = replace(shape, sliding_window=None)
    assert transformer.attended_keys(shape, 512) == transformer.attended_keys(open_shape, 512)
    assert transformer.attended_keys(shape, 2048) < transformer.attended_keys(open_shape, 2048)


def test_causal_attention_is_half_of_bidirectional() -> None:
    shape = Transformer(2, 64, 256, 4, 4, 16, 1000)
    both_ways = replace(shape, is_decoder=False)
    causal = transformer.attended_keys(shape, 4096)
    assert 2 * causal == transformer.attended_keys(both_ways, 4096)


def test_a_custom_model_is_its_counts() -> None:
    model = Model("mine", Custom(30e6, 25e6, 4.1e9, 9e7))
    count = transformer.parameters(model)
    assert (count.total, count.active) == (30e6, 25e6)


@pytest.mark.parametrize(
    ("total", "active"), [(8e9, 8e9), (70e9, 70e9), (230e9, 10e9)], ids=["8 B", "70 B", "sparse"]
)
def test_a_usual_shape_has_the_stated_counts(total: float, active: float) -> None:
    model = presets.generic("unknown", total, active)
    counted = transformer.parameters(model)
    assert counted.total == pytest.approx(total, rel=0.01)
    assert counted.active == pytest.approx(active, rel=0.01)
    assert isinstance(model.shape, Transformer)
    assert (model.shape.experts is not None) == (active < total)
