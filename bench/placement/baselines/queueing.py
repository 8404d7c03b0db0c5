"""B0 to B5: the first job that fits takes the place that a rule likes best."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Sequence

from poolwise.sim.fleet import Placement, Pool, Room
from poolwise.sim.jobs import Job, Moves, Scene, Truth

Choose = Callable[[Job, Room, Sequence[Pool]], Placement | None]
"""Where a job starts now; None: it waits."""


class InOrder:
    """First come, first served; who has no place is passed over."""

    def __init__(self, choose: Choose, truth: Truth) -> None:
        self._choose, self._truth = choose, truth

    def __call__(self, scene: Scene) -> Moves:
        """Starts all that find a place."""
        return Moves(tuple(self._starts(scene)))

    def _starts(self, scene: Scene) -> Iterator[tuple[str, Placement]]:
        room = scene.room
        refused: dict[tuple[Pool, ...], int] = {}
        for each in scene.waiting:
            if not room.total():
                return
            pools = able(each.job, scene.pools, self._truth)
            if each.job.accelerators >= refused.get(pools, math.inf):
                continue
            placement = self._choose(each.job, room, pools)
            if placement is None:
                refused[pools] = each.job.accelerators
                continue
            room.take(placement)
            yield each.job.name, placement


def able(job: Job, pools: Sequence[Pool], truth: Truth) -> tuple[Pool, ...]:
    """Pools whose accelerators have the memory for a job: its owner selects them."""
    return tuple(
        pool
        for pool in pools
        if job.accelerators <= pool.accelerators
        and truth(job, Placement(pool.name, ((0, job.accelerators),))) < math.inf
    )


def places(job: Job, room: Room, pools: Sequence[Pool]) -> list[Placement]:
    """The best-fitting place in each pool that has one, packed where a node could ever take it."""
    found = []
    for pool in pools:
        fits = job.accelerators <= max(pool.nodes)
        placement = (room.packed if fits else room.spread)(pool.name, job.accelerators)
        if placement is not None:
            found.append(placement)
    return found


def at_random(seed: int) -> Choose:
    """B0: any pool with room."""
    draw = random.Random(seed)

    def choose(job: Job, room: Room, pools: Sequence[Pool]) -> Placement | None:
        found = places(job, room, pools)
        return draw.choice(found) if found else None

    return choose


def first_fit(job: Job, room: Room, pools: Sequence[Pool]) -> Placement | None:
    """B1: the first pool in the administrator's order, the newest accelerators first."""
    found = places(job, room, tuple(reversed(pools)))
    return found[0] if found else None


def least_allocated(job: Job, room: Room, pools: Sequence[Pool]) -> Placement | None:
    """B2: kube-scheduler's default NodeResourcesFit score: the node with the largest share free."""
    return _by_share(job, room, pools, -1.0)


def most_allocated(job: Job, room: Room, pools: Sequence[Pool]) -> Placement | None:
    """B3: kube-scheduler's MostAllocated score: the node with the smallest share free."""
    return _by_share(job, room, pools, 1.0)


def cheapest(job: Job, room: Room, pools: Sequence[Pool]) -> Placement | None:
    """B4: the pool with the lowest price per hour, as SkyPilot's optimiser (which takes every run
    for one hour unless its owner wrote an estimator) and Karpenter choose."""
    prices = {pool.name: pool.price_per_accelerator_hour for pool in pools}
    return _best(places(job, room, pools), lambda at: prices[at.pool])


def cheapest_run(truth: Truth) -> Choose:
    """B4 with an estimator that knows the true run times: the pool whose run costs least."""

    def choose(job: Job, room: Room, pools: Sequence[Pool]) -> Placement | None:
        prices = {pool.name: pool.price_per_accelerator_hour for pool in pools}
        return _best(places(job, room, pools), lambda at: prices[at.pool] * truth(job, at))

    return choose


def fastest(truth: Truth) -> Choose:
    """B5: the pool that ends the run first of those with room, by true run times."""

    def choose(job: Job, room: Room, pools: Sequence[Pool]) -> Placement | None:
        return _best(places(job, room, pools), lambda at: truth(job, at))

    return choose


def _best(found: Sequence[Placement], value: Callable[[Placement], float]) -> Placement | None:
    finite = [(value(each), index) for index, each in enumerate(found)]
    finite = [each for each in finite if each[0] < float("inf")]
    return found[min(finite)[1]] if finite else None


def _by_share(job: Job, room: Room, pools: Sequence[Pool], sign: float) -> Placement | None:
    """The node of any pool by the share of it that is free, ties to the first."""
    shares = [
        (sign * free / pool.nodes[node], at, node)
        for at, pool in enumerate(pools)
        for node, free in enumerate(room.free(pool.name))
        if free >= job.accelerators
    ]
    if shares:
        _, at, node = min(shares)
        return Placement(pools[at].name, ((node, job.accelerators),))
    return anywhere(job, room, pools)


def anywhere(job: Job, room: Room, pools: Sequence[Pool]) -> Placement | None:
    """For a gang that no node takes whole, were it empty: the first pool with room for it."""
    if any(job.accelerators <= max(pool.nodes) for pool in pools):
        return None
    found = (room.spread(pool.name, job.accelerators) for pool in pools)
    return next((each for each in found if each is not None), None)
