"""A small fleet bears less of its load than a large one, where gaps between tokens decide."""

from dataclasses import replace

import numpy as np
import pytest

from poolwise.plan.scaling.capability import capability
from poolwise.plan.scaling.evidence import evidence
from poolwise.plan.scaling.fragility import LOG_RATIOS, Lateness
from poolwise.plan.scaling.memory import Felt, Memory
from poolwise.plan.scaling.service import Latency, LatencyTarget
from poolwise.plan.scaling.sizing import ratios
from poolwise.plan.scaling.swings import LEAST_DEMAND, SWING, USUAL_DEMAND, usable_share
from tests.plan.scaling.given import service
from tests.plan.scaling.test_sizing import ahead


@pytest.fixture(scope="module")
def of_gaps():
    able = capability_of(service())
    return replace(able, limit=LatencyTarget(Latency.TPOT, 99.0, 0.1))


def capability_of(given):
    pool = given.pools[0]
    return capability(pool.predictor, pool.predictor.prior_mix, given.targets, 1.0)


def test_a_larger_fleet_bears_more_of_its_load(of_gaps):
    shares = [usable_share(of_gaps, demand) for demand in (0.1, LEAST_DEMAND, 2.0, 8.0, 1e9)]
    assert shares == sorted(shares)
    assert shares[0] == shares[1] < 1.0 < shares[3]
    assert shares[-1] == pytest.approx(2.718281828 ** (SWING / USUAL_DEMAND**0.5), rel=1e-3)
    assert usable_share(of_gaps, USUAL_DEMAND) == 1.0


@pytest.mark.parametrize("latency", [Latency.TTFT, Latency.E2E])
def test_who_waits_on_one_replica_is_not_helped_by_the_others(of_gaps, latency):
    waits = replace(of_gaps, limit=LatencyTarget(latency, 99.0, 2.0))
    for able in (waits, replace(of_gaps, limit=None)):
        assert {usable_share(able, demand) for demand in (1.0, 20.0)} == {1.0}


def test_what_was_late_in_a_small_fleet_is_put_down_to_a_higher_load():
    late = Lateness(late=10.0, count=100.0)
    bore = Felt(now=0.7, recent=0.7, mean=0.7, worst=0.7)
    small, usual = (evidence([(bore, late)], 1.0, share).late for share in (0.8, 1.0))
    loads = [float(np.exp(LOG_RATIOS) @ each / each.sum()) for each in (small, usual)]
    assert loads == pytest.approx([0.7 / 0.8, 0.7], rel=0.01)


def test_many_replicas_are_trusted_with_more_and_few_with_less(of_gaps):
    def load(demand):
        return ratios(service(), Memory(), of_gaps, ahead(demand)).foreseen.aim

    few, usual, many = (load(demand) for demand in (1.5, USUAL_DEMAND, 30.0))
    assert few < usual < many
    assert many / usual == pytest.approx(usable_share(of_gaps, 30.0), rel=1e-6)
