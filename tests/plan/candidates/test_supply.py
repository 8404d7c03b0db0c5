"""What spot nodes do to runs: expected time and cost, in numbers and in words."""

import math
import random
from dataclasses import replace

import pytest

from poolwise.plan.candidates.reasons import Verdict
from poolwise.plan.candidates.supply import expected_seconds, interruptions
from poolwise.settings import Settings
from tests.plan.children.given import h100_pool
from tests.plan.cluster_given import h100, job, plan_of

SPOT = {"karpenter.sh/capacity-type": "spot"}
CHECKPOINTS = {"claimName": "ckpt", "path": "/ckpt", "interval": "30m"}
HOUR = 3600.0


def simulated(run, interval, per_second, restart, seed):
    """The same run, step by step: each interval starts again until none of it is interrupted."""
    draw, passed = random.Random(seed), 0.0
    for _ in range(round(run / interval)):
        while (until := draw.expovariate(per_second)) < interval:
            passed += until + restart
        passed += interval
    return passed


def expected(pool, nodes, run_seconds, checkpoint_seconds):
    found = interruptions(pool, nodes, run_seconds, checkpoint_seconds, Settings())
    assert found is not None
    return found


@pytest.mark.parametrize("interval", [900.0, 1800.0, 36000.0])
def test_the_formula_is_the_mean_of_runs_that_are_interrupted_at_random(interval):
    given = 36000.0, interval, 1 / 20000.0, 600.0
    runs = [simulated(*given, seed) for seed in range(4000)]
    assert expected_seconds(*given) == pytest.approx(math.fsum(runs) / len(runs), rel=0.03)


def test_it_costs_half_an_interval_and_a_restart_where_interruptions_are_rare():
    rare = 1 / (1000 * HOUR)
    found = expected_seconds(100 * HOUR, 1800.0, rare, 600.0)
    assert found - 100 * HOUR == pytest.approx(100 * HOUR * rare * (900 + 600), rel=0.01)


def test_a_run_that_ends_before_its_first_checkpoint_loses_what_it_has_run():
    spot = replace(h100_pool(), capacity_type="Spot")
    at_its_end, days_later = (
        expected(spot, 2, HOUR, checkpoint_seconds) for checkpoint_seconds in (HOUR, 24 * HOUR)
    )
    assert days_later.expected_seconds == at_its_end.expected_seconds


def test_who_owns_his_nodes_is_not_interrupted():
    spot = replace(h100_pool(), capacity_type="Spot")
    never = Settings(spot_interruptions_per_node_hour=0)
    assert interruptions(h100_pool(), 2, HOUR, None, Settings()) is None
    assert interruptions(replace(spot, capacity_type="Reserved"), 2, HOUR, 60, Settings()) is None
    assert interruptions(spot, 2, HOUR, None, never) is None
    assert interruptions(spot, 2, HOUR, None, Settings()) is not None


def test_a_new_node_takes_its_time_too():
    spot = replace(h100_pool(), capacity_type="Spot")
    slow = replace(spot, node_startup_seconds=3900.0)
    lost = [expected(each, 1, 10 * HOUR, 600.0) for each in (spot, slow)]
    assert lost[1].lost_seconds - lost[0].lost_seconds == pytest.approx(2.3 * HOUR, rel=0.03)


def test_words():
    spot = replace(h100_pool(), capacity_type="Spot")
    told = expected(spot, 2, 10 * HOUR, 1800.0)
    assert told.words() == (
        "on 2 Spot nodes it is interrupted about every 2.17 h and goes back to a checkpoint up to"
        " 30 min old, which adds 25 % to its time"
    )
    alone = expected(spot, 1, 10 * HOUR, None)
    assert "on 1 Spot node it is interrupted about every 4.35 h" in alone.words()
    assert "(assumed: spec.checkpoint is not set)" in alone.words()


def test_many_spot_nodes_with_rare_checkpoints_get_nowhere():
    spot = replace(h100_pool(), capacity_type="Spot")
    found = expected(spot, 512, 1000 * HOUR, 24 * HOUR)
    assert found.is_hopeless
    assert found.words().endswith("up to 24 h old: it would hardly ever end")
    assert math.isfinite(found.expected_seconds)


def test_a_run_on_spot_nodes_takes_longer_and_costs_more_in_proportion():
    calm = plan_of(h100(2), job(count=16, checkpoint=CHECKPOINTS)).chosen
    spot = plan_of(h100(2, **SPOT), job(count=16, checkpoint=CHECKPOINTS)).chosen
    assert calm.lost_seconds is None
    assert spot.lost_seconds == pytest.approx(spot.total_seconds - calm.total_seconds)
    assert 1.1 < spot.total_seconds / calm.total_seconds < 1.4
    assert spot.total_cost / calm.total_cost == pytest.approx(
        spot.total_seconds / calm.total_seconds * spot.cost_per_hour / calm.cost_per_hour
    )
    assert "on 2 Spot nodes it is interrupted about every 2.17 h" in spot.reason


def test_whoever_wants_time_takes_calm_nodes_of_the_same_kind():
    nodes = [*h100(1), *h100(1, **SPOT)]
    nodes[1]["metadata"]["name"] = "spot-0"
    plan = plan_of(nodes, job(count=8, checkpoint=CHECKPOINTS))
    [spot] = [each for each in plan.candidates if not each.chosen]
    assert plan.chosen.lost_seconds is None
    assert spot.feasible
    assert spot.lost_seconds


def test_a_run_that_would_hardly_ever_end_is_refused_on_spot_nodes():
    training = {"globalBatchSize": 256, "sequenceLength": 4096, "tokens": "100G"}
    rare = {**CHECKPOINTS, "interval": "12h"}
    plan = plan_of(h100(2, **SPOT), job(count=16, training=training, checkpoint=rare))
    [only] = plan.candidates
    assert only.reason_code == Verdict.TOO_INTERRUPTED
    assert "up to 12 h old: it would hardly ever end" in only.reason
    often = plan_of(h100(2, **SPOT), job(count=16, training=training, checkpoint=CHECKPOINTS))
    assert often.placed
