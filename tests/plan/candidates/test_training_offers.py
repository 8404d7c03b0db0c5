"""Which of several counts of accelerators a run takes."""

from __future__ import annotations

import math
from typing import Any

import pytest

from poolwise.plan.candidates.training.offers import TrainingOffer, preferred
from poolwise.plan.requests.request import Goal

WHOLE: Any = None
"""Neither gang nor shape matters here."""
HALF = 0.5
"""Of the speed that each accelerator adds at the smallest count."""


def offer(count: int, hours: float, cost: float | None) -> TrainingOffer:
    per_hour = None if cost is None else cost / hours
    return TrainingOffer(count, WHOLE, WHOLE, hours * 3600.0, per_hour, energy_joules=count * hours)


EVERY = [offer(8, 29.5, 1624.0), offer(64, 3.73, 1642.0), offer(128, 1.89, 1663.0)]


def taken(goal: Goal, most_hours: float = math.inf) -> int:
    in_time = [each for each in EVERY if each.elapsed_seconds <= most_hours * 3600.0]
    return preferred(in_time, EVERY, goal, HALF).count


def test_of_counts_that_cost_the_same_the_fastest_is_taken():
    assert taken(Goal.COST) == 64, "1.1 % more than 8 accelerators; 128 cost 2.4 % more"
    assert taken(Goal.TIME) == 128


@pytest.mark.parametrize("most_hours", [4.0, 12.0, 40.0])
def test_a_deadline_that_is_met_anyway_changes_nothing(most_hours):
    """It leaves out the cheapest count, and had one look as cheap as what was left."""
    assert taken(Goal.COST, most_hours) == 64


def test_where_a_deadline_leaves_dear_counts_alone_the_cheapest_of_them_is_taken():
    assert taken(Goal.COST, 2.0) == 128


def test_without_a_price_the_fewest_are_taken():
    unpriced = [offer(8, 29.5, None), offer(64, 3.73, None)]
    assert preferred(unpriced, unpriced, Goal.COST, HALF).count == 8
