"""Exchanges of pools: who gains by them, who must not lose, and what they leave free."""

import pytest

from poolwise.plan.joint.bids import LEVEL, bid
from poolwise.plan.joint.exchange import exchanged
from poolwise.plan.joint.items import Assignment, Choice, Floor, Item, Taken
from poolwise.plan.joint.problem import Rules
from tests.plan.joint.cluster_given import job, option, pool

FAST, SLOW = pool("fast", 8, 8), pool("slow", 8, 8)


def exchange(workloads, taken, pools=(FAST, SLOW), limits=None, worth=None):
    """The pools that everybody has after exchanges; a choice is worth the inverse of its seconds,
    unless ``worth`` tells it by workload and pool."""
    bids = {each.key: bid(each, each.options, {}, 0.0, Rules()) for each in workloads}

    def value(key, option):
        own = 1.0 / bids[key].offer_of(option).lateness_seconds
        return (worth or {}).get((key, option.pool), own)

    items = [
        Item(w.key, w.namespace, tuple(Choice(each, value(w.key, each)) for each in w.options))
        for w in workloads
    ]
    known = {item.key: {each.option.pool: each for each in item.choices} for item in items}
    starts = {key: Taken(known[key][at], nodes) for key, (at, nodes) in taken.items()}
    answer = exchanged(Assignment(starts), items, bids, Floor(tuple(pools), limits or {}))
    return {key: each.choice.option.pool for key, each in answer.taken.items()}


INDIFFERENT = job("indifferent", option("fast", 1.0), option("slow", 1.1))
HURT = job("hurt", option("fast", 1.0, pods=2), option("slow", 9.0, pods=2))
BADLY_PLACED = {
    "indifferent": ("fast", {"fast-0": 1}),
    "hurt": ("slow", {"slow-0": 1, "slow-1": 1}),
}


def test_two_who_gain_together_exchange_their_pools():
    assert exchange([INDIFFERENT, HURT], BADLY_PLACED) == {"indifferent": "slow", "hurt": "fast"}


def test_who_waits_gets_what_an_exchange_leaves_free():
    """One node was left idle in the slow pool, beside a run that waited for just that."""
    waits = job("waits", option("slow", 2.0))
    found = exchange([INDIFFERENT, HURT, waits], BADLY_PLACED)
    assert found == {"indifferent": "slow", "hurt": "fast", "waits": "slow"}


def test_who_is_worth_nothing_there_goes_on_waiting():
    waits = job("waits", option("slow", 2.0))
    found = exchange([INDIFFERENT, HURT, waits], BADLY_PLACED, worth={("waits", "slow"): 0.0})
    assert found == {"indifferent": "slow", "hurt": "fast"}


def test_an_exchange_without_room_changes_nothing():
    """Not for the next one either."""
    ahead = job("ahead", option("fast", 1.0, pods=3), option("third", 9.0))
    mine = job("indifferent", *INDIFFERENT.options, option("third", 1.1))
    placed = {**BADLY_PLACED, "ahead": ("third", {"third-0": 1})}
    found = exchange([ahead, mine, HURT], placed, (FAST, SLOW, pool("third", 8)))
    assert found == {"ahead": "third", "indifferent": "slow", "hurt": "fast"}


def test_without_an_exchange_the_answer_stays_as_the_queue_made_it():
    waits = job("waits", option("slow", 2.0))
    found = exchange([INDIFFERENT, waits], {"indifferent": ("fast", {"fast-0": 1})})
    assert found == {"indifferent": "fast"}


def test_an_exchange_keeps_within_the_share_of_a_namespace():
    """What it has is of its share, and free for what it gets."""
    large = job("hurt", option("fast", 1.0, pods=2), option("slow", 9.0), namespace="small")
    placed = {"indifferent": ("fast", {"fast-0": 1}), "hurt": ("slow", {"slow-0": 1})}
    pools = pool("fast", 8, 8), pool("slow", 8)
    assert exchange([INDIFFERENT, large], placed, pools)["hurt"] == "fast"
    assert exchange([INDIFFERENT, large], placed, pools, {"small": 16})["hurt"] == "fast"
    assert exchange([INDIFFERENT, large], placed, pools, {"small": 15})["hurt"] == "slow"


def urgent(key, *options, **more):
    return job(key, *options, priority=10, **more)


@pytest.mark.parametrize("first", [urgent, job])
def test_tiers_are_strict(first):
    """Who is of a higher priority keeps the pool that is better for it, whoever loses more."""
    mine = first("indifferent", *INDIFFERENT.options)
    found = exchange([mine, HURT], BADLY_PLACED)
    assert found["indifferent"] == ("fast" if first is urgent else "slow")


def test_who_is_first_exchanges_what_is_level_for_it():
    level = urgent("indifferent", option("fast", 1.0), option("slow", 1.0 + LEVEL / 2))
    assert exchange([level, HURT], BADLY_PLACED) == {"indifferent": "slow", "hurt": "fast"}


def test_who_is_first_exchanges_for_what_is_worth_no_less_with_the_delay_of_all():
    mine = urgent("indifferent", *INDIFFERENT.options)
    worth = {("indifferent", "fast"): 1e-4, ("indifferent", "slow"): 2e-4}
    found = exchange([mine, HURT], BADLY_PLACED, worth=worth)
    assert found == {"indifferent": "slow", "hurt": "fast"}


def test_a_service_keeps_its_pool_before_a_run():
    """It was given the place of twice the cost for good, so that a run lost no hours."""
    chat = job("indifferent", option("fast", None, cost_per_hour=1.0),
               option("slow", None, cost_per_hour=2.0))  # fmt: skip
    assert exchange([chat, HURT], BADLY_PLACED) == {"indifferent": "fast", "hurt": "slow"}
