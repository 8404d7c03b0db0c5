"""Fitting residuals: what runs alike have in common is found, what is noise is not."""

import math

import numpy as np
import pytest

from bench.calibrations import Calibrations
from bench.fit.kriging import LeftOut, covariances, left_out, weights
from bench.fit.residual_data import Runs
from bench.fit.residual_files import FOLD_SETS, fold_weights
from bench.fit.residuals import spreads
from bench.model.outcome import Outcome
from bench.model.side_by_side import side_by_side
from poolwise import tables
from poolwise.model.prediction import Interval
from poolwise.model.residual import Kernel, Residual
from poolwise.model.site import Site

TABLES = tables.load()
KERNEL = Kernel(levels=((0,),), variance=0.1, lengths=(1.0,))
NOISE = 0.05


def sites(count: int) -> list[Site]:
    random = np.random.default_rng(0)
    return [
        Site(("ab"[index % 2], ""), (float(random.uniform(0.0, 3.0)),)) for index in range(count)
    ]


def truth(site: Site) -> float:
    return 0.2 * math.sin(site.coordinates[0]) * (1.0 if site.labels[0] == "a" else -1.0)


def test_a_smooth_function_of_runs_alike_is_found() -> None:
    known, asked = sites(80), Site(("a", ""), (1.5,))
    random = np.random.default_rng(1)
    seen = np.array([truth(site) for site in known]) + random.normal(0.0, NOISE, 80)
    found = weights(covariances(KERNEL, known), seen, NOISE)
    estimate = Residual(KERNEL, known, found.tolist(), ()).log_factors(asked, found[:, None])
    assert estimate[0] == pytest.approx(truth(asked), abs=0.04)


def test_a_wild_run_bends_little() -> None:
    known = sites(40)
    seen = np.array([truth(site) for site in known])
    wild = seen.copy()
    wild[0] += 3.0
    covariance = covariances(KERNEL, known)
    told, bent = (covariance @ weights(covariance, each, NOISE) for each in (seen, wild))
    assert np.abs(bent - told)[1:].max() < 0.05


def test_a_block_left_out_is_what_a_fit_without_it_says() -> None:
    known = sites(20)
    seen = np.array([truth(site) for site in known])
    blocks = [index // 5 for index in range(20)]
    covariance = covariances(KERNEL, known)
    (found,) = left_out(covariance, seen, NOISE, [blocks])
    trust = 1.0 / (1.0 + (seen / 0.3) ** 2)
    inside, outside = np.arange(5), np.arange(5, 20)
    noisy = covariance + np.diag(NOISE**2 / trust)
    others = np.linalg.solve(noisy[np.ix_(outside, outside)], seen[outside])
    expected = seen[inside] - covariance[np.ix_(inside, outside)] @ others
    assert found.errors[inside] == pytest.approx(expected)
    assert found.nearness.max() <= 1.0


def test_a_group_has_at_most_so_many_runs() -> None:
    several = Runs(sites(60), ["big"] * 50 + ["small"] * 10, np.zeros((60, 6)))
    thin = several.thinned()
    assert thin.groups.count("big") == 16
    assert thin.groups.count("small") == 10
    assert len(thin.sites) == len(thin.slowness) == 26


def test_spreads_never_widen_towards_the_known() -> None:
    random = np.random.default_rng(2)
    nearness = random.uniform(0.0, 1.0, 600)
    errors = random.normal(0.0, 0.4 - 0.3 * nearness)
    several = spreads({"group": LeftOut(errors, nearness)})
    values = [each.spread for each in several]
    assert values == sorted(values)
    assert several[-1].least == 0.0
    assert sum(each.count for each in several) == 600


def test_weights_without_a_fold_ship_for_every_site() -> None:
    for row in TABLES.residuals:
        assert fold_weights(row.figure).shape == (len(row.sites), len(FOLD_SETS))


def test_rows_of_no_fit_have_factors_for_all_sets_of_folds() -> None:
    constants = Calibrations.load(("serving", "requests"), TABLES)
    site = Site(TABLES.residuals[0].sites[0].labels, TABLES.residuals[0].sites[0].coordinates)
    found = constants.log_factors_beside({"row_id": "new"}, "tpot", site)
    assert set(found) == set(FOLD_SETS)
    shipped = constants.shipped.residual("tpot")
    assert shipped is not None
    assert found[frozenset(range(5))] == pytest.approx(-shipped.at(site).log_factor)


def outcome(gpu: str, fold: int | None, beside: dict[frozenset[int], float]) -> Outcome:
    row, found = {"gpu": gpu, "model": "llama"}, Interval(2.0, 1.0, 4.0)
    return Outcome("tpot", row, 1.0, True, found, fold=fold, beside=beside)


def mids(*several: Outcome) -> list[float]:
    return [each.predicted.mid for each in side_by_side(several) if each.predicted]


ONE, OTHER, BOTH = frozenset({2}), frozenset({4}), frozenset({2, 4})


def test_compared_rows_leave_out_the_folds_of_both() -> None:
    one, other = outcome("A", 2, {ONE: 1.0, BOTH: 1.5}), outcome("B", 4, {OTHER: 1.0, BOTH: 0.5})
    assert mids(one, other) == [3.0, 1.0]
    assert mids(one) == [2.0]


def test_a_row_of_no_fit_leaves_out_no_fold() -> None:
    new = outcome("A", None, {ONE: 1.5})
    assert mids(new, outcome("B", None, {ONE: 0.5})) == [2.0, 2.0]
    assert mids(new, outcome("B", 2, {ONE: 1.0})) == [3.0, 2.0]
