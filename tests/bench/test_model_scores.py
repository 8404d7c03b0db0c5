from __future__ import annotations

import pytest

from bench.jobs import TRAINING
from bench.model.choice import jobs, summary
from bench.model.outcome import Outcome
from bench.model.regression import regressions
from bench.model.scores import by_name, grouped, score, unpredicted
from bench.tables import Row
from poolwise.model.prediction import Interval


def outcome(
    measured: float, mid: float | None, cells: Row | None = None, eligible: bool = True
) -> Outcome:
    predicted = None if mid is None else Interval(mid, mid * 0.8, mid * 1.2)
    row = {"row_id": "x", "gpu": "H100-SXM5-80GB", **(cells or {})}
    reason = "" if predicted else "no shape"
    return Outcome("train_dense", row, measured, eligible, predicted, reason)


def test_errors_are_over_eligible_predicted_rows() -> None:
    found = score([
        outcome(100, 110), outcome(100, 130), outcome(200, None), outcome(1, 9, eligible=False),
    ])  # fmt: skip
    assert (found["rows"], found["eligible"], found["predicted"]) == (4, 3, 2)
    assert found["mdape"] == pytest.approx(20)
    assert found["mape"] == pytest.approx(20)
    assert found["coverage90"] == 50


def test_nothing_predicted_has_no_errors() -> None:
    found = score([outcome(1, None)])
    assert found["predicted"] == 0
    assert found["mdape"] is None


def test_what_is_not_predicted_is_counted_with_its_reason() -> None:
    assert unpredicted([outcome(1, None), outcome(1, None), outcome(1, 1)]) == {"no shape": 2}


def test_groups_leave_out_an_empty_label() -> None:
    rows = [outcome(1, 1, {"split": "R"}), outcome(1, 1, {"split": ""})]
    assert list(grouped(rows, lambda each: each.row["split"])) == ["R"]
    assert list(by_name(rows)) == ["train_dense"]


def rates(**predicted_and_measured: tuple[float, float]) -> list[tuple[Row, tuple[float, float]]]:
    return [({"gpu": gpu, "model": "m"}, each) for gpu, each in predicted_and_measured.items()]


def test_a_wrong_choice_costs_its_regret() -> None:
    found = summary(jobs(rates(a=(3.0, 1.0), b=(2.0, 1.5), c=(1.0, 0.5)), TRAINING))
    assert found["pairs"] == 3
    assert found["correct"] == pytest.approx(66.67)
    assert found["mean_regret"] == pytest.approx(50)


def test_pairs_within_the_noise_do_not_count() -> None:
    assert summary(jobs(rates(a=(1.0, 1.0), b=(2.0, 1.04)), TRAINING))["pairs"] == 0


def test_a_regression_names_the_score_and_both_errors() -> None:
    assert regressions({"tpot": 10.4}, {"tpot": 9.0}) == []
    (sentence,) = regressions({"tpot": 12.0}, {"tpot": 9.0})
    assert "tpot" in sentence
    assert "12.0" in sentence
    assert "9.0" in sentence
    assert regressions({}, {"tpot": 9.0})
