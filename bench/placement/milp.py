"""How near the planner's assignments are to the best ones: 500 small instances, solved exactly.

An instance has up to 12 gangs and 5 pools of a few nodes, of which others hold a part; together the
gangs ask for more than is free. Values are a gang's weight times its speed in the pool, less where
it is spread. The integer programme here is the bench's own, with a variable for the pods of every
option on every node, and shares nothing with the planner's.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import highspy

from poolwise.model.prediction import Interval
from poolwise.plan.joint.items import Choice, Floor, Item
from poolwise.plan.joint.problem import NodeState, Option, PoolState

INSTANCES = 500
MOST_GANGS, POOLS = 12, 5
SIZES, SIZE_WEIGHTS = (1, 2, 4, 8, 16), (30, 20, 25, 20, 5)
NODE_SIZES = (4, 8)
RACK = "rack"
WITHIN = 0.02


@dataclass(frozen=True, slots=True)
class Instance:
    """What is to be assigned."""

    items: tuple[Item, ...]
    pools: tuple[PoolState, ...]

    @property
    def floor(self) -> Floor:
        """The same pools, without limits or reservations."""
        return Floor(self.pools)


def instance(seed: int) -> Instance:
    """A small cluster, rather full, and the gangs that want into it."""
    draw = random.Random(seed)
    pools = tuple(_pool(f"p{at}", draw) for at in range(POOLS))
    gangs = draw.randint(4, MOST_GANGS)
    return Instance(tuple(_item(f"g{at:02}", pools, draw) for at in range(gangs)), pools)


def _pool(name: str, draw: random.Random) -> PoolState:
    size = draw.choice(NODE_SIZES)
    nodes = []
    for at in range(draw.randint(1, 4)):
        free = size if draw.random() < 0.5 else draw.randint(0, size)
        nodes.append(NodeState(f"{name}-{at}", free, size, {RACK: f"{name}-r{at // 2}"}))
    return PoolState(name, tuple(nodes))


def _item(key: str, pools: Sequence[PoolState], draw: random.Random) -> Item:
    (size,) = draw.choices(SIZES, SIZE_WEIGHTS)
    weight = draw.lognormvariate(0.0, 0.7)
    sociable = draw.uniform(0.3, 1.0)  # what is left of its speed where it is spread
    choices: list[Choice] = []
    for pool in pools:
        if draw.random() < 0.15:
            continue  # memory does not suffice there
        value = weight * size**0.8 * draw.lognormvariate(0.0, 0.6)
        choices += _choices(pool, size, value, sociable, draw)
    return Item(key, "default", tuple(choices))


def _choices(
    pool: PoolState, size: int, value: float, sociable: float, draw: random.Random
) -> Iterator[Choice]:
    node = pool.nodes[0].total
    level = RACK if draw.random() < 0.3 else ""
    yield Choice(_option(pool, -(-size // node), min(size, node), level, one_per_node=True), value)
    if size > 1:
        yield Choice(_option(pool, size, 1, "", one_per_node=False), value * sociable)


def _option(
    pool: PoolState, pods: int, accelerators: int, level: str, *, one_per_node: bool
) -> Option:
    hour = Interval(3600.0, 3600.0, 3600.0)
    return Option(pool.name, pods, accelerators, hour, one_per_node=one_per_node, level=level)


def exact(given: Instance, is_whole: bool = True) -> float:
    """The largest sum of values, by HiGHS to a relative gap of 1e-6 (``U2``).

    :param is_whole: False: gangs may be started in fractions (``U1``, which is no less).
    """
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("threads", 1)
    solver.setOptionValue("mip_rel_gap", 1e-6)
    usage: dict[str, list[highspy.highs_linear_expression]] = {}
    values = []
    for item in given.items:
        picks = []
        for choice in item.choices:
            for nodes in _domains(choice.option, given.pools):
                pick = solver.addBinary() if is_whole else solver.addVariable(0.0, 1.0)
                picks.append(pick)
                values.append(choice.value * pick)
                counts = _pods(solver, choice.option, nodes, pick, is_whole)
                for node, count in zip(nodes, counts, strict=True):
                    taken = choice.option.accelerators_per_pod * count
                    usage.setdefault(node.name, []).append(taken)
        if picks:
            solver.addConstr(solver.qsum(picks) <= 1)
    free = {node.name: node.free for pool in given.pools for node in pool.nodes}
    for name, terms in usage.items():
        solver.addConstr(solver.qsum(terms) <= free[name])
    if not values:
        return 0.0
    solver.maximize(solver.qsum(values))
    if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        raise RuntimeError(f"HiGHS: {solver.getModelStatus()}")
    return float(solver.getObjectiveValue())


def _domains(option: Option, pools: Sequence[PoolState]) -> Iterator[tuple[NodeState, ...]]:
    """Sets of nodes of which all pods go into one."""
    (pool,) = (pool for pool in pools if pool.name == option.pool)
    if not option.level:
        yield pool.nodes
        return
    for domain in sorted({node.domains[option.level] for node in pool.nodes}):
        yield tuple(node for node in pool.nodes if node.domains[option.level] == domain)


def _pods(
    solver: highspy.Highs,
    option: Option,
    nodes: Sequence[NodeState],
    pick: highspy.highs_var,
    is_whole: bool,
) -> list[highspy.highs_var]:
    """Pods on each node: all of them where the option is picked, and none else."""
    most = 1 if option.one_per_node else option.pods
    add = solver.addIntegral if is_whole else solver.addVariable
    counts = [add(0, most) for _ in nodes]
    solver.addConstr(solver.qsum(counts) == option.pods * pick)
    return counts


def overfilled(given: Instance, nodes: Sequence[tuple[Option, dict[str, int]]]) -> str | None:
    """What is wrong with an answer; None: nothing."""
    left = {node.name: node.free for pool in given.pools for node in pool.nodes}
    for option, pods in nodes:
        if sum(pods.values()) != option.pods:
            return f"{option.pods} pods, {sum(pods.values())} placed"
        if option.one_per_node and max(pods.values()) > 1:
            return "two pods on one node"
        for name, count in pods.items():
            left[name] -= count * option.accelerators_per_pod
    return next((f"{name}: {free} left" for name, free in left.items() if free < 0), None)
