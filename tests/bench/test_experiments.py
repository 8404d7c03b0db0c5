"""Natural experiments, pair by pair and by their medians."""

from __future__ import annotations

from typing import Any

import pytest

from bench.model.experiments import experiments
from bench.model.outcome import Outcome
from bench.tables import Row
from poolwise.model.prediction import Interval
from poolwise.tables import load

TABLES = load()
CELLS: Row = {
    "source": "s", "mode": "offline-max-throughput", "engine": "trtllm", "model": "m",
    "isl": "128", "osl": "2048", "weight_precision": "fp8",
}  # fmt: skip


def runs(
    measured: float, predicted: float, score: str = "offline_throughput", **cells: str
) -> list[Outcome]:
    """A job on both accelerators, so many times the rate (or the time) of the first one."""
    return [
        Outcome(score, CELLS | {"gpu": gpu} | cells, truth, True, Interval(mid, mid, mid))
        for gpu, truth, mid in (
            ("H100-SXM5-80GB", 100.0, 100.0),
            ("H200-SXM-141GB", 100.0 * measured, 100.0 * predicted),
        )
    ]


def told(*several: list[Outcome]) -> list[dict[str, Any]]:
    return experiments([each for some in several for each in some], TABLES)


@pytest.mark.parametrize(("predicted", "right"), [(1.38, True), (1.0, False)])
def test_a_wrong_median_fails(predicted: float, right: bool) -> None:
    cell, every = told(runs(1.4, predicted))
    assert (cell["measured_ratio"], cell["predicted_ratio"]) == (1.4, predicted)
    assert cell["dominant_measured"] == "MemoryBandwidth"
    assert cell["right"] is right
    assert every["right_experiments_percent"] == every["right_percent"] == 100 * right
    assert every["contradicted_percent"] == 100 * (not right)


def test_pairs_within_the_noise_of_the_border_are_counted_apart() -> None:
    cell, every = told(runs(1.2, 1.0), runs(1.4, 1.4, isl="64"))
    assert (cell["pairs"], cell["decided_pairs"], cell["right_percent"]) == (2, 1, 100)
    assert (every["pairs"], every["decided_pairs"]) == (2, 1)


def test_a_job_whose_repeats_differ_is_as_noisy_as_they_are() -> None:
    [cell, _] = told(runs(1.4, 1.0), runs(1.9, 1.0))
    assert cell["pairs"] == 1
    assert cell["decided_pairs"] == 0


def test_shorter_times_are_faster() -> None:
    cell, _ = told(runs(1 / 1.4, 1 / 1.4, "tpot", mode="online-agg", concurrency="4"))
    assert cell["measured_ratio"] == 1.4
    assert cell["regime"] == "1 to 8 in flight"


def test_a_run_that_guesses_tokens_is_not_paired_with_one_that_does_not() -> None:
    cells = {"mode": "online-agg", "model": "DeepSeek-V3", "concurrency": "4", "attn_dp": "1"}
    first, second = runs(0.7, 0.7, "tpot", **cells, engine_version="1.1.0rc2.post2")
    assert len(told([first, second])) == 2
    first.row["source_date"] = "2026-01-14"
    assert len(told([first, second])) == 1


@pytest.mark.parametrize(
    ("cells", "regime"),
    [
        ({}, "mostly generating"),
        ({"isl": "2048", "osl": "128"}, "mostly reading"),
        ({"isl": "2048"}, "reading and generating"),
    ],
)
def test_regimes_of_throughput_go_by_lengths(cells: Row, regime: str) -> None:
    assert told(runs(1.2, 1.2, **cells))[0]["regime"] == regime


def test_many_families_tell_more_than_one() -> None:
    near = [runs(1.25, 1.02, model=f"m{number}") for number in range(9)]
    assert told(near[0])[0]["right"] is None
    cell, _ = told(*near)
    assert cell["families"] == 9
    assert cell["right"] is False


def test_without_pairs_there_is_nothing_to_tell() -> None:
    (every,) = told()
    assert (every["experiments"], every["pairs"], every["right_percent"]) == (0, 0, None)
