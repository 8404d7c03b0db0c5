"""What a start is worth beside a wait."""

import pytest

from poolwise.plan.joint.bids import bid
from poolwise.plan.joint.problem import Rules
from poolwise.plan.joint.walk import Chance, Turn
from poolwise.plan.joint.worth import item_of
from tests.plan.joint.cluster_given import HOUR, job, option


@pytest.mark.parametrize("wait_hours", [0.5, 1.0, 8.0])
def test_a_start_is_worth_what_it_adds_to_the_wait(wait_hours):
    """A run of two hours that would wait for its room, and might have it now."""
    mine = bid(job("run", option("p", 2)), [option("p", 2)], {}, 0.0, Rules())
    cost_seconds = (wait_hours + 2) * HOUR
    waits = Chance(mine.offers[0], wait_hours * HOUR, cost_seconds, nodes=None)
    (choice,) = item_of(Turn(mine, (waits,)), now=0.0, all_weight=mine.weight).choices
    assert choice.value == pytest.approx(1 / (2 * HOUR) - 1 / ((2 + wait_hours) * HOUR))
