"""Grouped products of routed experts: their formats, their padding and their slices."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from poolwise.model.serving.costs import step_costs
from poolwise.model.serving.experts import (
    BLOCK_SCALED,
    EXPANDED,
    EXPANDED_TILE_ROWS,
    expert_format,
    fullest_of,
)
from poolwise.model.serving.iteration import Products
from poolwise.model.work import ServingLayout
from tests.model.serving_cases import CALIBRATION, machine, service

H100, B200, A100 = (
    machine(name) for name in ("H100-SXM5-80GB", "B200-SXM-180GB", "A100-SXM4-80GB")
)
SPARSE = service("deepseek-r1", (1000, 1000), (500, 500))


@pytest.mark.parametrize(
    ("model", "weight_format", "where", "expected"),
    [
        pytest.param("mixtral-8x7b", "fp8", H100, "fp8", id="one scale"),
        pytest.param("deepseek-r1", "fp8", H100, BLOCK_SCALED, id="trained in blocks"),
        pytest.param("deepseek-r1", "nvfp4", B200, "fp4", id="quantised further"),
        pytest.param("gpt-oss-120b", "mxfp4", B200, "mxfp4", id="mixed operands"),
        pytest.param("gpt-oss-120b", "mxfp4", H100, EXPANDED, id="no unit for four bits"),
        pytest.param("deepseek-r1", "fp8", A100, EXPANDED, id="no unit for eight bits"),
        pytest.param("mixtral-8x7b", "fp16", A100, "bf16", id="sixteen bits"),
    ],
)
def test_kernels_of_experts_differ_by_format(model, weight_format, where, expected) -> None:
    work = service(model, (1000, 1000), (500, 500))
    layout = ServingLayout(tensor=8, weight_format=weight_format)
    assert expert_format(work, layout, where.device) == expected
    assert CALIBRATION.find("serving", "expert_compute", where.device, expected) is not None


def padded_rows(model: str, weight_format: str, where) -> float:
    """Rows that one expert's group gets, whatever share of the experts a token takes."""
    work = service(model, (1000, 1000), (500, 500))
    layout = ServingLayout(tensor=8, weight_format=weight_format)
    experts = step_costs(work, layout, where, CALIBRATION).experts
    return experts.padding_rows * (1.0 - experts.idle_share)


def test_kernels_that_expand_weights_take_small_groups() -> None:
    assert padded_rows("gpt-oss-120b", "mxfp4", H100) == pytest.approx(EXPANDED_TILE_ROWS)
    native = padded_rows("gpt-oss-120b", "mxfp4", B200)
    assert native == pytest.approx(padded_rows("deepseek-r1", "nvfp4", B200))
    assert native > EXPANDED_TILE_ROWS


def experts_of(expert: int, tensor: int = 8) -> Products:
    layout = ServingLayout(tensor=tensor, expert=expert, weight_format="fp8")
    return step_costs(SPARSE, layout, H100, CALIBRATION).experts


def read_seconds(experts: Products, rows: float) -> float:
    """Weights alone: arithmetic and activations take no time."""
    return replace(experts, row_seconds=0.0, row_traffic_seconds=0.0).split(rows)[0]


@pytest.mark.parametrize(("devices", "expected"), [(1, 0.0), (2, 0.564), (8, 1.424), (32, 2.07)])
def test_the_fullest_of_some_devices(devices: int, expected: float) -> None:
    """Means of the largest of so many normal variates, as tables have them."""
    assert fullest_of(devices) == pytest.approx(expected, abs=0.03)


def test_rows_are_as_uneven_as_draws_with_a_chance_of_one_of_each_device() -> None:
    """Of r rows with 8 choices each, every one of 8 devices gets a share of 1/8; its deviation is
    sqrt(7 / (8 r)) of that."""
    assert experts_of(expert=8).row_unevenness == pytest.approx(fullest_of(8) * math.sqrt(7 / 8))


def test_few_rows_find_whole_experts_unevenly_spread() -> None:
    """As many draws show: 4 tokens with 8 of 256 experts each, on 8 devices of 32."""
    draw = np.random.default_rng(7)
    fullest = [
        max(len(set(here)) for here in devices_of(draw, rows=4, experts=256, chosen=8, devices=8))
        for _ in range(2000)
    ]
    experts = experts_of(expert=8)
    mean = read_seconds(replace(experts, row_unevenness=0.0), 4.0)
    expected = float(np.mean(fullest)) / (256 / 8 * (1 - (1 - 8 / 256) ** 4))
    assert read_seconds(experts, 4.0) / mean == pytest.approx(expected, rel=0.05)


def devices_of(
    draw: np.random.Generator, rows: int, experts: int, chosen: int, devices: int
) -> list[list[int]]:
    """Experts that each device is asked for."""
    found: list[list[int]] = [[] for _ in range(devices)]
    for _ in range(rows):
        for expert in draw.choice(experts, chosen, replace=False):
            found[int(expert) * devices // experts].append(int(expert))
    return found


def test_many_rows_are_even_and_cut_experts_always() -> None:
    whole, cut = experts_of(expert=8), experts_of(expert=1)
    assert read_seconds(whole, 1e4) == pytest.approx(read_seconds(cut, 1e4))
    assert read_seconds(whole, 4.0) > 1.3 * read_seconds(cut, 4.0)
    assert cut.row_unevenness == cut.touched_unevenness == 0.0


@given(rows=st.floats(1.0, 4096.0), more=st.floats(1.001, 2.0))
def test_more_rows_never_take_less(rows: float, more: float) -> None:
    experts = experts_of(expert=8)
    assert sum(experts.split(rows * more)) >= sum(experts.split(rows))


@pytest.mark.parametrize(("name", "is_slower"), [("deepseek-r1", True), ("llama-3.1-70b", False)])
def test_engines_of_2025_launched_more_kernels_of_experts(name: str, is_slower: bool) -> None:
    work, layout = service(name, (1000, 1000), (500, 500)), ServingLayout(tensor=8)

    def latency_seconds(year: float | None) -> float:
        of_year = replace(work, software_year=year)
        return step_costs(of_year, layout, H100, CALIBRATION).latency_seconds

    old, between, new = latency_seconds(2025.5), latency_seconds(2026.0), latency_seconds(2026.5)
    assert new == latency_seconds(None)
    assert (old > between > new) if is_slower else (old == between == new)
