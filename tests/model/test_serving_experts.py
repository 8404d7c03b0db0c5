"""Grouped products of routed experts: their formats, their padding and their slices."""

import pytest

from poolwise.model.serving.costs import step_costs
from poolwise.model.serving.experts import BLOCK_SCALED, EXPANDED, EXPANDED_TILE_ROWS, expert_format
from poolwise.model.work import ServingLayout
from tests.model.serving_cases import CALIBRATION, machine, service

H100, B200, A100 = (
    machine(name) for name in ("H100-SXM5-80GB", "B200-SXM-180GB", "A100-SXM4-80GB")
)


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
