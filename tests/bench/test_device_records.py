"""What the program on the device measures and writes, as far as it needs no device."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bench.device.isolated import NotMeasured, isolated
from bench.device.records import Where, kernel_record, training_record
from bench.device.results import Measured, Timed
from bench.device.workloads import WORKLOADS, Workload, shape_of
from bench.model.targets import outcomes
from bench.tables import read, write
from bench.training_runs import described
from poolwise.errors import InvalidInput
from poolwise.model.work import Execution, Method, Recompute
from poolwise.tables import load

WHERE = Where("H100-SXM5-80GB", "NVIDIA H100 80GB HBM3", "2.11.0", "2026-11")
WORKLOAD = Workload(
    "Llama-3.2-1B", 4096, 2, 4, method=Method.LORA, is_recomputed=True, is_compiled=False
)
FOUND = Measured(0.25, 30 * 2.0**30, 29 * 2.0**30)


def test_workloads_are_decoders_of_the_tables_and_none_comes_twice() -> None:
    assert len(set(WORKLOADS)) == len(WORKLOADS)
    for workload in WORKLOADS:
        assert shape_of(workload).layers == workload.layers or workload.layers is None
    with pytest.raises(InvalidInput, match="no-such-model is no decoder"):
        shape_of(replace(WORKLOAD, model="no-such-model"))


def test_what_is_written_is_read_as_the_same_run(tmp_path: Path) -> None:
    write(tmp_path, "train_measured", [training_record(WORKLOAD, FOUND, WHERE)])
    (row,) = read(tmp_path, "train_measured")
    run = described(row, load())
    assert run is not None
    assert run.work.execution is Execution.EAGER and run.work.method is Method.LORA
    assert run.work.global_batch_samples == 8 and run.fixed.micro_batch_size == 2
    assert run.fixed.recompute is Recompute.FULL and run.count == 1
    assert run.step_seconds == pytest.approx(FOUND.step_seconds, rel=1e-4)
    assert row["peak_mem_gib"] == "30.00"


def test_kernels_are_scored(tmp_path: Path) -> None:
    gemm = {"op": "gemm", "dtype": "bfloat16", "m": 128, "n": 4096, "k": 4096}
    write(tmp_path, "kernels_measured", [kernel_record(Timed(gemm, 2e-5), WHERE)])
    (found,) = outcomes(tmp_path, load())
    assert found.score == "kernels" and found.measured == pytest.approx(2e-5)
    assert found.predicted is not None


def test_rows_are_known_by_what_they_say() -> None:
    first = training_record(WORKLOAD, FOUND, WHERE)
    other = training_record(WORKLOAD, replace(FOUND, step_seconds=0.26), WHERE)
    assert first["row_id"] == training_record(WORKLOAD, FOUND, WHERE)["row_id"] != other["row_id"]


def _crash() -> None:
    raise SystemExit


def _hang() -> None:
    while True:
        pass


def test_a_measurement_that_ends_badly_says_why() -> None:
    assert isolated(lambda a, b: a + b, 1, 2, limit_seconds=60.0) == 3
    for fails, limit_seconds, why in (
        (lambda: 1 / 0, 60.0, "ZeroDivisionError: division by zero"),
        (_crash, 60.0, "its process ended"),
        (_hang, 0.2, r"took over 0\.2 s"),
    ):
        with pytest.raises(NotMeasured, match=why):
            isolated(fails, limit_seconds=limit_seconds)
