"""A small fleet bears less of its load than a large one, where gaps between tokens decide."""

from dataclasses import astuple, replace
from itertools import pairwise

import numpy as np
import pytest

from poolwise.model.serving.routing import BY_CHANCE
from poolwise.model.work import Metric, Target
from poolwise.plan.scaling.capability import capability
from poolwise.plan.scaling.evidence import evidence
from poolwise.plan.scaling.fragility import LOG_RATIOS, Lateness, curve_of, observed, prior, summary
from poolwise.plan.scaling.memory import Felt, Memory
from poolwise.plan.scaling.sizing import need, ratios
from poolwise.plan.scaling.swings import (
    BLUR,
    LEAST_DEMAND,
    MOST_BURSTS,
    SWING,
    USUAL_DEMAND,
    Dispersion,
    as_strain,
    blur_of,
    strain,
    swing_of,
    usable_share,
)
from tests.plan.scaling.given import service
from tests.plan.scaling.test_sizing import ahead


@pytest.fixture(scope="module")
def of_gaps():
    able = capability_of(service())
    return replace(able, limit=Target(Metric.TPOT, 99.0, 0.1))


def capability_of(given):
    pool = given.pools[0]
    return capability(pool.predictor, pool.predictor.prior_mix, given.targets, 1.0)


def test_a_larger_fleet_bears_more_of_its_load():
    shares = [usable_share(demand, SWING) for demand in (0.1, LEAST_DEMAND, 2.0, 8.0, 1e9)]
    assert shares == sorted(shares)
    assert shares[0] == shares[1] < 1.0 < shares[3]
    assert shares[-1] == pytest.approx(2.718281828 ** (SWING / USUAL_DEMAND**0.5), rel=1e-3)
    assert usable_share(USUAL_DEMAND, SWING) == 1.0


@pytest.mark.parametrize("latency", [Metric.TTFT, Metric.E2E])
def test_who_waits_on_one_replica_is_not_helped_by_the_others(of_gaps, latency):
    assert swing_of(of_gaps) == SWING
    waits = replace(of_gaps, limit=Target(latency, 99.0, 2.0))
    for able in (waits, replace(of_gaps, limit=None)):
        assert swing_of(able) == 0.0
    assert {usable_share(demand, 0.0) for demand in (1.0, 20.0)} == {1.0}


def test_where_chance_spreads_requests_a_larger_fleet_bears_no_more(of_gaps):
    by_chance = replace(of_gaps, served=replace(of_gaps.served, routed=BY_CHANCE))
    assert swing_of(by_chance) == 0.0


def bearing(load):
    return Felt(now=load, recent=load, mean=load, worst=load)


def looked(counts, seconds=15.0):
    found = Dispersion()
    for before, arrivals in pairwise(counts):
        found = found.after(before, arrivals, seconds)
    return found


@pytest.mark.parametrize("together", [1, 4, 25])
def test_arrivals_that_come_together_are_known_by_their_dispersion(together):
    counts = together * np.random.default_rng(7).poisson(200.0 / together, 4000)
    assert looked(counts.tolist()).root == pytest.approx(together**0.5, rel=0.1)


def test_one_jump_of_the_load_is_no_burstiness():
    draw = np.random.default_rng(7)
    counts = [*draw.poisson(100.0, 120).tolist(), *draw.poisson(1000.0, 120).tolist()]
    assert looked(counts).root < 1.3


def test_what_was_seen_of_arrivals_fades_and_silence_tells_nothing():
    bursty = looked([0.0, 400.0] * 60)
    assert bursty.root > 10.0
    assert bursty.after(0.0, 0.0, 1800.0).looks == bursty.looks / 2.0


@pytest.mark.parametrize("requests_per_second", [10.0, 40.0])
def test_bursts_of_all_users_together_are_as_large_at_any_rate(requests_per_second):
    draw = np.random.default_rng(7)
    together = draw.choice([0.5, 1.5], 4000)  # relative deviation 0.5
    counts = draw.poisson(15.0 * requests_per_second * together).tolist()
    found = looked(counts).bursts(1.0 / 15.0)  # where chance has a deviation of 1 with one a look
    assert found == pytest.approx(0.5 * (np.pi / 4.0) ** 0.5, rel=0.15)  # by distances
    assert looked(draw.poisson(15.0 * requests_per_second, 4000).tolist()).bursts(1.0) < 0.3


