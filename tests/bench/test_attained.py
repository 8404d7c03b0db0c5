"""FLOPs and bytes of measured work, and the picture of them under the roofs."""

from __future__ import annotations

import pytest

from bench.kernel_runs import KernelRun, kernel_run
from bench.model.attained import GENERATION, KINDS, TRAINING, Attained, attained, work
from bench.model.plots import ROOFED, rooflines
from bench.model.regression import SAMPLE
from bench.model.targets import outcomes
from bench.pictures import style
from bench.tables import Row
from poolwise.tables import load

TABLES = load()
KERNEL: Row = {"gpu": "H100-SXM5-80GB", "engine": "vllm", "dtype": "fp8", "latency_us": "10"}


@pytest.fixture(scope="module")
def points() -> list[Attained]:
    every = TABLES.accelerators.rows
    return attained(outcomes(SAMPLE, TABLES), [each.name for each in every], TABLES)


@pytest.mark.parametrize(
    ("cells", "flops", "moved"),
    [
        pytest.param(
            {"op": "gemm", "m": "256", "n": "4096", "k": "2048"},
            2 * 256 * 4096 * 2048,
            4096 * 2048 + 256 * 2048 + 2 * 256 * 4096,
            id="product",
        ),
        pytest.param(
            {"op": "attention_decode", "batch": "4", "kv_len": "1000", "heads": "32",
             "kv_heads": "8", "head_dim": "128", "kv_dtype": "bfloat16"},
            4 * 4 * 1000 * 32 * 128,
            2 * 2 * 4 * 1000 * 8 * 128 + 2 * 2 * 4 * 32 * 128,
            id="step",
        ),
        pytest.param(
            {"op": "attention_prefill", "batch": "2", "q_len": "512", "heads": "32",
             "kv_heads": "32", "head_dim": "64"},
            4 * 2 * 32 * 64 * 512 * 512 / 2,
            2 * 512 * 32 * 64 * (2 * 2 + 2 * (2 + 2)),  # keys and values into the cache, too
            id="prompt",
        ),
        pytest.param(
            {"op": "moe_ffn", "num_tokens": "8", "hidden": "1024", "inter": "512", "topk": "2",
             "experts": "4", "routing": "balanced"},
            2 * 3 * 1024 * 512 * 8 * 2,
            4 * 3 * 1024 * 512 + 2 * (2 * 8 * 2 * (1024 + 512) + 2 * 8 * 1024),
            id="experts",
        ),
    ],
)  # fmt: skip
def test_a_kernel_is_counted_with_nothing_wasted(cells: Row, flops: float, moved: float) -> None:
    run = kernel_run(KERNEL | cells, TABLES)
    assert isinstance(run, KernelRun), run
    assert work(run) == pytest.approx((flops, moved))


def test_no_whole_step_stands_above_its_roof(points: list[Attained]) -> None:
    """Kernels may: their operands can come from the last cache."""
    whole = [each for each in points if each.kind in (TRAINING, GENERATION)]
    assert {each.kind for each in whole} == {TRAINING, GENERATION}
    for each in whole:
        row = TABLES.accelerator(each.gpu)
        assert row is not None
        slope = each.intensity * row.memory_bandwidth_bytes_per_second
        assert each.flops_per_second < min(slope, max(row.peak_flops_per_second.values())), each


def test_measured_work_reaches_a_fair_part_of_its_roof(points: list[Attained]) -> None:
    best: dict[str, float] = {}
    for each in points:
        row = TABLES.accelerator(each.gpu)
        assert row is not None
        slope = each.intensity * row.memory_bandwidth_bytes_per_second
        reached = each.flops_per_second / min(slope, max(row.peak_flops_per_second.values()))
        best[each.kind] = max(best.get(each.kind, 0.0), reached)
    assert set(best) == set(KINDS)
    assert min(best.values()) > 0.2, best


def test_the_picture_names_kinds_accelerators_and_peaks(points: list[Attained]) -> None:
    drawn = style.as_svg(rooflines(points, TABLES), "Under the roofs")
    for word in (*KINDS, *ROOFED, "bf16 989", "fp8 1,979", "fp4 9,000"):
        assert f">{word}<" in drawn, word
