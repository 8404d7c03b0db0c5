"""Rows that this project measured: no fit has seen them, so the shipped constants are judged."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest

from bench.fit.training import laid_rows
from bench.memory import least_memory
from bench.model.outcome import Outcome
from bench.model.targets import outcomes
from bench.tables import OWN_FOLDER, read
from poolwise.tables import load

TABLES = load()
MEDIANS = {"train_dense": 15.0, "train_moe": 40.0, "kernels": 20.0, "peak_memory": 10.0}
"""Most that the median error may be, in percent."""


@pytest.fixture(scope="module")
def found() -> list[Outcome]:
    return list(outcomes(OWN_FOLDER, TABLES))


def test_every_row_is_eligible_and_predicted(found: list[Outcome]) -> None:
    assert all(each.is_eligible and each.predicted is not None for each in found)
    ids = [row["row_id"] for table in ("train_measured", "kernels_measured") for row in rows(table)]
    assert len(set(ids)) == len(ids) == 48 + 142


def rows(table: str) -> list[dict[str, str]]:
    return read(OWN_FOLDER, table)


def test_scores_are_as_the_page_tells(found: list[Outcome]) -> None:
    errors = defaultdict(list)
    for each in found:
        assert each.predicted is not None
        errors[each.score].append(100 * abs(each.predicted.mid / each.measured - 1))
    medians = {score: float(np.median(several)) for score, several in errors.items()}
    assert medians.keys() == MEDIANS.keys()
    assert all(medians[score] < most for score, most in MEDIANS.items()), medians


def test_no_run_that_ran_is_said_not_to_fit() -> None:
    assert all(least_memory(each).fits for each in laid_rows(rows("train_measured"), TABLES))
