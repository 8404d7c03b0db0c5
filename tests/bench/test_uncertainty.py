from __future__ import annotations

import numpy as np
import pytest

from bench.fit.levels import NOISE, Factored, Levels, Values
from bench.fit.uncertainty import covariance, deviation

WIDTHS = np.array([0.5, 0.2])


def test_without_rows_a_constant_is_as_uncertain_as_its_prior() -> None:
    known = covariance(np.zeros((0, 2)), np.zeros(0), np.zeros(0), WIDTHS, [])
    assert deviation(known, [0]) == pytest.approx(0.5)
    assert deviation(known, [0, 1]) == pytest.approx(np.hypot(0.5, 0.2))


def mean_deviation(groups: int, rows: int, between: float, within: float) -> float:
    """Of a constant that is the mean of rows in groups."""
    random = np.random.default_rng(0)
    labels = np.repeat(np.arange(groups), rows)
    errors = random.normal(0, between, groups)[labels] + random.normal(0, within, groups * rows)
    errors -= errors.mean()
    weights = np.full(len(errors), 1 / (between**2 + within**2))
    slopes = np.ones((len(errors), 1))
    known = covariance(slopes, errors, weights, np.array([10.0]), labels.tolist())
    return deviation(known, [0])


def test_many_groups_tell_a_constant_as_well_as_their_mean() -> None:
    expected = np.sqrt(0.2**2 / 400 + 0.05**2 / 2000)
    assert mean_deviation(400, 5, between=0.2, within=0.05) == pytest.approx(expected, rel=0.2)


def test_more_rows_of_the_same_groups_tell_hardly_more() -> None:
    few = mean_deviation(20, 5, between=0.2, within=0.05)
    many = mean_deviation(20, 500, between=0.2, within=0.05)
    assert many == pytest.approx(few, rel=0.3)
    assert many > 0.2 / np.sqrt(20) * 0.6


def test_a_fit_tells_how_far_its_constants_may_be_off() -> None:
    """Fits of other draws of the same groups scatter as far as one of them says."""
    terms = {"launch": Factored(1.0, 1.0), "speed": Factored(1.0, 1.0, {"family": 0.5})}
    keys: list[dict[str, object]] = [{"family": "a" if index % 2 else "b"} for index in range(240)]
    sizes = np.exp(np.random.default_rng(1).uniform(-2, 3, len(keys)))
    groups = [index // 4 for index in range(len(keys))]
    levels = Levels(terms, keys)

    def predict(values: Values) -> np.ndarray:
        return np.log(values["launch"] + sizes / values["speed"])

    truth, weights = predict(levels.values(np.zeros(4))), np.ones(len(keys))
    found, told = [], []
    for draw in range(30):
        random = np.random.default_rng(draw)
        shared = random.normal(0, NOISE, len(groups))[groups]
        measured = truth + shared + random.normal(0, NOISE / 3, len(keys))
        parameters = levels.fit(predict, measured, weights)
        known = levels.covariance(predict, parameters, measured, weights, groups)
        found.append(parameters[0])
        told.append(levels.deviation(known, "launch", {}))
    assert np.median(told) == pytest.approx(np.std(found), rel=0.35)


def test_the_deviation_of_a_constant_is_of_all_its_factors() -> None:
    terms = {"speed": Factored(1.0, 1.0, {"family": 0.5})}
    levels = Levels(terms, [{"family": "a"}])
    known = np.diag(levels.widths**2)
    assert levels.deviation(known, "speed", {}) == pytest.approx(1.0)
    assert levels.deviation(known, "speed", {"family": "a"}) == pytest.approx(np.hypot(1.0, 0.5))
    assert levels.deviation(known, "speed", {"family": "unseen"}) == pytest.approx(1.0)
