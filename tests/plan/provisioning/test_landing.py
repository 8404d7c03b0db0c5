"""Claims on nodes to come: never more than there may be, and on the nodes that came in the end."""

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from poolwise.plan.cluster import decide
from poolwise.plan.ledger.growth import is_to_come
from poolwise.plan.memo import Memo
from poolwise.settings import Settings
from tests.plan.cluster_given import NOW, foreign_pod, held, job, key, observed, service
from tests.plan.machines import CALIBRATION, TABLES
from tests.plan.provisioning.given import created, decided_at, growing, node, pods

MEMO = Memo()


def quickly(nodes, *workloads, **more):
    seen = observed(nodes, *workloads, **more)
    return decide(seen, TABLES, Settings(), CALIBRATION, NOW, MEMO)


def free_of(nodes, *workloads, **more):
    """Accelerators that a further job may have: the largest that is placed."""
    for count in (64, 56, 48, 40, 32, 24, 16, 8, 4, 2, 1):
        probe = job("probe", count, -1)
        if decided_at(NOW, nodes, *workloads, probe, **more).outcomes[key("probe")].placed:
            return count
    return 0


def test_a_node_that_came_is_kept_for_those_who_wait_for_it():
    """Its pods are not bound yet: the device plugin has only just started."""
    wide = job("wide", 16)
    given_ = {"pools": [growing(max_nodes=2)]}
    children = created([], wide, **given_)
    waiting = pods(children[0], None, None)
    for nodes in ([], [node("a")], [node("a"), node("b")]):
        assert free_of(nodes, wide, **given_, children=children, pods=waiting) == 0


def test_a_claim_settles_where_its_pods_are_bound():
    wide = job("wide", 16)
    given_ = {"pools": [growing(max_nodes=3)]}
    children = created([], wide, **given_)
    nodes = [node("a"), node("b"), node("c")]
    bound = pods(children[0], "b", "c")
    probe = job("probe", 8)
    found = decided_at(NOW, nodes, wide, probe, **given_, children=children, pods=bound)
    assert found.outcomes[key("probe")].claim.accelerators_by_node == {"a": 8}
    assert found.pools[0].awaited_nodes == 0


def test_a_node_that_became_free_is_taken_by_who_waits_for_new_ones():
    wide, given_ = job("wide", 16), {"pools": [growing(max_nodes=3)]}
    children = created([node("a")], wide, **given_, pods=[foreign_pod("a", 8)])
    found = decided_at(NOW, [node("a")], wide, **given_, children=children)
    assert found.pools[0].awaited_nodes == 1


def test_a_busy_node_is_not():
    wide, given_ = job("wide", 16), {"pools": [growing(max_nodes=3)]}
    busy = [foreign_pod("a", 8)]
    children = created([node("a")], wide, **given_, pods=busy)
    found = decided_at(NOW, [node("a")], wide, **given_, children=children, pods=busy)
    assert found.pools[0].awaited_nodes == 2


def test_services_share_a_node_while_it_comes():
    twins = [service("one"), service("two")]
    found = decided_at(NOW, [], *twins, pools=[growing(max_nodes=1)])
    assert all(outcome.placed for outcome in found.outcomes.values())
    assert found.pools[0].awaited_nodes == 1


def test_the_ranks_of_a_gang_land_on_different_nodes():
    """Half nodes: two ranks would fit on one, and their anti-affinity keeps them apart."""
    wide = job("wide", 12)
    given_ = {"pools": [growing(max_nodes=3)]}
    children = created([], wide, **given_)
    count = len(
        decided_at(NOW, [], wide, **given_).outcomes[key("wide")].claim.accelerators_by_node
    )
    found = decided_at(NOW, [node("a")], wide, **given_, children=children)
    assert found.pools[0].awaited_nodes == count - 1


def test_fewer_nodes_than_were_promised_hold_nothing_for_others():
    wide, children = job("wide", 32), created([], job("wide", 32), pools=[growing(max_nodes=4)])
    smaller = {"pools": [growing(max_nodes=2)], "children": children}
    assert free_of([], wide, **smaller) == 0
    assert decided_at(NOW, [], wide, **smaller).pools[0].awaited_nodes <= 4


