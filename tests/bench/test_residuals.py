"""Fitting residuals: what runs alike have in common is found, what is noise is not."""

import math

import numpy as np
import pytest

from bench.accuracy import FOLDS
from bench.fit.kriging import LeftOut, covariances, left_out, weights
from bench.fit.residual_data import KINDS, Runs
from bench.fit.residual_files import fold_sites
from bench.fit.residuals import spreads
from poolwise import tables
from poolwise.model.residual import Kernel, Nearness, Residual
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
    estimate = Residual(KERNEL, known, found.tolist(), [Nearness(0.0, 0.1)]).at(asked)
    assert estimate.log_factor == pytest.approx(truth(asked), abs=0.04)


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
    several = Runs(
        sites(60),
        ["big"] * 50 + ["small"] * 10,
        np.zeros((60, 11)),
        [0] * 60,
        np.zeros((60, 11, 4)),
        ["2025-11"] * 60,
    )
    thin = several.thinned()
    assert thin.groups.count("big") == 16
    assert thin.groups.count("small") == 10
    assert len(thin.sites) == len(thin.slowness) == 26


def test_a_run_is_seen_with_the_shares_of_the_constants_that_are_asked_for() -> None:
    shares = np.arange(24.0).reshape(2, 3, 4)
    several = Runs(sites(2), ["a", "b"], np.zeros((2, 3)), [0, 0], shares, ["", ""])
    first, second = several.seen_by([2, 0])
    assert first.shares == (8.0, 9.0, 10.0, 11.0)
    assert second.shares == (12.0, 13.0, 14.0, 15.0)
    assert first.coordinates == several.sites[0].coordinates


def test_spreads_never_widen_towards_the_known() -> None:
    random = np.random.default_rng(2)
    nearness = random.uniform(0.0, 1.0, 600)
    errors = random.normal(0.0, 0.4 - 0.3 * nearness)
    several = spreads({"group": LeftOut(errors, nearness)})
    values = [each.spread for each in several]
    assert values == sorted(values)
    assert several[-1].least == 0.0
    assert sum(each.count for each in several) == 600


def test_a_step_of_nearness_that_no_run_reaches_has_no_spread() -> None:
    nearness = np.array([0.1004, 0.4004, 0.7008])  # the last step is rounded to 0.701
    several = spreads({"group": LeftOut(np.array([0.1, 0.2, 0.3]), nearness)})
    assert sum(each.count for each in several) == 3
    assert all(each.count for each in several)
    assert several[-1].least == 0.0


def test_weights_without_a_fold_ship_for_every_site() -> None:
    for row in TABLES.residuals:
        for kind in KINDS:
            each = 1 + len(row.shares)
            assert fold_sites(row.figure, kind).shape == (len(row.sites), FOLDS, each)
