"""Who goes first out of turn: what all gain by it, and who must not lose."""

import pytest

from poolwise.plan.joint.bids import bid
from poolwise.plan.joint.outcome import Act
from poolwise.plan.joint.planning import plan
from poolwise.plan.joint.problem import Reservation, Rules
from poolwise.plan.joint.promotion import MOST_TURNS, Walked, promoted
from poolwise.plan.joint.rooms import Rooms
from poolwise.plan.joint.timeline import Timeline
from poolwise.plan.joint.walk import Walk
from tests.plan.joint.cluster_given import (
    BOTH,
    HOUR,
    by_key,
    job,
    option,
    pool,
    problem,
    running,
    starts,
)

POOL = pool("h100", 8, 8, 8)


def narrow(key, hours=20.0, **more):
    """A run on one node."""
    return job(key, option("h100", hours), **more)


def wide(key, hours=10.5, **more):
    """Such a run on two nodes: it uses a little more of the pool, and comes later in the queue."""
    return job(key, option("h100", hours, pods=2), **more)


def placed(*workloads, pools=(POOL,), optimise=True, **more):
    """Pools by who starts."""
    return starts(plan(problem(pools, *workloads, **more), optimise))


@BOTH
def test_a_gang_that_fills_the_pool_goes_before_one_that_leaves_half_of_it_idle(optimise):
    """Of 24 accelerators two narrow ones left 8 idle for 20 hours, and the gang waited so long."""
    found = placed(narrow("a"), narrow("c"), wide("b"), optimise=optimise)
    assert len(found) == 2
    assert "b" in found


def test_what_it_is_worth_is_told_to_both():
    found = by_key(plan(problem([POOL], narrow("a"), narrow("c"), wide("b"))))
    (passed,) = {"a", "c"} - {key for key, each in found.items() if each.act is Act.START}
    told = "which costs all together 4.9 % less time"
    assert found["b"].reason.endswith(f"; goes before {passed}, {told}")
    assert found[passed].because == f"b goes first, {told}"
    assert found[passed].starts == 10.5 * HOUR


def test_what_gains_nothing_to_speak_of_changes_nothing():
    """As long as the narrow ones: then it is the same who of them waits."""
    assert placed(narrow("a"), narrow("c"), wide("b", 20.0)).keys() == {"a", "c"}


def test_nobody_passes_over_who_has_waited_longer():
    """By hours: a few minutes are no reason to leave accelerators idle."""
    for hours, first in ((1, {"a", "b"}), (6, {"a", "c"})):
        older = narrow("a", created=-hours * HOUR), narrow("c", created=-hours * HOUR)
        assert placed(*older, wide("b")).keys() == first


def test_nobody_passes_over_who_is_far_shorter():
    """All who wait may lose less by it: those who come while it runs are not among them."""
    long = wide("b", 30.0, created=-14 * 24 * HOUR)  # and counts four times
    assert placed(narrow("a", 4.0), narrow("c", 8.0), long).keys() == {"a", "b"}
    assert placed(narrow("a", 4.0), narrow("c", 6.0), long).keys() == {"a", "c"}


def test_it_is_not_to_be_had_at_the_cost_of_one_that_has_waited_longer():
    """Beside the gang there is room for one of the two, and the shorter would take it."""
    old = narrow("c", 20.8, created=-6 * HOUR)
    assert placed(narrow("a"), old, wide("b")).keys() == {"a", "c"}
    assert placed(narrow("a"), narrow("c", 20.8), wide("b")).keys() == {"a", "b"}


@pytest.mark.parametrize("priority", [0, 10])
def test_tiers_are_strict(priority):
    """Nobody of a lower priority takes the place of one of a higher, whatever all lose by it."""
    first = narrow("a", priority=priority), narrow("c", priority=priority)
    found = placed(*first, wide("b", created=-HOUR))
    assert ("b" in found) == (priority == 0)


def test_who_must_start_now_for_its_deadline_is_not_passed_over():
    due = narrow("a", deadline=21 * HOUR), narrow("c", deadline=21 * HOUR)
    assert placed(*due, wide("b", created=-HOUR)).keys() == {"a", "c"}


def test_a_deadline_that_would_be_missed_weighs_more_than_idle_accelerators():
    due = narrow("a", deadline=29 * HOUR), narrow("c", deadline=29 * HOUR)
    assert placed(*due, wide("b", created=-HOUR)).keys() == {"a", "c"}


def test_the_share_of_a_namespace_is_no_reason_to_let_others_wait():
    rules = Rules(namespace_shares={"small": 0.5})
    found = placed(narrow("a"), narrow("c"), wide("b", namespace="small"), rules=rules)
    assert found.keys() == {"a", "c"}


def test_who_gives_way_starts_in_another_pool_where_it_has_room():
    pools = pool("h100", 8, 8), pool("a100", 8)
    here, there = option("h100", 20.0), option("a100", 22.0)
    found = placed(job("a", here, there), job("c", here, there), wide("b", 10.0), pools=pools)
    assert found.keys() >= {"b"}
    assert "a100" in found.values()


def test_what_is_booked_stays_with_who_has_waited_longer():
    """Room that a gang keeps is not free for one that came later, whatever it would fill."""
    held = running("held", option("h100", 5), {"h100-2": 1})
    booked = job("booked", option("h100", 2, pods=3), created=-6 * HOUR)
    kept = Reservation("booked", booked.options[0], 5 * HOUR)
    found = placed(
        narrow("a", 4.0), wide("b", 9.0), booked, held,
        pools=[pool("h100", 8, 8, 0)], reservations=(kept,),
    )  # fmt: skip
    assert found == {"a": "h100"}


def walked(workloads, *free):
    """Whether the queue is walked again."""
    bids = [bid(each, each.options, {}, 0.0, Rules()) for each in workloads]
    pools = [pool("h100", *free)]
    walks = []

    def walk():
        walks.append(Walk(Rooms(pools), Timeline(pools, (), 0.0), 0.0, {}, {}))
        return walks[-1]

    promoted(Walked.by(walk(), bids), walk, Rooms(pools))
    return len(walks) > 1


def test_the_queue_is_walked_again_only_where_one_start_may_matter():
    """Not where nothing is free, as in most passes, nor where hundreds wait."""
    work = narrow("a"), narrow("c"), wide("b")
    assert walked(work, 8, 8, 8)
    assert not walked([work[0], work[2]], 8, 0, 0), "no room for the gang"
    many = [narrow(f"many-{at:03}", 30.0) for at in range(MOST_TURNS)]
    assert walked([*work, *many[3:]], 8, 8, 8)
    assert not walked([*work, *many[2:]], 8, 8, 8)


def test_two_services_of_which_one_has_another_place_both_start():
    """The first would take the only place that the other one has."""
    both = job("first", option("p", None, cost_per_hour=1.0), option("q", None, cost_per_hour=9.0))
    only = job("only", option("p", None, cost_per_hour=1.0))
    assert placed(both, only, pools=[pool("p", 8), pool("q", 8)]) == {"first": "q", "only": "p"}
