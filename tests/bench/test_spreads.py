from __future__ import annotations

import numpy as np
import pytest

from bench.fit.spreads import FEW, LeftOut, spreads, units
from poolwise.model.efficiency import EVERY
from poolwise.model.hardware import Device


def device(name: str, family: str) -> Device:
    return Device(name, False, family, 1.0, 1.0, {"bf16": 1.0}, 1.0, {})


DEVICES = [
    *[device("H100", "hopper")] * 100,
    *[device("H200", "hopper")] * 100,
    *[device("A100", "ampere")] * 100,
    device("A800", "ampere-small"),
]
ROWS = [{"source_date": "2025-11"}] * len(DEVICES)


def test_what_is_less_known_is_wider() -> None:
    ones = np.ones(len(DEVICES))
    found = {
        each.scope: each for each in spreads(DEVICES, LeftOut(0.1 * ones, 0.2 * ones, ones), ROWS)
    }
    assert found["H100"].value == pytest.approx(0.1 / 1.645)
    assert found["hopper"].value == pytest.approx(0.2 / 1.645)
    assert found[EVERY].value == pytest.approx(1.0 / 1.645)
    assert found["hopper"].behind.count == 200
    assert found["hopper"].behind.date == "2025-11"
    assert "A800" not in found


def test_nine_in_ten_rows_lie_inside() -> None:
    errors = np.random.default_rng(0).standard_t(3, len(DEVICES)) * 0.1
    found = {
        each.scope: each.value for each in spreads(DEVICES, LeftOut(errors, errors, errors), ROWS)
    }
    own = errors[:100]
    assert np.mean(np.abs(own) <= 1.645 * found["H100"]) == pytest.approx(0.9, abs=0.01)


def test_a_stranger_is_as_wide_as_the_widest_that_was_left_out() -> None:
    names = np.array([each.name for each in DEVICES])
    units_errors = np.where(names == "H200", 0.6, np.where(names == "H100", 0.1, 0.2))
    families = np.where(names == "A100", 0.9, 0.3)
    found = {
        each.scope: each.value
        for each in spreads(DEVICES, LeftOut(0.1 * families, units_errors, families), ROWS)
    }
    assert found["hopper"] == pytest.approx(0.6 / 1.645)
    assert found[EVERY] == pytest.approx(0.9 / 1.645)
    assert found["H100"] == pytest.approx(0.03 / 1.645)


def test_one_wild_row_of_a_family_is_not_everybody() -> None:
    errors = np.where(np.array([each.name for each in DEVICES]) == "A800", 5.0, 0.1)
    found = {each.scope: each.value for each in spreads(DEVICES, LeftOut(*[errors] * 3), ROWS)}
    assert found[EVERY] == pytest.approx(0.1 / 1.645)


def test_accelerators_of_few_rows_are_left_out_together() -> None:
    assert set(units(DEVICES)) == {"H100", "H200", "A100", "few"}
    assert FEW > 1