def test_arrivals_without_rates_tell_of_no_bursts():
    bursty = looked([0.0, 400.0] * 60)
    assert bursty.bursts(10.0) > 1.0
    assert Dispersion.read([bursty.deviations, bursty.looks]) == Dispersion()
    assert Dispersion.read([*astuple(bursty)]) == bursty
    assert Dispersion().bursts(10.0) == 0.0


def test_bursts_blur_gaps_and_nothing_else(of_gaps):
    bursty = looked([0.0, 400.0] * 60)
    mild = replace(bursty, deviations=2.0 * bursty.looks)
    assert blur_of(of_gaps, mild) == BLUR * mild.bursts(of_gaps.requests_per_second) > 0.1
    assert blur_of(of_gaps, Dispersion()) == 0.0
    assert blur_of(of_gaps, bursty) == BLUR * MOST_BURSTS
    assert blur_of(replace(of_gaps, limit=None), bursty) == 0.0


def test_a_blurred_edge_makes_more_late_below_it_and_fewer_above():
    sharp, blurred = (curve_of(prior(), 0.01, blur) for blur in (0.0, 0.6))
    low, high = np.searchsorted(LOG_RATIOS, (-1.0, 1.0))
    assert blurred[low] > 1.5 * sharp[low]
    assert blurred[high] < sharp[high]
    assert (np.diff(blurred) > 0.0).all()
    assert curve_of(prior(), 0.01, 0.01) == pytest.approx(sharp)  # too little to tell


def test_a_blurred_edge_is_known_to_be_a_sharp_one_by_its_bursts():
    known = prior()
    for load in (0.5, 0.7, 0.9, 1.1) * 10:
        told = Lateness(late=500.0 * (load > 1.0), count=1000.0)
        known = observed(known, evidence([(bearing(load), told)], 0.1), 0.01)
    blurred = curve_of(known, 0.01, 0.4)
    found = []
    for blur in (0.0, 0.4):
        belief = prior()
        for load in (0.5, 0.7, 0.9, 1.1) * 10:
            late = 1000.0 * float(np.interp(np.log(load), LOG_RATIOS, blurred))
            seen = evidence([(bearing(load), Lateness(late, 1000.0))], 0.1)
            belief = observed(belief, seen, 0.01, blur)
        found.append(summary(belief))
    (flat_strength, flat), (strength, steep) = found
    assert flat_strength < strength
    assert flat < 0.7 * steep


def test_what_comes_beyond_a_demand_strains_a_fleet_less_than_by_its_size():
    log_errors = np.linspace(-1.5, 3.0, 91)
    shares = np.zeros(91)
    shares[np.argmin(np.abs(log_errors - 1.0))] = 1.0
    strained = as_strain(shares, log_errors, 8.0, 1.0)
    came = 8.0 * np.exp(1.0)
    assert strained.sum() == pytest.approx(1.0)
    expected = np.log(strain(came, 1.0) / strain(8.0, 1.0))
    assert strained @ log_errors == pytest.approx(expected, abs=1e-6)
    assert expected < 1.0
    assert as_strain(shares, log_errors, 8.0, 0.0) is shares


def test_what_was_late_in_a_small_fleet_is_put_down_to_a_higher_load():
    late = Lateness(late=10.0, count=100.0)
    small, usual = (evidence([(bearing(0.7), late)], 1.0, share).late for share in (0.8, 1.0))
    loads = [float(np.exp(LOG_RATIOS) @ each / each.sum()) for each in (small, usual)]
    assert loads == pytest.approx([0.7 / 0.8, 0.7], rel=0.01)


def test_many_replicas_are_trusted_with_more_and_few_with_less(of_gaps):
    def load(demand):
        memory, foreseen = Memory(peak=100.0), ahead(demand)
        found = ratios(service(), memory, of_gaps, foreseen)
        borne = need(service(), memory, foreseen, found).borne
        assert borne == pytest.approx(found.foreseen.aim * usable_share(demand, SWING))
        return borne

    few, usual, many = (load(demand) for demand in (1.5, USUAL_DEMAND, 30.0))
    assert few < usual < many
