"""Replicas of several pools behind a plain Service: all get the same share of the requests."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poolwise.plan.scaling.controller import decide
from poolwise.plan.scaling.decision import Remark
from poolwise.plan.scaling.portfolio import (
    PoolOffer,
    cost_per_hour,
    filled,
    grown,
    shrunk,
    weights,
    worth,
)
from poolwise.plan.scaling.service import Pool
from tests.plan.scaling.given import STEP_SECONDS, course, predictor, service

QUIET = [5.0] * 24
"""Requests per second, for longer than the five minutes in which nothing is taken away."""


def offers(*rows: tuple[float, float, int, int]) -> tuple[PoolOffer, ...]:
    """(worth, cost per hour, held, most) of pools ``a``, ``b``, ``c``."""
    return tuple(
        PoolOffer(pool, *row, is_even=True) for pool, row in zip("abc", rows, strict=False)
    )


def test_the_least_capable_bounds_what_each_may_get():
    both = offers((1.0, 10.0, 2, 2), (0.8, 6.0, 3, 9))
    assert worth({"a": 2, "b": 3}, both) == pytest.approx(5 * 0.8)
    assert worth({"a": 2}, both) == pytest.approx(2.0)
    stronger = offers((1.0, 10.0, 2, 2), (3.0, 40.0, 3, 9))
    assert worth({"a": 2, "b": 3}, stronger) == pytest.approx(5.0)


def test_the_first_pool_is_filled_and_the_rest_goes_to_the_next():
    assert grown(offers((1.0, 10.0, 2, 2), (1.5, 20.0, 0, 9)), 4.0, 10) == {"a": 2, "b": 2}
    assert grown(offers((1.0, 10.0, 2, 9), (1.5, 20.0, 0, 9)), 4.0, 10) == {"a": 4, "b": 0}


@pytest.mark.parametrize("is_even", [True, False])
@pytest.mark.parametrize(
    ("limit", "grows_to"),
    [
        (100.0, {"a": 2, "b": 3}),
        (60.0, {"a": 2, "b": 2}),
        (59.9, {"a": 2, "b": 1}),
        (20.0, {"a": 2, "b": 0}),
        (5.0, {"a": 2, "b": 0}),
    ],
)
def test_none_is_added_that_an_hour_may_not_cost(is_even, limit, grows_to):
    made = offers((1.0, 10.0, 2, 2), (1.0, 20.0, 0, 9))
    made = tuple(replace(each, is_even=is_even) for each in made)
    assert grown(made, 5.0, 10, limit) == grows_to


def test_a_cheaper_pool_is_taken_where_the_money_left_pays_only_that():
    apart = tuple(
        replace(each, is_even=False) for each in offers((1.0, 10.0, 1, 9), (1.0, 4.0, 0, 1))
    )
    assert grown(apart, 3.0, 10, 15.0) == {"a": 1, "b": 1}


@pytest.mark.parametrize("is_even", [True, False])
def test_a_pool_that_has_more_than_there_is_room_for_does_not_grow(is_even):
    """Replicas that do not start take room, and are none."""
    made = offers((1.0, 10.0, 3, 2), (1.0, 20.0, 0, 9))
    made = tuple(replace(each, is_even=is_even) for each in made)
    assert grown(made, 5.0, 10) == {"a": 3, "b": 2}


def test_from_nothing_the_cheapest_that_suffice_start():
    none = offers((1.0, 10.0, 0, 9), (0.5, 2.0, 0, 9))
    assert grown(none, 1.0, 10) == {"a": 0, "b": 2}
    assert grown(none, 1.0, 1) == {"a": 1, "b": 0}


def test_the_cheapest_are_filled_up_first_and_of_equals_the_pool_that_it_is_placed_on():
    dear, home, other = offers((1.0, 20.0, 0, 9), (1.0, 10.0, 1, 3), (1.0, 10.0, 0, 9))
    for first, second in ((home, other), (other, home)):
        there = {"a": 0, "b": 1, "c": 0}
        found = filled(there, (first, dear, second), 3)
        assert found == ({"a": 0, "b": 3, "c": 0} if first is home else {"a": 0, "b": 1, "c": 2})
    assert filled({"a": 0, "b": 1, "c": 0}, (home, dear), 5) == {"a": 2, "b": 3, "c": 0}
    assert filled({"a": 4, "b": 1, "c": 0}, (home, dear), 3) == {"a": 4, "b": 1, "c": 0}


def test_weak_replicas_come_only_in_numbers_that_pay():
    """One replica of half the capability beside two full ones would serve 1.5, less than none."""
    weak = offers((1.0, 10.0, 2, 2), (0.5, 2.0, 0, 9))
    assert grown(weak, 2.4, 10) == {"a": 2, "b": 3}
    assert grown(weak, 2.4, 4) == {"a": 2, "b": 0}


def test_replicas_that_turned_out_to_hold_the_others_back_go():
    assert grown(offers((1.0, 10.0, 4, 4), (1e-5, 2.0, 1, 9)), 4.0, 10) == {"a": 4, "b": 0}
    assert grown(offers((1.0, 10.0, 4, 4), (0.79, 2.0, 1, 1)), 4.0, 10) == {"a": 4, "b": 1}


def test_the_dearest_go_first_and_one_stays_where_the_service_is_placed():
    both = offers((1.0, 10.0, 2, 2), (1.5, 20.0, 2, 9))
    assert shrunk(both, 3.0, 1) == {"a": 2, "b": 1}
    assert shrunk(both, 1.6, 1) == {"a": 2, "b": 0}
    assert shrunk(both, 0.2, 1) == {"a": 1, "b": 0}
    cheaper = offers((1.0, 10.0, 2, 2), (1.0, 5.0, 2, 9))
    assert shrunk(cheaper, 2.0, 1) == {"a": 1, "b": 1}


def test_what_a_router_would_give_each_is_told_all_the_same():
    told = weights({"a": 2, "b": 2}, offers((1.0, 10.0, 2, 2), (1.5, 20.0, 2, 9)))
    assert told["b"] == pytest.approx(1.5 * told["a"])
    assert 2 * told["a"] + 2 * told["b"] == pytest.approx(1.0)


ROWS = st.tuples(
    st.sampled_from([0.3, 0.5, 0.8, 1.2, 2.0]),
    st.sampled_from([1.0, 4.0, 10.0]),
    st.integers(0, 3),
    st.integers(3, 5),
)


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 3), st.lists(ROWS, min_size=1, max_size=2), st.floats(0.1, 8.0))
def test_nothing_cheaper_is_enough(held, others, needed):
    """Against all mixes that keep what is there."""
    made = offers((1.0, 5.0, held, 4), *others)
    found = grown(made, needed, 10)
    assert all(found[each.pool] <= each.most for each in made)
    ranges = [range(each.held, each.most + 1) for each in made]
    every = [
        dict(zip("abc", counts, strict=False))
        for counts in itertools.product(*ranges)
        if sum(counts) <= 10
    ]
    enough = [each for each in every if worth(each, made) >= needed]
    if enough:
        assert worth(found, made) >= needed - 1e-6
        assert cost_per_hour(found, made) <= min(cost_per_hour(each, made) for each in enough)
    else:
        assert worth(found, made) >= max(worth(each, made) for each in every) - 1e-6


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 3), st.lists(ROWS, min_size=1, max_size=2), st.floats(0.1, 8.0))
def test_what_may_go_goes_and_no_more(held, others, needed):
    made = offers((1.0, 5.0, held, 4), *others)
    there = {each.pool: each.held for each in made}
    found = shrunk(made, needed, 1)
    assert found["a"] >= 1
    assert all(found[pool] <= count for pool, count in there.items())
    if worth(there, made) >= needed:
        assert worth(found, made) >= needed - 1e-6
        ranges = [range(1 if each.pool == "a" else 0, each.held + 1) for each in made]
        every = (dict(zip("abc", counts, strict=False)) for counts in itertools.product(*ranges))
        enough = [each for each in every if worth(each, made) >= needed]
        assert cost_per_hour(found, made) <= min(cost_per_hour(each, made) for each in enough)
    else:
        assert worth(found, made) >= worth(there, made)


def test_the_controller_goes_on_in_the_next_pool_and_says_where_all_are_full():
    pools = (
        Pool("h100", predictor(), 60.0, 10.0, most_replicas=2),
        Pool("a100", predictor("A100-SXM4-80GB"), 60.0, 12.0, most_replicas=6),
    )
    shared = service(pools=pools, is_even=True)
    so_far = course(shared, QUIET, replicas=2)
    fleet = so_far.fleet.after(40.0 * STEP_SECONDS)
    seen = fleet.seen(so_far.now_seconds + STEP_SECONDS, 40.0)
    decision = decide(shared, so_far.memory, seen)
    assert decision.by_pool["h100"] == 2 and decision.by_pool["a100"] > 0
    assert decision.replicas == sum(decision.by_pool.values())
    far = course(shared, [*QUIET, *[800.0] * 4], replicas=2).decision
    assert far.by_pool == {"h100": 2, "a100": 6}
    assert "room for 8" in far.remarks[Remark.AT_CAPACITY]
