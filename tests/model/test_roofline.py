from __future__ import annotations

import pytest

from poolwise.errors import InvalidInput
from poolwise.model.hardware import Device
from poolwise.model.roofline import Rates, ceiling_flops_per_second, ridge_point
from tests.model.training_cases import machine


@pytest.mark.parametrize(
    ("name", "number_format", "flop_per_byte"),
    [
        ("T4", "fp16", 203),
        ("A10G", "bf16", 117),
        ("L4", "bf16", 403),
        ("L40S", "bf16", 419),
        ("A100-SXM4-80GB", "bf16", 153),
        ("H100-SXM5-80GB", "bf16", 295),
        ("H200-SXM-141GB", "bf16", 206),
        ("H20-96GB", "bf16", 37),
        ("MI300X", "bf16", 247),
    ],
)
def test_ridge_points_are_those_of_the_data_sheets(
    name: str, number_format: str, flop_per_byte: float
) -> None:
    assert ridge_point(machine(name).device, number_format) == pytest.approx(
        flop_per_byte, rel=0.01
    )


def test_the_slower_roof_sets_the_time() -> None:
    rates = Rates(100.0, 10.0)
    assert rates.seconds(1000, 10) == 10
    assert rates.seconds(100, 100) == 10


def test_a_measured_ceiling_counts_before_a_data_sheet() -> None:
    device = machine("MI300X").device
    assert ceiling_flops_per_second(device, "bf16") == 668.4e12


def test_an_unmeasured_format_takes_the_fraction_of_the_measured_ones() -> None:
    device = machine("MI300X").device
    ceiling = ceiling_flops_per_second(device, "fp8")
    assert ceiling == pytest.approx(2614.9e12 * 668.4 / 1307.4)


def test_both_formats_of_16_bits_have_one_ceiling_where_one_of_them_was_measured() -> None:
    hopper = machine("H100-SXM5-80GB").device
    assert hopper.matmul_flops_per_second.keys() >= {"bf16", "fp8"}
    assert ceiling_flops_per_second(hopper, "fp16") == ceiling_flops_per_second(hopper, "bf16")


def test_a_format_without_a_unit_runs_in_a_wider_one() -> None:
    ampere = machine("A100-SXM4-80GB").device
    assert ceiling_flops_per_second(ampere, "fp8") == ceiling_flops_per_second(ampere, "bf16")
    turing = machine("T4").device
    assert ceiling_flops_per_second(turing, "bf16") == ceiling_flops_per_second(turing, "fp32")


def test_a_device_that_cannot_multiply_says_so() -> None:
    device = Device("abacus", False, "wood", 1.0, 1.0, {"int8": 1.0}, 0.0, {})
    with pytest.raises(InvalidInput, match="abacus: cannot multiply bf16; it has int8"):
        ceiling_flops_per_second(device, "bf16")
