from __future__ import annotations

import numpy as np
import pytest

from bench.accuracy import Vector
from bench.fit.levels import Factored, Levels, Values

FAMILIES = ["hopper"] * 60 + ["ampere"] * 60 + ["rare"]
SIZES: Vector = np.exp(np.random.default_rng(0).uniform(0, 8, len(FAMILIES)))
SPEED = {"hopper": 2.0, "ampere": 0.5, "rare": 9.0}


def fitted(outlier: float = 1.0) -> tuple[Levels, Values]:
    """A launch that all share, and a speed by family."""
    terms = {"launch": Factored(1.0, 1.0), "speed": Factored(1.0, 1.0, {"family": 0.5})}
    levels = Levels(terms, [{"family": family} for family in FAMILIES])
    truth = 3.0 + SIZES / np.array([SPEED[family] for family in FAMILIES])
    truth[0] *= outlier

    def predict(values: Values) -> Vector:
        return np.log(values["launch"] + SIZES / values["speed"])

    found = levels.fit(predict, np.log(truth), np.ones(len(truth)))
    return levels, levels.values(found)


def test_constants_and_factors_that_made_the_rows_are_found() -> None:
    _, values = fitted()
    assert values["launch"][0] == pytest.approx(3.0, rel=0.05)
    assert values["speed"][0] == pytest.approx(2.0, rel=0.05)
    assert values["speed"][60] == pytest.approx(0.5, rel=0.05)


def test_a_family_of_one_row_stays_nearer_to_the_others() -> None:
    _, values = fitted()
    assert 1.0 < values["speed"][-1] < SPEED["rare"]


def test_a_wild_row_does_not_bend_the_fit() -> None:
    _, values = fitted(outlier=100.0)
    assert values["speed"][0] == pytest.approx(2.0, rel=0.1)


def test_no_rows_are_the_priors() -> None:
    levels = Levels({"launch": Factored(1.0, 1.0, {"family": 0.5})}, [])
    found = levels.fit(lambda values: np.log(values["launch"]), np.zeros(0), np.zeros(0))
    assert found.tolist() == [0.0]
