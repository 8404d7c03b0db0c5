"""Choices between accelerators that a fit has not seen: one set of constants for both."""

from pathlib import Path

from bench.model import training
from bench.model.choice import choices
from bench.model.leave_one_out import Unit, beside_known, left_out
from bench.model.outcome import Outcome
from poolwise.model.prediction import Interval

SAMPLE = Path(__file__).parents[2] / "bench" / "sample" / "train_measured.csv"


def ran(gpu: str, measured: float, predicted: float) -> Outcome:
    row = {"row_id": gpu, "gpu": gpu, "model": "m"}
    return Outcome("train_dense", row, measured, True, Interval(predicted, predicted, predicted))


def test_constants_of_two_fits_are_never_compared() -> None:
    by_one = [ran("A", 1.0, 1.0), ran("B", 2.0, 3.0)]
    by_another = [ran("A", 1.0, 4.0)]
    assert choices(by_one, by_another)["train"] == choices(by_one)["train"]
    assert choices(by_one)["train"]["correct"] == 100.0


def test_a_new_accelerator_is_compared_with_each_known_one_alone() -> None:
    # Without A, B is ranked before C wrongly, which is no choice of A; without B nothing is wrong.
    of_a = Unit("A", [], [ran("A", 1.0, 1.0), ran("B", 2.0, 4.0), ran("C", 4.0, 3.0)])
    of_b = Unit("B", [], [ran("A", 1.0, 3.0), ran("B", 2.0, 2.0)])
    alone = beside_known([of_a])["train"]
    assert (alone["pairs"], alone["correct"]) == (2, 100.0)
    both = beside_known([of_a, of_b])["train"]
    assert (both["pairs"], both["correct"]) == (3, 66.67)


def test_without_a_job_in_common_there_is_no_choice() -> None:
    assert beside_known([Unit("A", [], [])])["serve"]["pairs"] == 0


def test_what_is_left_may_be_too_little_for_a_fit(tmp_path: Path) -> None:
    head, row, *_ = SAMPLE.read_text(encoding="utf-8").splitlines(keepends=True)
    (tmp_path / SAMPLE.name).write_text(head + row, encoding="utf-8")
    (unit,) = left_out(tmp_path, training.TARGET, "accelerator", workers=1)
    assert [each.predicted for each in unit.outcomes] == [None]
    assert "what is left cannot be fitted" in unit.outcomes[0].reason
