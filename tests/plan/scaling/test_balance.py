"""How alike replicas' requests in flight are, and what that says of their router."""

from __future__ import annotations

import heapq

import numpy as np
import pytest

from poolwise.model.serving.routing import Routed
from poolwise.model.work import Metric, Target
from poolwise.plan.scaling.balance import Balance
from poolwise.plan.scaling.capability import capability
from poolwise.plan.scaling.memory import Memory
from tests.plan.scaling.given import predictor, service

REPLICAS, LOOKS, STEP_SECONDS = 10, 30, 15.0


def _seen(looks: list[list[float]], balance: Balance | None = None) -> Balance:
    found = balance or Balance()
    for counts in looks:
        found = found.after([counts], STEP_SECONDS)
    return found


def _by_chance(mean: float, seed: int = 1) -> list[list[float]]:
    draw = np.random.default_rng(seed)
    return [[float(each) for each in look] for look in draw.poisson(mean, (LOOKS, REPLICAS))]


def _least_outstanding(mean: float, seed: int = 1) -> list[list[float]]:
    """Requests that stay for an exponential time, each sent to who has fewest."""
    draw = np.random.default_rng(seed)
    looks, leaving = list[list[float]](), list[tuple[float, int]]()
    counts, now = [0.0] * REPLICAS, 0.0
    while len(looks) < LOOKS:
        now += draw.exponential(1.0 / (mean * REPLICAS))
        while leaving and leaving[0][0] <= now:
            counts[heapq.heappop(leaving)[1]] -= 1.0
        chosen = counts.index(min(counts))
        counts[chosen] += 1.0
        heapq.heappush(leaving, (now + draw.exponential(), chosen))
        if now > 10.0 + len(looks):
            looks.append(list(counts))
    return looks


def test_before_anything_is_seen_prompts_come_by_chance_and_gaps_are_a_routers() -> None:
    assert Balance().routed == Routed(peers=1.0, apart_share=1.0)


@pytest.mark.parametrize("mean", [0.5, 3.0, 40.0])
def test_counts_that_chance_makes_tell_of_no_router(mean: float) -> None:
    told = _seen(_by_chance(mean)).routed
    assert told.peers <= 1.5
    assert told.apart_share <= 0.4


@pytest.mark.parametrize("mean", [0.5, 3.0, 40.0])
def test_counts_that_are_alike_tell_of_one(mean: float) -> None:
    told = _seen(_least_outstanding(mean)).routed
    assert told.peers == pytest.approx(REPLICAS, rel=0.4)
    assert told.apart_share == 1.0


def test_a_router_that_is_put_before_a_service_is_found_out_and_one_that_goes() -> None:
    before = _seen(_by_chance(5.0) * 4)
    with_it = _seen(_least_outstanding(5.0) * 16, before)
    without = _seen(_by_chance(5.0, seed=2) * 16, with_it)
    assert before.routed.peers < 1.5 < 6.0 < with_it.routed.peers
    assert without.routed.peers < 2.0


def test_the_noise_of_gauges_is_not_taken_for_chance() -> None:
    draw = np.random.default_rng(1)
    told = np.array(_least_outstanding(30.0)) * (1.0 + 0.05 * draw.standard_normal((1, REPLICAS)))
    assert _seen(told.tolist()).routed.peers > 0.6 * REPLICAS


def test_one_replica_and_idle_ones_tell_nothing() -> None:
    assert _seen([[4.0]] * LOOKS) == Balance()
    assert _seen([[0.0] * REPLICAS] * LOOKS).routed == Balance().routed


def test_a_queue_of_one_replica_is_bounded() -> None:
    """One look at a queue of thousands outweighs no hour of looks."""
    seen = _seen([[5.0] * 9 + [5000.0]], _seen(_least_outstanding(5.0) * 4))
    assert seen.routed.peers > 1.0


def test_it_survives_a_restart() -> None:
    balance = _seen(_least_outstanding(3.0))
    document = Memory(balance=balance).as_mapping()
    assert Memory.read(document).balance == balance
    del document["balance"]
    assert Memory.read(document).balance == Balance()


def test_replicas_behind_a_router_bear_more_where_prompts_wait_for_each_other() -> None:
    mix, targets = predictor().prior_mix, service().targets[:1]
    one, ten = (
        capability(predictor(), mix, targets, 1.0, Routed(peers)).requests_per_second
        for peers in (1.0, 10.0)
    )
    assert one < ten


def test_they_bear_more_where_gaps_between_tokens_are_late() -> None:
    """Since a replica seldom gets two requests at once."""
    mix, targets = predictor().prior_mix, (Target(Metric.TPOT, 99.0, 0.03),)
    by_chance, apart = (
        capability(predictor(), mix, targets, 1.0, Routed(apart_share=each)).requests_per_second
        for each in (0.0, 1.0)
    )
    assert by_chance < apart
