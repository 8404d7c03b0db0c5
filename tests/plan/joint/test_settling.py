"""Where all start, whoever finds something better with room has it."""

import pytest

from poolwise.plan.joint.bids import bid
from poolwise.plan.joint.items import Assignment, Choice, Floor, Taken
from poolwise.plan.joint.problem import Rules
from poolwise.plan.joint.settling import lacking, settled
from tests.plan.joint.cluster_given import job, option, pool

POOLS = (pool("fast", 8), pool("slow", 8, 8))


def on_slow(*workloads):
    """All of them, with their bids."""
    taken = {
        each.key: Taken(Choice(each.options[1], 1.0), {f"slow-{at}": 1})
        for at, each in enumerate(workloads)
    }
    bids = [bid(each, each.options, {}, 0.0, Rules()) for each in workloads]
    return Assignment(taken), bids


@pytest.mark.parametrize(
    ("priority", "moved"),
    [pytest.param(0, "short", id="by-share"), pytest.param(1, "long", id="by-priority")],
)
def test_who_loses_most_has_what_is_free_first(priority, moved):
    """The short one would take three times as long, the long one twice."""
    long = job("long", option("fast", 10), option("slow", 20), priority=priority)
    answer, bids = on_slow(long, job("short", option("fast", 1), option("slow", 3)))
    assert lacking(answer, bids) == {"fast"}
    after = settled(answer, bids, Floor(POOLS))
    assert [key for key, each in after.taken.items() if each.choice.option.pool == "fast"] == [
        moved
    ]


def test_who_gives_its_place_up_leaves_it_to_the_next():
    """The first leaves the slow pool, which the second prefers to the one that it has."""
    first = job("first", option("fast", 1), option("slow", 3))
    answer, bids = on_slow(first)
    second = job("second", option("slow", 4), option("slowest", 5))
    placed = Taken(Choice(second.options[1], 1.0), {"slowest-0": 1})
    bids = [bid(second, second.options, {}, 0.0, Rules()), *bids]
    floor = Floor((pool("fast", 8), pool("slow", 8), pool("slowest", 8)))
    both = Assignment({"second": placed, **answer.taken})
    after = settled(both, bids, floor)
    assert {key: each.choice.option.pool for key, each in after.taken.items()} == {
        "first": "fast",
        "second": "slow",
    }
    assert lacking(after, bids) == set()
