from __future__ import annotations

import math
from dataclasses import replace

import pytest

from poolwise.errors import InvalidInput
from poolwise.model.efficiency import Provenance
from poolwise.model.hardware import Device
from poolwise.model.kernels.attention import Decode, Prefill
from poolwise.model.kernels.constants import Software
from poolwise.model.kernels.experts import Experts, Routing
from poolwise.model.kernels.gemm import Gemm
from poolwise.model.kernels.precision import PRECISIONS, speeds
from poolwise.model.kernels.predicting import Kernel, kernel_seconds, predict
from poolwise.model.prediction import Interval
from tests.model.training_cases import CALIBRATION, machine

VLLM = Software("vllm")
PROMPT = Prefill(4, 4096, 32, 8, 128, window=None, kv_bytes=2.0)
STEP = Decode(64, 4096, 32, 8, 128, window=None, kv_bytes=2.0)
EXPERTS = Experts(256, 7168, 2048, 3, 8, 256, tensor=1, parallel=8, alpha=None)


def device(name: str = "H100-SXM5-80GB") -> Device:
    return machine(name).device


def seconds(kernel: Kernel, name: str = "H100-SXM5-80GB", precision: str = "bf16") -> float:
    return kernel_seconds(kernel, device(name), PRECISIONS[precision], VLLM, CALIBRATION)


def test_a_large_product_reaches_its_measured_ceiling() -> None:
    """794 TFLOP/s on H100 (the matmul ceiling of the handbook), give or take an engine."""
    side = 16384
    reached = 2.0 * side**3 / seconds(Gemm(side, side, side))
    assert reached == pytest.approx(794e12, rel=0.15)


def test_a_small_batch_waits_for_weights() -> None:
    weights = 8192 * 28672 * 2.0
    assert seconds(Gemm(1, 28672, 8192)) == pytest.approx(weights / 3.35e12 / 0.85, rel=0.25)
    assert seconds(Gemm(16, 28672, 8192)) < 1.25 * seconds(Gemm(1, 28672, 8192))


@pytest.mark.parametrize(
    ("smaller", "larger"),
    [
        pytest.param(Gemm(64, 4096, 4096), Gemm(8192, 4096, 4096), id="rows"),
        pytest.param(PROMPT, replace(PROMPT, tokens=8192), id="tokens"),
        pytest.param(replace(PROMPT, window=512), PROMPT, id="window of a prompt"),
        pytest.param(STEP, replace(STEP, context=16384), id="context"),
        pytest.param(replace(STEP, window=512), STEP, id="window of a step"),
        pytest.param(STEP, replace(STEP, kv_heads=32), id="shared keys"),
        pytest.param(EXPERTS, replace(EXPERTS, tokens=16384), id="tokens of experts"),
        pytest.param(EXPERTS, replace(EXPERTS, parallel=2), id="experts of a device"),
        pytest.param(
            replace(EXPERTS, tokens=8192), replace(EXPERTS, tokens=8192, alpha=1.2), id="skew"
        ),
    ],
)
@pytest.mark.parametrize("name", ["A100-SXM4-80GB", "B200-SXM-180GB", "MI300X", "L40S"])
def test_more_work_takes_longer(name: str, smaller: Kernel, larger: Kernel) -> None:
    assert 0.0 < seconds(smaller, name) < seconds(larger, name)


def test_eight_bits_beat_sixteen_where_they_have_a_unit() -> None:
    large = Gemm(8192, 8192, 8192)
    assert seconds(large, precision="fp8") < 0.8 * seconds(large)


def test_a_format_that_nothing_multiplies_is_refused() -> None:
    nothing = replace(device(), peak_flops_per_second={})
    with pytest.raises(InvalidInput, match="cannot multiply"):
        speeds(nothing, PRECISIONS["bf16"])


