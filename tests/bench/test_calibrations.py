"""A row is scored by constants that have not seen it, or by none."""

from __future__ import annotations

import pytest

from bench.calibrations import UNIDENTIFIED, Calibrations
from bench.jobs import companions
from bench.model.outcome import Target
from bench.model.regression import SAMPLE
from bench.model.targets import TARGETS
from bench.tables import read
from poolwise.errors import InvalidInput
from poolwise.model.efficiency import Calibration
from poolwise.tables import load

TABLES = load()
NONE = Calibration([])
CONSTANTS = Calibrations(Calibration(TABLES.efficiencies), {2: NONE}, {"S1": 2})


def test_rows_of_a_fit_have_the_constants_without_their_fold() -> None:
    assert CONSTANTS.of({"row_id": "S1"}) is NONE
    assert CONSTANTS.of({"row_id": "S2"}) is CONSTANTS.shipped


@pytest.mark.parametrize("row", [{"row_id": ""}, {}])
def test_a_row_without_identity_has_no_constants(row: dict[str, str]) -> None:
    with pytest.raises(InvalidInput, match=UNIDENTIFIED):
        CONSTANTS.of(row)


def test_a_row_without_identity_gives_its_fold_to_none_and_takes_none() -> None:
    rows = [{"row_id": each, "mode": "online-agg", "gpu": each} for each in ("S1", "", "S2")]
    assert companions(rows, {"S1": 2}) == {"S1": 2, "S2": 2}


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.table)
def test_rows_without_identity_are_counted_and_not_scored(target: Target) -> None:
    rows = [row | {"row_id": ""} for row in read(SAMPLE, target.table)[:20]]
    found = [each for each in target.outcomes(rows, TABLES, CONSTANTS.of) if each.is_eligible]
    assert found
    assert {(each.predicted, each.reason) for each in found} == {(None, UNIDENTIFIED)}
