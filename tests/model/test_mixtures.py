"""Mixtures of experts of which only two counts are known."""

from __future__ import annotations

import statistics

import pytest

from poolwise.errors import InvalidInput
from poolwise.model import mixtures, presets
from poolwise.model.shapes import Experts, Model, Transformer
from poolwise.model.transformer import Parameters, parameters
from poolwise.tables import load
from poolwise.tables.models import ModelRow

KNOWN = [row for row in load().models if row.experts and row.layers]
COUNTS = [
    pytest.param(671e9, 37e9, id="DeepSeek-V3"),
    pytest.param(116.8e9, 5.1e9, id="gpt-oss-120b"),
    pytest.param(1000e9, 32e9, id="Kimi-K2"),
    pytest.param(400e9, 17e9, id="Maverick"),
    pytest.param(80e9, 3e9, id="80 B, 3 B active"),
    pytest.param(46.7e9, 12.9e9, id="Mixtral"),
    pytest.param(100e9, 26e9, id="a quarter active"),
    pytest.param(10e9, 8.5e9, id="most of it active"),
    pytest.param(1000e9, 1e9, id="hardly any active"),
    pytest.param(0.5e9, 0.1e9, id="a small one"),
]


@pytest.mark.parametrize(("total", "active"), COUNTS)
def test_everything_beside_the_experts_is_a_positive_share_as_published(
    total: float, active: float
) -> None:
    counted = parameters(presets.generic("unknown", total, active))
    assert (counted.total, counted.active) == pytest.approx((total, active))
    assert min(counted.attention, counted.router, counted.norms, counted.experts) > 0.0
    assert _rest(counted) >= mixtures.LEAST_REST


@pytest.mark.parametrize("row", KNOWN, ids=lambda row: row.name)
def test_a_known_mixture_keeps_about_its_own_share_with_only_its_counts(row: ModelRow) -> None:
    own = parameters(presets.model(row))
    told = parameters(presets.generic("unknown", own.total, own.active))
    assert abs(_rest(told) - _rest(own)) < 0.55
    assert told.experts == pytest.approx(own.experts, rel=0.12)


def test_the_usual_cut_is_that_of_the_shipped_table() -> None:
    fine = [row for row in KNOWN if (row.experts or 0) > mixtures.FEW_EXPERTS]
    coarse = [row for row in KNOWN if row not in fine]
    rests = [_rest(parameters(presets.model(row))) for row in fine]
    assert statistics.median(rests) == pytest.approx(mixtures.USUAL_REST, abs=0.04)
    assert statistics.mode(row.experts_per_token for row in fine) == mixtures.USUAL_TOP_K
    assert {(row.experts, row.experts_per_token) for row in coarse} == {
        (mixtures.FEW_EXPERTS, mixtures.FEW_TOP_K)
    }
    least = min(_rest(parameters(presets.model(row))) for row in KNOWN)
    assert least == pytest.approx(mixtures.LEAST_REST, abs=0.003)


@pytest.mark.parametrize("billions", [0.01, 0.1, 0.5, 1.0, 3.0, 8.0])
def test_a_small_dense_model_keeps_parameters_beside_its_embeddings(billions: float) -> None:
    counted = parameters(presets.generic("unknown", billions * 1e9, billions * 1e9))
    assert counted.total == pytest.approx(billions * 1e9)
    assert min(counted.attention, counted.mlp) > 0.0


def test_counts_that_leave_nothing_for_the_layers_are_refused() -> None:
    shape = Transformer(61, 7168, 18432, 128, 128, 128, 129280, experts=Experts(128, 8, 0, 2048, 0))
    for total, active in ((671e9, 37e9), (37e9, 671e9)):
        with pytest.raises(InvalidInput, match="leave none for its layers"):
            parameters(Model("mine", shape, None, "bf16", total, active))


def _rest(counted: Parameters) -> float:
    """What no expert has, over the active count."""
    return (counted.total - counted.experts) / counted.active
