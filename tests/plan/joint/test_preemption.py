"""Nothing that runs is stopped, unless it is allowed, cheap enough, and of lower priority."""

from dataclasses import replace

import pytest

from poolwise.plan.joint.planning import plan
from poolwise.plan.joint.problem import Rules, Running
from tests.plan.joint.cluster_given import HOUR, job, option, pool, problem, running

MAY = Rules(may_preempt=True)


def low(key, node, hours=100.0, restart_hours=0.5, priority=0, is_movable=True):
    """Holds a node for so long."""
    held = running(
        key, option("p", hours), {node: 1},
        restart_seconds=restart_hours * HOUR, is_movable=is_movable,
    )  # fmt: skip
    return type(held)(held.key, held.namespace, held.created, held.options, priority, held.running)


def stopped(*workloads, rules=MAY):
    """Victims by who gets their room."""
    pools = [pool("p", 0, 0)]
    found = plan(problem(pools, *workloads, rules=rules)).preemptions
    return {each.key: [victim.key for victim in each.victims] for each in found}


URGENT = job("urgent", option("p", 10), priority=9)
GANG = job("gang", option("p", 10, pods=2), priority=9)


def test_nothing_is_stopped_by_default():
    assert stopped(URGENT, low("a", "p-0"), low("b", "p-1"), rules=Rules()) == {}


def test_who_loses_least_is_stopped():
    dear, cheap = low("a", "p-0", restart_hours=2.0), low("b", "p-1", restart_hours=0.5)
    assert stopped(URGENT, dear, cheap) == {"urgent": ["b"]}


def test_the_lowest_priority_is_stopped_first():
    above, below = low("a", "p-0", restart_hours=0.1, priority=5), low("b", "p-1")
    assert stopped(URGENT, above, below) == {"urgent": ["b"]}


def test_a_gang_gets_as_many_as_it_needs_and_no_more():
    assert stopped(GANG, low("a", "p-0"), low("b", "p-1")) == {"gang": ["a", "b"]}
    assert stopped(URGENT, low("a", "p-0"), low("b", "p-1")) == {"urgent": ["a"]}


def test_who_is_not_needed_after_all_is_spared_by_priority():
    """Six of one node are asked for: the highest of the three there has to stop, and of the others
    one is enough: the lower, though it loses more."""

    def part(key, each, priority, restart_hours):
        held = low(key, "p-0", restart_hours=restart_hours, priority=priority)
        assert held.running is not None
        return replace(held, running=replace(held.running, option=option("p", 100.0, each=each)))

    there = [part("low", 2, 0, 2.0), part("middle", 2, 3, 0.1), part("high", 4, 5, 0.1)]
    asks = job("urgent", option("p", 10, each=6), priority=9)
    (found,) = plan(problem([pool("p", 0)], asks, *there, rules=MAY)).preemptions
    assert [victim.key for victim in found.victims] == ["high", "low"]


def test_whose_room_is_no_help_goes_on():
    """The cheapest holds half a node, of which the rest is not to be had."""
    half = replace(low("half", "p-0", restart_hours=0.1), running=Running(
        option("p", 100.0, each=4), {"p-0": 1}, since=-1000 * HOUR,
        restart_seconds=0.1 * HOUR, is_movable=True,
    ))  # fmt: skip
    others = [low("b", "p-1"), low("c", "p-2")]
    given = problem([pool("p", 0, 0, 0)], GANG, half, *others, rules=MAY)
    (found,) = plan(given).preemptions
    assert [victim.key for victim in found.victims] == ["b", "c"]


def test_a_node_that_is_gone_is_no_room():
    assert stopped(URGENT, low("a", "gone"), low("b", "p-1")) == {"urgent": ["b"]}
    assert stopped(GANG, low("a", "gone"), low("b", "p-1")) == {}


@pytest.mark.parametrize("priority", [9, 10])
def test_nobody_is_stopped_for_an_equal(priority):
    assert stopped(URGENT, low("a", "p-0", priority=priority)) == {}


def test_what_keeps_no_checkpoints_is_never_stopped():
    assert stopped(GANG, low("a", "p-0"), low("b", "p-1", is_movable=False)) == {}


@pytest.mark.parametrize(
    ("hours", "is_stopped"), [(0.5, False), (1.2, False), (1.8, True), (5.0, True)]
)
def test_a_short_wait_is_cheaper_than_a_restart(hours, is_stopped):
    """An hour is lost, times the margin of 1.5."""
    held = [low(f"x{at}", f"p-{at}", hours=hours, restart_hours=1.0) for at in range(2)]
    assert bool(stopped(URGENT, *held)) == is_stopped


def test_what_started_lately_goes_on():
    held = low("a", "p-0")
    lately = type(held.running)(
        held.running.option, held.running.nodes, since=-60.0, is_movable=True
    )
    young = type(held)(held.key, held.namespace, held.created, (), 0, lately)
    assert stopped(URGENT, young) == {}


def test_the_victim_is_told_for_whom_and_what_it_loses():
    (found,) = plan(problem([pool("p", 0)], URGENT, low("a", "p-0"), rules=MAY)).preemptions
    told = found.reason(found.victims[0])
    assert told == (
        "stopped for urgent, which has a higher priority and needs 8 accelerators of p;"
        " loses about 30 min of 8 accelerators"
    )


def test_one_workload_at_a_time_gets_its_way():
    second = job("second", option("p", 10), priority=8)
    assert list(stopped(URGENT, second, low("a", "p-0"), low("b", "p-1"))) == ["urgent"]


def test_a_priority_that_preempts_nobody_waits():
    polite = job("polite", option("p", 10), priority=9, may_preempt=False)
    assert stopped(polite, low("a", "p-0")) == {}