@pytest.mark.parametrize("name", ["T4", "TPU v5e", "Gaudi3", "MI355X", "Trainium2"])
def test_a_device_nobody_measured_inherits_with_a_wider_range(name: str) -> None:
    asked: list[Interval] = []
    for each in (name, "H100-SXM5-80GB"):
        found = predict(EXPERTS, device(each), PRECISIONS["bf16"], Software(), CALIBRATION)
        asked.append(found.seconds)
        assert (found.provenance is Provenance.INHERITED) == (each == name)
    assert asked[0].spread > 0.0


def test_even_routing_gives_each_device_its_share() -> None:
    load, active = EXPERTS.load(local=32.0, skew=1.0)
    assert load == pytest.approx(256 * 8 / 8)
    assert active == pytest.approx(32)


def test_a_skewed_routing_loads_the_fullest_device_and_touches_fewer_experts() -> None:
    even, skewed = EXPERTS, replace(EXPERTS, alpha=1.2)
    assert skewed.load(32.0, 1.0)[0] > 1.2 * even.load(32.0, 1.0)[0]
    assert skewed.load(32.0, 1.0)[1] < even.load(32.0, 1.0)[1]


def test_no_device_has_more_tokens_than_there_are() -> None:
    alone = Experts(64, 4096, 2048, 3, 1, 128, tensor=1, parallel=128, alpha=1.2)
    load, active = alone.load(1.0, 5.0)
    assert load <= 64
    assert active == 1.0


def test_a_power_law_has_the_moments_of_its_density() -> None:
    """Against sums over a fine grid."""
    routing = Routing(1.5, 100.0)
    grid = [1.0 + 99.0 * (index + 0.5) / 200_000 for index in range(200_000)]
    weights = [draw**-1.5 for draw in grid]
    total = sum(weights)
    mean = sum(w * draw for w, draw in zip(weights, grid, strict=True)) / total
    square = sum(w * draw**2 for w, draw in zip(weights, grid, strict=True)) / total
    above = sum(w for w, draw in zip(weights, grid, strict=True) if draw > 10.0) / total
    assert routing.mean == pytest.approx(mean, rel=1e-3)
    assert routing.variation == pytest.approx((square / mean**2 - 1) ** 0.5, rel=1e-3)
    assert routing.share_above(10.0) == pytest.approx(above, rel=1e-3)
    assert routing.share_above(0.5) == 1.0


@pytest.mark.parametrize("alpha", [1.0, 2.0, 3.0])
@pytest.mark.parametrize("aside", [1e-12, 1e-9, 1e-6])
def test_a_power_law_is_smooth_where_an_integral_becomes_a_logarithm(
    alpha: float, aside: float
) -> None:
    for largest in (2.0, 51.2, 6553.6):
        here = Routing(alpha, largest)
        for near in (Routing(alpha - aside, largest), Routing(alpha + aside, largest)):
            assert near.mean == pytest.approx(here.mean, rel=10 * aside + 1e-12)
            assert near.variation == pytest.approx(here.variation, rel=1e-4)
            assert near.share_above(1.7) == pytest.approx(here.share_above(1.7), abs=10 * aside)


def test_the_logarithm_of_a_power_law_is_that_of_its_density() -> None:
    """Of ``1/x`` between 1 and L: mean (L-1)/ln L, and a share of 1 - ln d / ln L beyond d."""
    routing = Routing(1.0, 100.0)
    assert routing.mean == pytest.approx(99.0 / math.log(100.0))
    assert routing.share_above(10.0) == pytest.approx(0.5)


@pytest.mark.parametrize("alpha", [1.0, 2.0, 3.0])
@pytest.mark.parametrize("experts", [8, 128, 4096])
def test_experts_under_a_power_law_of_a_whole_exponent_take_as_long_as_next_to_it(
    alpha: float, experts: int
) -> None:
    kernel = replace(EXPERTS, tokens=64, experts=experts, alpha=alpha)
    here = seconds(kernel)
    for near in (alpha - 1e-6, alpha + 1e-6):
        assert seconds(replace(kernel, alpha=near)) == pytest.approx(here, rel=1e-4)
