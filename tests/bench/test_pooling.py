from __future__ import annotations

import numpy as np
import pytest

from bench.accuracy import Vector
from bench.fit.pooling import Constant, Pool
from poolwise.model.efficiency import EVERY, Calibration
from poolwise.model.hardware import Device
from poolwise.tables import EfficiencyRow

SPEED = Constant("training", "speed", 1.0, 1.0, family_width=0.2, accelerator_width=0.1)


def device(name: str, family: str) -> Device:
    return Device(name, False, family, 1.0, 1.0, {"bf16": 1.0}, 1.0, {})


TRUE_SPEED = {"H100": 0.8, "H200": 0.8, "A100": 0.5, "rare": 0.2}
DEVICES = [
    *[device("H100", "hopper")] * 40,
    *[device("H200", "hopper")] * 40,
    *[device("A100", "ampere")] * 40,
    device("rare", "ampere"),
]


def residuals(calibration: Calibration) -> Vector:
    predicted = [calibration.value("training", "speed", each) for each in DEVICES]
    errors: Vector = np.log(np.array(predicted) / [TRUE_SPEED[each.name] for each in DEVICES])
    return errors


@pytest.fixture(scope="module")
def values() -> dict[str, float]:
    pool = Pool([SPEED], DEVICES)
    return {key[2]: value for key, value in pool.values(pool.fit(residuals, [])).items()}


@pytest.mark.parametrize("name", ["H100", "H200", "A100"])
def test_what_many_rows_say_is_met(values: dict[str, float], name: str) -> None:
    assert values[name] == pytest.approx(TRUE_SPEED[name], rel=0.03)


def test_a_single_row_moves_its_accelerator_only_a_little(values: dict[str, float]) -> None:
    assert 0.35 < values["rare"] < 0.95 * values["A100"]


def test_families_stay_between_their_members_and_all(values: dict[str, float]) -> None:
    assert values["ampere"] < values[EVERY] < values["hopper"]


def test_a_bound_holds() -> None:
    capped = Constant("training", "speed", 0.5, 1.0, most=0.6)
    pool = Pool([capped], DEVICES)
    assert pool.values(pool.fit(residuals, []))["training", "speed", EVERY, EVERY] <= 0.6


def shipped_rows() -> list[EfficiencyRow]:
    pool = Pool([SPEED], DEVICES)
    parameters = np.zeros(len(pool.parameters))
    groups = [f"{each.name} {index % 8}" for index, each in enumerate(DEVICES)]
    known = pool.covariance(residuals, [], parameters, groups)
    measured = [{"source_date": f"2025-{1 + index % 12:02d}"} for index in range(len(DEVICES))]
    return pool.rows(parameters, known, ["bf16"] * len(DEVICES), measured, "x")


def test_rows_carry_their_counts() -> None:
    shipped = shipped_rows()
    assert {row.scope: row.count for row in shipped} == {
        "*": 121,
        "hopper": 80,
        "ampere": 41,
        "H100": 40,
        "H200": 40,
        "A100": 40,
        "rare": 1,
    }


def test_rows_carry_their_dates() -> None:
    dates = {row.scope: row.date for row in shipped_rows()}
    assert dates["H100"] == "2025-01/2025-12"
    assert dates["rare"] == "2025-01"


def test_an_accelerator_of_one_row_is_less_sure_than_its_siblings() -> None:
    spreads = {row.scope: row.spread for row in shipped_rows()}
    assert spreads["rare"] > 1.05 * spreads["A100"] > 0.0
