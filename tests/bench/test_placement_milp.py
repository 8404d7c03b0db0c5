"""The exact programme against trying everything, and openb's rules on a few nodes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence

import pytest

from bench.placement import assignments, milp, openb
from bench.placement.openb_nodes import Machine, Pod
from bench.placement.openb_ours import Ours
from poolwise.plan.joint.items import Choice
from poolwise.plan.joint.problem import NodeState


def small(seed: int) -> milp.Instance:
    given = milp.instance(seed)
    items = tuple(
        item.__class__(item.key, item.namespace, item.choices[:3])
        for item in given.items
        if item.choices and all(c.option.pods <= 2 for c in item.choices[:3])
    )
    return milp.Instance(items[:4], given.pools)


def ways(
    choice: Choice, free: Mapping[str, int], pools: Sequence[Sequence[NodeState]]
) -> Iterator[dict[str, int]]:
    """All ways to put the pods of a choice on nodes."""
    option = choice.option
    nodes = next(pool for pool in pools if pool[0].name.startswith(f"{option.pool}-"))
    for counts in itertools.product(range(option.pods + 1), repeat=len(nodes)):
        placed = {node.name: n for node, n in zip(nodes, counts, strict=True) if n}
        racks = {node.domains[milp.RACK] for node in nodes if node.name in placed}
        if (
            sum(counts) == option.pods
            and all(n * option.accelerators_per_pod <= free[name] for name, n in placed.items())
            and not (option.one_per_node and max(counts) > 1)
            and not (option.level and len(racks) > 1)
        ):
            yield placed


def best(given: milp.Instance, at: int, free: dict[str, int]) -> float:
    if at == len(given.items):
        return 0.0
    found = best(given, at + 1, free)
    for choice in given.items[at].choices:
        for placed in ways(choice, free, [pool.nodes for pool in given.pools]):
            size = choice.option.accelerators_per_pod
            left = {name: n - size * placed.get(name, 0) for name, n in free.items()}
            found = max(found, choice.value + best(given, at + 1, left))
    return found


@pytest.mark.parametrize("seed", range(40))
def test_the_programme_finds_what_trying_everything_finds(seed: int) -> None:
    given = small(seed)
    free = {node.name: node.free for pool in given.pools for node in pool.nodes}
    assert milp.exact(given) == pytest.approx(best(given, 0, free), rel=1e-5, abs=1e-9)


def test_the_planner_keeps_the_rules_and_comes_near_the_best() -> None:
    score = assignments.score(25)
    assert score.instances == 25
    assert score.within_2_percent >= 24
    assert score.relaxed_gap >= 0.0


NODES = (
    Machine("a", "T4", 8000, 1000, 2),
    Machine("b", "T4", 64000, 8000, 8),
    Machine("c", "A10", 4000, 1000, 1),
)


def test_a_pod_that_finds_no_node_is_lost() -> None:
    arriving = [Pod(1000, 100, 8), Pod(1000, 100, 8), Pod(1000, 100, 1)]
    for placer in (openb.Fgd(NODES, arriving), Ours(NODES)):
        assert openb.allocated_percent(placer, arriving, 11) == pytest.approx(100 * 9 / 11)


def test_cores_and_memory_are_kept() -> None:
    hungry = [Pod(60000, 100, 1)] * 3
    for placer in (openb.Fgd(NODES, hungry), Ours(NODES)):
        assert openb.allocated_percent(placer, hungry, 11) == pytest.approx(100 * 1 / 11)


def test_pods_come_until_the_pressure_is_reached() -> None:
    drawn = openb.stream([Pod(1, 1, 1), Pod(1, 1, 4)], 100, seed=0)
    wanted = sum(pod.accelerators for pod in drawn)
    assert 130 <= wanted < 134
    assert drawn == openb.stream([Pod(1, 1, 1), Pod(1, 1, 4)], 100, seed=0)
