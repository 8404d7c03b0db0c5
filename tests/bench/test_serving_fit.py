"""The fit of the engine's step: what it takes in, and how wide its predictions are."""

import numpy as np
import pytest

from bench.fit.serving_constants import fitted_rows, not_fitted
from bench.fit.serving_folds import Scored, ratio_rows
from bench.fit.serving_samples import FITTED, ROWS_OF_GROUP, residuals, samples, thinned
from bench.tables import Row
from poolwise import tables
from poolwise.model.efficiency import Calibration
from tests.bench.test_serving_runs import row

TABLES = tables.load()
CALIBRATION = Calibration(TABLES.efficiencies)


def measured(count: int, factor: float = 1.0) -> list[Row]:
    """Rows that the shipped model meets but for a factor."""
    cells = [
        row(row_id=f"S{index}", concurrency=str(1 + index), group="one") for index in range(count)
    ]
    several = samples(cells, TABLES, FITTED)
    times = [1e3 * factor * each.predicted(CALIBRATION) for each in several]
    return [{**each, "tpot_ms_mean": str(time)} for each, time in zip(cells, times, strict=True)]


def test_a_group_counts_by_a_few_of_its_rows_and_none_twice() -> None:
    rows = measured(40)
    several = samples([*rows, *rows], TABLES, FITTED)
    kept = thinned(several)
    assert len(kept) == ROWS_OF_GROUP
    assert len({each.run.row["row_id"] for each in kept}) == ROWS_OF_GROUP


def test_a_fit_meets_what_it_is_given() -> None:
    several = samples(measured(3, factor=1.3), TABLES, FITTED)
    fixed = not_fitted(TABLES)
    found = Calibration([*fixed, *fitted_rows(several, fixed)])
    assert np.abs(residuals(several, CALIBRATION)).min() > 0.2
    assert np.abs(residuals(several, found)).max() < 0.1


def test_strangers_have_wider_intervals() -> None:
    (sample,) = samples(measured(1), TABLES, FITTED)
    known, strangers = ([Scored(sample, error)] for error in (0.1, -0.4))
    spreads = {
        each.scope: each.spread for each in ratio_rows(known, strangers) if each.term == "itl_ratio"
    }
    assert spreads["*"] == pytest.approx(4 * spreads["H100-SXM5-80GB"])
