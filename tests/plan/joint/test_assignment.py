"""The assignment against every other one that there could be."""

import itertools
import math
import random

import pytest

from poolwise.plan.joint.assignment import Assignment, assign, assigned, tiered
from poolwise.plan.joint.greedy import greedy
from poolwise.plan.joint.items import Choice, Floor, Item, Taken
from poolwise.plan.joint.problem import Option
from poolwise.plan.joint.rooms import Hold
from tests.plan.joint.cluster_given import option, pool


def item(key, *choices, namespace="research"):
    return Item(key, namespace, tuple(Choice(each, value) for each, value in choices))


def instance(seed, sizes):
    """A few gangs on a few nodes, more than fit."""
    random_ = random.Random(seed)
    pools = [
        pool(f"p{at}", *(random_.randint(0, 8) for _ in range(random_.randint(1, 3))), rack=2)
        for at in range(2)
    ]
    items = []
    for at in range(6):
        choices = []
        for each in pools:
            size, pods = random_.choice(sizes), random_.randint(1, 3)
            together = random_.random() < 0.5
            level = "rack" if random_.random() < 0.3 else ""
            shape = Option(each.name, pods, size, None, one_per_node=together, level=level)
            choices.append(Choice(shape, round(random_.lognormvariate(0, 1) * size * pods, 2)))
        items.append(Item(f"w{at}", "research", tuple(choices)))
    return items, pools


