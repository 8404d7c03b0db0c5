"""When room comes free, and what a gang keeps until then."""

import math

import pytest

from poolwise.plan.joint.rooms import Hold
from poolwise.plan.joint.timeline import Timeline
from tests.plan.joint.cluster_given import HOUR, option, pool, running


def timeline(free=(0, 0, 2)):
    """Two full nodes that end after 1 and 3 hours, and one with 2 of 8 free for ever."""
    first = running("first", option("p", 1), {"p-0": 1})
    second = running("second", option("p", 3), {"p-1": 1})
    service = running("service", option("p", None, each=6), {"p-2": 1})
    return Timeline([pool("p", *free)], [first, second, service], now=0.0)


def test_what_fits_may_start_now():
    assert timeline().earliest(option("p", 1, each=2)) == 0.0


def test_a_pod_waits_for_a_node_of_its_own_size():
    assert timeline().earliest(option("p", 1, each=8)) == 1 * HOUR
    assert timeline().earliest(option("p", 1, each=8, pods=2)) == 3 * HOUR


def test_nobody_can_tell_when_a_service_ends():
    assert timeline().earliest(option("p", 1, each=8, pods=3)) == math.inf
    assert timeline().earliest(option("gone", 1)) == math.inf


def test_who_waits_ahead_takes_the_first_room():
    line = timeline()
    line.book(option("p", 10, each=8), until=11 * HOUR)
    assert line.earliest(option("p", 1, each=8)) == 3 * HOUR
    line.book(option("p", 10, each=8), until=13 * HOUR)
    assert line.earliest(option("p", 1, each=8)) == 11 * HOUR


def test_who_starts_takes_its_nodes():
    line = timeline(free=(0, 0, 8))
    line.start(option("p", 2, each=1), {"p-2": 1}, until=2 * HOUR)
    assert line.earliest(option("p", 1, each=8)) == 1 * HOUR
    assert line.earliest(option("p", 1, each=7)) == 0.0
    assert line.after("p") == 1 * HOUR


def test_a_gang_holds_what_running_work_does_not_give_back():
    assert timeline().holds(option("p", 1, each=8, pods=2), "a") == ()
    holds = timeline(free=(0, 0, 2)).holds(option("p", 1, each=2, pods=3), "a")
    assert holds == (Hold("p-2", 2, 3 * HOUR, "a"),)


def test_a_level_waits_for_one_domain():
    apart = [
        running("a", option("p", 1), {"p-0": 1}),
        running("b", option("p", 9), {"p-1": 1}),
        running("c", option("p", 2), {"p-2": 1}),
        running("d", option("p", 3), {"p-3": 1}),
    ]
    line = Timeline([pool("p", 0, 0, 0, 0, rack=2)], apart, now=0.0)
    assert line.earliest(option("p", 1, pods=2)) == 2 * HOUR
    assert line.earliest(option("p", 1, pods=2, level="rack")) == 3 * HOUR


@pytest.mark.parametrize(
    ("wanted", "taken", "ever"),
    [
        pytest.param(option("p", 1, pods=2), {}, True, id="once-both-runs-end"),
        pytest.param(option("p", 1, pods=3), {}, False, id="a-service-keeps-its-node"),
        pytest.param(option("p", 1, pods=2), {"p-0": 1}, False, id="one-accelerator-is-lost"),
        pytest.param(option("p", 1, each=2, pods=4), {}, False, id="one-node-each"),
        pytest.param(option("p", 1, each=1, pods=3), {"p-2": 2}, False, id="nothing-left-there"),
        pytest.param(option("gone", 1), {}, False, id="no-such-pool"),
    ],
)
def test_whether_nodes_could_ever_be_empty_enough(wanted, taken, ever):
    assert timeline().holds_ever(wanted, taken) is ever