def test_what_no_node_to_come_can_hold_takes_nothing_from_smaller_ones():
    """Nodes of eight were promised; those that came, and are to come, have four."""
    whole, children = job("whole", 8), created([], job("whole", 8), pools=[growing(max_nodes=2)])
    smaller = {"pools": [growing(max_nodes=2)], "children": children}
    assert free_of([node("a", gpus=4)], whole, **smaller) == 8


def test_small_pods_leave_whole_nodes_to_those_who_were_promised_one():
    """Whoever is bound first: a replica's claim does not land on the node that a gang needs."""
    first = [job("whole", 8), service("small"), job("half", 4)]
    given_ = {"pools": [growing(max_nodes=2)]}
    children = created([], *first, **given_)
    half = next(each for each in children if each["metadata"]["name"] == "half")
    given_ |= {"children": children, "pods": pods(half, "n1")}
    late = decided_at(NOW, [node("n0"), node("n1")], *first, job("late", 4), **given_)
    assert not late.outcomes[key("late")].placed


drawn_workloads = st.lists(
    st.one_of(
        st.tuples(st.just("job"), st.sampled_from([1, 4, 8, 12, 16, 24])),
        st.tuples(st.just("service"), st.sampled_from(["1", "9"])),
    ),
    min_size=1,
    max_size=6,
)


def made(drawn):
    return [
        job(f"w{index}", size) if kind == "job" else service(f"w{index}", size)
        for index, (kind, size) in enumerate(drawn)
    ]


@settings(max_examples=40, deadline=None)
@given(drawn_workloads, st.integers(0, 3), st.integers(0, 5), st.integers(0, 8))
def test_no_node_to_come_is_promised_twice(drawn, present, max_nodes, busy):
    """And there are never more of them than ``maxNodes`` leaves."""
    nodes = [node(f"n{index}") for index in range(present)]
    others = [foreign_pod("n0", busy)] if present and busy else []
    found = quickly(nodes, *made(drawn), pools=[growing(max_nodes=max_nodes)], pods=others)
    taken = held(found)
    assert all(count <= 8 for count in taken.values())
    assert taken["n0"] <= 8 - (busy if others else 0)
    to_come = [name for name in taken if is_to_come(name)]
    assert len(to_come) <= max(0, max_nodes - present)
    assert found.pools[0].awaited_nodes == len(to_come)


@settings(max_examples=40, deadline=None)
@given(drawn_workloads, st.integers(1, 5), st.data())
def test_what_is_promised_stays_promised_while_nodes_come(drawn, max_nodes, data):
    """Whatever nodes come and whichever pods are bound first, others are promised only the rest."""
    first = made(drawn)
    given_ = {"pools": [growing(max_nodes=max_nodes)]}
    children = created([], *first, **given_)
    came = [node(f"n{index}") for index in range(data.draw(st.integers(0, max_nodes)))]
    bound, room = [], Counter({each["metadata"]["name"]: 8 for each in came})
    for child in children:
        bound += _scheduled(child, room, data)
    late = [job(f"late{index}", size) for index, size in enumerate([8, 4, 1])]
    found = quickly(came, *first, *late, **given_, children=children, pods=bound)
    taken = Counter({name: 8 - left for name, left in room.items()})
    for each in late:
        claim = found.outcomes[key(each["metadata"]["name"])].claim
        taken.update(claim.accelerators_by_node if claim else {})
    assert max(taken.values(), default=0) <= 8
    assert len(set(taken) | set(room)) <= max_nodes
    assert found.pools[0].awaited_nodes <= max_nodes - len(came)
    if not bound:  # nothing is where it is in the way: all that was promised fits beside the rest
        assert sum(map(_asked, children)) + sum(taken.values()) <= 8 * max_nodes


def _asked(child):
    template = child["spec"]["template"]["spec"]["containers"][0]
    each = int(template["resources"]["limits"]["nvidia.com/gpu"])
    return each * _count(child)


def _count(child):
    return child["spec"].get("completions") or child["spec"].get("replicas") or 0


def _scheduled(child, room, data):
    """Some of its pods bound as the scheduler would: anywhere with room, ranks on nodes of their
    own."""
    each = _asked(child) // max(1, _count(child))
    is_gang, states, used = child["kind"] == "Job", [], set()
    for _ in range(_count(child)):
        fitting = [n for n in sorted(room) if room[n] >= each and not (is_gang and n in used)]
        place = data.draw(st.sampled_from([None, *fitting]))
        if place:
            room[place] -= each
            used.add(place)
        states.append(place)
    return pods(child, *states)