def ways(choice, pools):
    """Every way to put a gang on nodes: a count of pods for each."""
    nodes = next(each.nodes for each in pools if each.name == choice.option.pool)
    most = 1 if choice.option.one_per_node else choice.option.pods
    rooms = [range(min(most, n.free // choice.option.accelerators_per_pod) + 1) for n in nodes]
    for counts in itertools.product(*rooms):
        used = [n for n, count in zip(nodes, counts, strict=True) if count]
        racks = {n.domains["rack"] for n in used}
        if sum(counts) == choice.option.pods and (not choice.option.level or len(racks) == 1):
            yield {n.name: count for n, count in zip(nodes, counts, strict=True) if count}


def best_of_all(items, pools):
    """Branch and bound over items, choices and nodes, without any solver."""
    free = {node.name: node.free for each in pools for node in each.nodes}
    tops = [max(choice.value for choice in each.choices) for each in items]

    def search(at, worth, bound):
        if at == len(items):
            return worth
        if worth + sum(tops[at:]) <= bound:
            return bound
        for choice in items[at].choices:
            size = choice.option.accelerators_per_pod
            for nodes in ways(choice, pools):
                if all(free[name] >= count * size for name, count in nodes.items()):
                    for name, count in nodes.items():
                        free[name] -= count * size
                    bound = max(bound, search(at + 1, worth + choice.value, bound))
                    for name, count in nodes.items():
                        free[name] += count * size
        return max(bound, search(at + 1, worth, bound))

    return search(0, 0.0, 0.0)


def check(answer, pools):
    """Gangs are whole, nodes have room."""
    free = {node.name: node.free for each in pools for node in each.nodes}
    for taken in answer.taken.values():
        assert sum(taken.nodes.values()) == taken.choice.option.pods
        assert not taken.choice.option.one_per_node or set(taken.nodes.values()) == {1}
        for name, count in taken.nodes.items():
            free[name] -= count * taken.choice.option.accelerators_per_pod
    assert min(free.values()) >= 0


@pytest.mark.parametrize("sizes", [(1, 2, 4, 8), (1, 2, 3, 5, 7)], ids=["powers", "odd"])
@pytest.mark.parametrize("seed", range(12))
def test_no_other_assignment_is_worth_more(seed, sizes):
    items, pools = instance(seed, sizes)
    answer = assign(items, pools, time_limit_seconds=20.0)
    check(answer, pools)
    assert answer.solver == "milp"
    assert answer.objective == pytest.approx(best_of_all(items, pools))


@pytest.mark.parametrize("seed", range(20))
def test_the_greedy_answer_is_an_answer_and_never_better(seed):
    items, pools = instance(seed, (1, 2, 4, 8))
    alone = assign(items, pools, optimise=False)
    check(alone, pools)
    assert alone.solver == "greedy"
    assert alone.objective <= assign(items, pools, time_limit_seconds=20.0).objective + 1e-9


def test_without_time_the_greedy_answer_stands():
    items, pools = instance(3, (1, 2, 4, 8))
    floor = Floor(tuple(pools))
    assert assigned(items, floor, 0.0) == greedy(items, floor)


def test_a_namespace_takes_no_more_than_its_limit():
    items = [
        item(f"w{at}", (option("p", 1, each=4), 1.0 + at), namespace="a" if at else "b")
        for at in range(4)
    ]
    pools = [pool("p", 8, 8)]
    for optimise in (False, True):
        answer = assign(items, pools, {"a": 8}, 20.0, optimise)
        assert set(answer.taken) == {"w0", "w2", "w3"}


def test_what_is_worth_nothing_is_not_taken():
    answer = assign([item("w", (option("p", 1), 0.0)), item("v", (option("p", 1), -1.0))],
                    [pool("p", 8, 8)])  # fmt: skip
    assert answer.taken == {}


def test_room_that_is_held_is_for_the_short():
    long = Choice(option("p", 9), 5.0, until=900.0)
    short = Choice(option("p", 1), 1.0, until=100.0)
    floor = Floor((pool("p", 8),), holds={"p": (Hold("p-0", 8, 500.0, "gang"),)})
    items = [Item("long", "a", (long,)), Item("short", "a", (short,))]
    for seconds in (0.0, 20.0):
        assert set(assigned(items, floor, seconds).taken) == {"short"}


def test_an_empty_cluster_assigns_nothing():
    assert assign([], []).taken == {}
    assert assign([item("w", (option("p", 1), 1.0))], []).taken == {}


def test_the_optimiser_gives_up_a_large_gang_for_many_small_ones_that_are_worth_more():
    """By value per accelerator the large one comes first, and leaves room for one."""
    items = [item("large", (option("p", 1, each=5), 5.1))]
    items += [item(f"small-{at}", (option("p", 1, each=4), 4.0)) for at in range(2)]
    answer = assign(items, [pool("p", 8)], time_limit_seconds=20.0)
    assert set(answer.taken) == {"small-0", "small-1"}
    assert math.isclose(answer.objective, 8.0)


@pytest.mark.parametrize(
    ("gangs", "taken"),
    [
        pytest.param([(8, 10.0)] + [(1, 2.0)] * 8, 16.0, id="by-value-per-accelerator"),
        pytest.param([(8, 4.0), (1, 2.0)], 4.0, id="by-value"),
        pytest.param([(8, 8.0), (1, 2.9), (1, 2.9), (4, 6.0), (4, 6.0)], 12.0, id="by-both"),
    ],
)
def test_the_greedy_answer_is_the_best_of_its_orders(gangs, taken):
    """(accelerators, value) of each; no other order finds as much."""
    items = [
        item(f"w{at}", (option("p", 1, each=each), value)) for at, (each, value) in enumerate(gangs)
    ]
    assert greedy(items, Floor((pool("p", 8),))).objective == pytest.approx(taken)


def test_pods_that_counted_slots_cannot_place_are_placed_node_by_node():
    """Only with the large pod on the node of 8, beside one of the three, is there room for all."""
    three, large = Option("p", 3, 3, None), Option("p", 1, 5, None)
    items = [item("three", (three, 15.0)), item("large", (large, 6.0))]
    answer = assign(items, [pool("p", 7, 8)], time_limit_seconds=20.0)
    assert answer.taken["three"].nodes == {"p-0": 2, "p-1": 1}
    assert answer.taken["large"].nodes == {"p-1": 1}


def test_a_tier_is_optimised_on_what_the_ones_before_left():
    first = [item("large", (option("p", 1, each=5), 5.1))]
    first += [item(f"small-{at}", (option("p", 1, each=4), 4.0)) for at in range(2)]
    then = [item("then", (option("p", 1, each=4), 100.0), (option("q", 1, each=4), 1.0))]
    floor = Floor((pool("p", 8), pool("q", 8)))
    answer = tiered([first, then], floor, 20.0, Assignment({}))
    assert set(answer.taken) == {"small-0", "small-1", "then"}
    assert answer.taken["then"].choice.option.pool == "q"
    assert answer.objective == pytest.approx(9.0)


@pytest.mark.parametrize(
    ("nodes", "limit", "possible"),
    [
        pytest.param({"p-0": 1}, 8, True, id="all-of-a-node"),
        pytest.param({"p-0": 2}, 16, False, id="a-node-twice"),
        pytest.param({"p-0": 1, "p-1": 1}, 8, False, id="more-than-its-share"),
    ],
)
def test_what_is_left_tells_what_was_given_away_twice(nodes, limit, possible):
    taken = Taken(Choice(option("p", 1, pods=sum(nodes.values())), 1.0), nodes)
    floor = Floor((pool("p", 8, 8),), {"research": limit})
    assert floor.without([("research", taken)]).is_possible is possible
