"""Seeded queues of runs and services for a few small pools, busy or idle.

Pools differ in price and in what is fast there; who is best where is drawn for each workload. What
runs already ends at some time, and nothing comes but what the mix names.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from poolwise.model.prediction import Interval
from poolwise.plan.joint.problem import (
    NodeState,
    Option,
    PoolState,
    Problem,
    Rules,
    Running,
    Workload,
)

HOUR_SECONDS, DAY_SECONDS = 3600.0, 86400.0
NAMESPACE = "research"
NODE_ACCELERATORS = 8
PRICES_PER_HOUR = {"a": 1.0, "b": 2.0, "c": 4.0}
"""Of an accelerator, by pool."""
PRIORITIES = (0, 0, 1000)
HELD = (4, 8)
"""Accelerators of a busy node."""
SERVICE_COUNTS, RUN_COUNTS = (1, 2, 4, 8), (1, 2, 4, 8, 8, 16)
"""Accelerators to draw from: of a service by pool, of a run."""
POOL_COUNTS = (1, 2, 3, 3, 3)
"""Pools to draw from: most run anywhere."""
SHORTEST, SLOWEST = 0.01, 1.5
"""Of the longest run; natural logarithm of the slowest pool over the fastest."""
SPREAD = 1.1
"""A run takes so many times more or less than is expected, at the most."""
TIME_LIMIT_SECONDS = 20.0
"""The optimiser ends before, so that every machine has the same answer."""


@dataclass(frozen=True, slots=True)
class Mix:
    """What a queue is made of."""

    name: str
    services: int
    runs: int
    nodes: int
    """Of each pool, at the most."""
    longest_hours: float
    """Of runs; the shortest take a hundredth."""
    busy: float = 0.0
    """Share of nodes that are held by what runs."""
    has_priorities: bool = False
    days: float = 0.0
    """Over which all come; 0: all are there at the beginning."""


MIXES = (
    Mix("idle", 2, 4, 2, 10.0),
    Mix("idle, long runs", 2, 4, 2, 200.0),
    Mix("busy", 2, 4, 2, 10.0, busy=0.5),
    Mix("idle, priorities", 2, 4, 2, 10.0, has_priorities=True),
    Mix("busy, priorities", 2, 4, 2, 10.0, busy=0.5, has_priorities=True),
)
"""Small enough to try every assignment."""
CROWDS = (
    Mix("crowd", 6, 18, 4, 10.0),
    Mix("crowd, long runs", 6, 18, 4, 200.0),
    Mix("busy crowd", 6, 18, 4, 10.0, busy=0.5),
    Mix("crowd, priorities", 6, 18, 4, 10.0, has_priorities=True),
    Mix("stream", 6, 60, 4, 10.0, days=1.0),
)


def queue(mix: Mix, seed: int) -> Problem:
    """All that waits and runs at the beginning."""
    draw = random.Random(f"{mix.name} {seed}")
    pools = tuple(_pool(draw, name, mix) for name in PRICES_PER_HOUR)
    running = [each for pool in pools for each in _running(draw, pool, mix)]
    sizes = {pool.name: len(pool.nodes) for pool in pools}
    services = [_service(draw, f"s{at}", mix) for at in range(mix.services)]
    runs = [_run(draw, f"r{at}", mix, sizes) for at in range(mix.runs)]
    rules = Rules(time_limit_seconds=TIME_LIMIT_SECONDS)
    return Problem(0.0, pools, (*services, *runs, *running), rules)


def _pool(draw: random.Random, name: str, mix: Mix) -> PoolState:
    nodes = []
    for at in range(draw.randint(1, mix.nodes)):
        held = draw.choice(HELD) if draw.random() < mix.busy else 0
        nodes.append(NodeState(f"{name}-{at}", NODE_ACCELERATORS - held, NODE_ACCELERATORS))
    return PoolState(name, tuple(nodes))


def _running(draw: random.Random, pool: PoolState, mix: Mix) -> Iterator[Workload]:
    """Who holds what is not free."""
    for node in pool.nodes:
        if node.free < node.total:
            seconds = _hours(draw.uniform(0.0, mix.longest_hours))
            where = Running(
                Option(pool.name, 1, node.total - node.free, seconds), {node.name: 1}, 0.0
            )
            yield Workload(f"x-{node.name}", NAMESPACE, 0.0, (), running=where)


def _service(draw: random.Random, key: str, mix: Mix) -> Workload:
    options = []
    for pool in _some(draw):
        count = draw.choice(SERVICE_COUNTS)
        options.append(Option(pool, 1, count, None, count * PRICES_PER_HOUR[pool]))
    return Workload(key, NAMESPACE, _created(draw, mix), tuple(options), _priority(draw, mix))


def _run(draw: random.Random, key: str, mix: Mix, sizes: Mapping[str, int]) -> Workload:
    hours = mix.longest_hours * math.exp(draw.uniform(math.log(SHORTEST), 0.0))
    count = draw.choice(RUN_COUNTS)
    options = []
    for pool in _some(draw):
        pods = min(-(-count // NODE_ACCELERATORS), sizes[pool])
        each = min(count, NODE_ACCELERATORS)
        seconds = _hours(hours * math.exp(draw.uniform(0.0, SLOWEST)) * count / (pods * each))
        cost_per_hour = pods * each * PRICES_PER_HOUR[pool]
        options.append(Option(pool, pods, each, seconds, cost_per_hour))
    return Workload(key, NAMESPACE, _created(draw, mix), tuple(options), _priority(draw, mix))


def _some(draw: random.Random) -> Sequence[str]:
    """Most run anywhere, some on two pools or one alone."""
    names = list(PRICES_PER_HOUR)
    return sorted(draw.sample(names, draw.choice(POOL_COUNTS)))


def _priority(draw: random.Random, mix: Mix) -> int:
    return draw.choice(PRIORITIES) if mix.has_priorities else 0


def _created(draw: random.Random, mix: Mix) -> float:
    return draw.random() * mix.days * DAY_SECONDS


def _hours(hours: float) -> Interval:
    middle = hours * HOUR_SECONDS
    return Interval(middle, middle / SPREAD, middle * SPREAD)
