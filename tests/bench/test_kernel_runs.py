from __future__ import annotations

import pytest

from bench.kernel_runs import KernelRun, kernel_run, kernel_runs, predicted
from bench.tables import Row
from poolwise.model.efficiency import Calibration
from poolwise.model.kernels.attention import Decode, Prefill
from poolwise.model.kernels.constants import Software
from poolwise.model.kernels.experts import Experts
from poolwise.model.kernels.gemm import Gemm
from poolwise.model.kernels.predicting import Kernel
from poolwise.tables import load

TABLES = load()
CALIBRATION = Calibration(TABLES.efficiencies)
PRODUCT: Row = {
    "gpu": "H100-SXM5-80GB",
    "engine": "vllm",
    "kernel_source": "torch.nn.functional.linear",
    "op": "gemm",
    "dtype": "bfloat16",
    "kv_dtype": "",
    "m": "256",
    "n": "4096",
    "k": "2048",
    "window": "",
    "latency_us": "12.5",
    "group": "a sweep",
}
ATTENTION: Row = PRODUCT | {
    "batch": "4",
    "q_len": "512",
    "kv_len": "1024",
    "heads": "32",
    "kv_heads": "8",
    "head_dim": "128",
    "window": "0",
    "kv_dtype": "fp8",
}
MIXTURE: Row = PRODUCT | {
    "op": "moe_ffn",
    "kernel_source": "vllm_fp8moe_flashinfer_trtllm_trtllmfp8expertsmonolithic",
    "dtype": "fp8_block",
    "num_tokens": "64",
    "hidden": "7168",
    "inter": "2048",
    "topk": "8",
    "experts": "256",
    "moe_tp": "1",
    "moe_ep": "8",
    "routing": "power_law_1.2",
}


def found(row: Row) -> KernelRun:
    run = kernel_run(row, TABLES)
    assert isinstance(run, KernelRun), run
    return run


@pytest.mark.parametrize(
    ("row", "kernel"),
    [
        pytest.param(PRODUCT, Gemm(256, 4096, 2048), id="product"),
        pytest.param(
            ATTENTION | {"op": "attention_prefill"},
            Prefill(4, 512, 32, 8, 128, None, 1.0),
            id="prompt",
        ),
        pytest.param(
            ATTENTION | {"op": "attention_decode", "window": "128"},
            Decode(4, 1024, 32, 8, 128, 128, 1.0),
            id="step",
        ),
        pytest.param(MIXTURE, Experts(64, 7168, 2048, 3, 8, 256, 1, 8, 1.2), id="experts"),
    ],
)
def test_a_row_is_a_kernel(row: Row, kernel: Kernel) -> None:
    run = found(row)
    assert run.kernel == kernel
    assert run.seconds == pytest.approx(12.5e-6)
    interval = predicted(run, CALIBRATION)
    assert interval.low < interval.mid < interval.high


def test_the_library_behind_grouped_experts_is_told_by_the_kernel() -> None:
    assert found(MIXTURE).software == Software("vllm", "trtllm")
    assert found(PRODUCT).software == Software("vllm")


def test_a_logarithmic_routing_is_as_the_row_says() -> None:
    kernel = found(MIXTURE | {"routing": "power_law_1.0"}).kernel
    assert isinstance(kernel, Experts)
    assert kernel.alpha == 1.0


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        pytest.param({"gpu": "Voodoo 2"}, "accelerator", id="accelerator"),
        pytest.param({"dtype": "ternary"}, "number format", id="format"),
        pytest.param({"op": "softmax"}, "operation", id="operation"),
        pytest.param({"m": ""}, "row has no m", id="empty"),
    ],
)
def test_what_cannot_be_predicted_says_why(cells: Row, reason: str) -> None:
    assert reason in str(kernel_run(PRODUCT | cells, TABLES))


def test_rows_without_a_time_are_no_measurement() -> None:
    assert not list(kernel_runs([PRODUCT | {"latency_us": ""}], TABLES))


@pytest.mark.parametrize(
    ("name", "precision"), [("fp8_ootb", "fp8"), ("w8a8", "int8"), ("mxfp8", "fp8")]
)
def test_a_format_is_known_by_its_words(name: str, precision: str) -> None:
    found = kernel_run(PRODUCT | {"dtype": name}, TABLES)
    assert isinstance(found, KernelRun)
    assert found.precision.name == precision
