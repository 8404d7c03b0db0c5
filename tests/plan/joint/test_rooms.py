"""Free accelerators are given to whole gangs, on the nodes that suit them."""

import pytest

from poolwise.plan.joint.problem import Option
from poolwise.plan.joint.rooms import Hold, Rooms
from tests.plan.joint.cluster_given import option, pool


def shared(pods: int, each: int = 1) -> Option:
    """Pods that may share nodes."""
    return Option("p", pods, each, None)


def test_a_pod_goes_to_the_node_with_the_least_that_is_enough():
    assert Rooms([pool("p", 8, 3, 4)]).fit(option("p", 1, each=3)) == {"p-1": 1}


def test_a_gang_is_whole_or_not_at_all():
    rooms = Rooms([pool("p", 8, 8, 4)])
    assert rooms.fit(option("p", 1, each=8, pods=3)) is None
    assert rooms.fit(option("p", 1, each=8, pods=2)) == {"p-0": 1, "p-1": 1}


@pytest.mark.parametrize(
    ("pods", "nodes"),
    [(3, {"p-1": 3}), (4, {"p-2": 4}), (9, {"p-0": 8, "p-1": 1}), (12, {"p-0": 8, "p-2": 4})],
)
def test_pods_that_may_share_take_the_fewest_nodes(pods, nodes):
    assert Rooms([pool("p", 8, 3, 4)]).fit(shared(pods)) == nodes


@pytest.mark.parametrize("free", [0, 8])
def test_no_pods_fit_anywhere(free):
    """A service of which somebody wants no replica, on a pool that others have filled."""
    assert Rooms([pool("p", free)]).fit(shared(0)) == {}


def test_what_is_taken_is_gone():
    rooms = Rooms([pool("p", 8)])
    gang = option("p", 1, each=5)
    nodes = rooms.fit(gang)
    assert nodes == {"p-0": 1}
    rooms.take(gang, nodes)
    assert rooms.free("p") == 3
    assert rooms.fit(gang) is None
    assert rooms.fit(option("p", 1, each=3)) == {"p-0": 1}


def test_a_level_wants_one_domain_and_the_smallest_that_is_enough():
    rooms = Rooms([pool("p", 8, 8, 8, 8, 8, 0, rack=2)])  # racks of 2, 2 and 1 free nodes
    assert rooms.fit(option("p", 1, pods=1, level="rack")) == {"p-4": 1}
    assert rooms.fit(option("p", 1, pods=2, level="rack")) == {"p-0": 1, "p-1": 1}
    assert rooms.fit(option("p", 1, pods=2, level="rack"), domain="r1") == {"p-2": 1, "p-3": 1}
    assert rooms.fit(option("p", 1, pods=3, level="rack")) is None
    assert rooms.fit(option("p", 1, pods=1, level="no-such-level")) is None


def test_what_is_held_is_for_those_who_end_before():
    rooms = Rooms([pool("p", 8, 8)])
    rooms.hold("p", [Hold("p-0", 8, 100.0, "gang")])
    assert rooms.fit(option("p", 1), until=99.0) == {"p-0": 1}
    assert rooms.fit(option("p", 1), until=101.0) == {"p-1": 1}
    assert rooms.fit(option("p", 1, pods=2), until=101.0) is None


def test_a_pool_that_is_not_there_has_no_room():
    rooms = Rooms([])
    assert rooms.fit(option("gone", 1)) is None
    assert rooms.free("gone") == 0


def test_a_node_that_promised_more_than_it_has_takes_nothing():
    rooms = Rooms([pool("p", -3, 8)])
    assert rooms.free("p") == 8
    assert rooms.fit(option("p", 1, pods=2)) is None
