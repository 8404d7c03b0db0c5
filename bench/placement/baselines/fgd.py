"""B7: fragmentation gradient descent (Weng et al., USENIX ATC 2023), for whole accelerators.

Those of a node's free accelerators that a task of the mix cannot use there are fragments:
F(node) = sum over tasks m of share(m) * (free, if free < need(m)). A job goes to the node where F
grows least.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable, Sequence

from bench.placement.baselines.queueing import Choose, anywhere
from poolwise.sim.fleet import Placement, Pool, Room
from poolwise.sim.jobs import Job


def least_fragmenting(sizes: Iterable[int]) -> Choose:
    """``sizes`` are accelerators of the jobs of the mix, as often as they come."""
    counts = Counter(sizes)
    total = sum(counts.values())

    @functools.cache
    def fragments(free: int) -> float:
        unusable = sum(count for size, count in counts.items() if size > free)
        return free * unusable / total

    def choose(job: Job, room: Room, pools: Sequence[Pool]) -> Placement | None:
        need = job.accelerators
        found = [
            (fragments(free - need) - fragments(free), free, at, node)
            for at, pool in enumerate(pools)
            for node, free in enumerate(room.free(pool.name))
            if free >= need
        ]
        if not found:
            return anywhere(job, room, pools)
        _, _, at, node = min(found)
        return Placement(pools[at].name, ((node, need),))

    return choose
