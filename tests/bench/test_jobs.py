"""Rows that are compared share a fold, and no fit that predicts them has seen any of them."""

from collections import Counter

import pytest

from bench import tables as measured
from bench.accuracy import FOLDS
from bench.calibrations import Calibrations
from bench.jobs import JOBS, companions, job_folds, job_of, shared
from bench.model.targets import WITH_JOBS
from poolwise import tables

TABLES = tables.load()
HAS_DATA = measured.exists(measured.DEFAULT_FOLDER, "serve_measured")


def row(name: str, group: str, gpu: str, **cells: str) -> dict[str, str]:
    return {"row_id": name, "group": group, "gpu": gpu, "mode": "online-agg", **cells}


SEVERAL = [
    row("1", "a", "H100", concurrency="4"),
    row("2", "b", "H200", concurrency="4"),
    row("3", "b", "H200", concurrency="8"),
    row("4", "c", "B200", concurrency="8"),
    row("5", "d", "B200", concurrency="16"),
]


def test_groups_with_a_job_in_common_share_a_fold_through_others_too() -> None:
    found = job_folds(SEVERAL)
    assert len({found[each] for each in "1234"}) == 1
    assert found == job_folds(reversed(SEVERAL))
    alone = job_folds([each for each in SEVERAL if each["row_id"] != "3"])
    assert alone["1"] == alone["2"]


def test_jobs_of_one_accelerator_are_not_compared() -> None:
    assert [each["row_id"] for each in shared(SEVERAL)] == ["1", "2", "3", "4"]
    assert job_of(SEVERAL[0]) == job_of(SEVERAL[1]) != job_of(SEVERAL[2])


def test_a_new_row_joins_the_fold_of_what_it_is_compared_with() -> None:
    assert companions(SEVERAL, {"1": 3}) == {"1": 3, "2": 3}
    assert companions(SEVERAL, {}) == {}


@pytest.mark.skipif(not HAS_DATA, reason="the measured tables are not here")
def test_no_shipped_constant_of_a_fold_has_seen_a_job_that_it_predicts() -> None:
    for target in WITH_JOBS:
        rows = shared(measured.read(measured.DEFAULT_FOLDER, target.table))
        constants = Calibrations.load(target.phases, TABLES, JOBS).with_companions(rows)
        folds: dict[tuple[str, ...], set[int | None]] = {}
        for each in rows:
            folds.setdefault(job_of(each), set()).add(constants.fold_of_row.get(each["row_id"]))
        assert all(len(several) == 1 for several in folds.values())
        sizes = Counter(constants.fold_of_row.values())
        assert set(sizes) == set(range(FOLDS))
