"""B6: Kueue's flavors in order, with quotas that queues of one cohort borrow from each other.

Kueue ``docs/concepts/cluster_queue.md``: each tenant has a ClusterQueue with an equal nominal quota
of every flavor, all in one cohort, BestEffortFIFO, ``flavorFungibility.whenCanBorrow: Borrow`` (the
default: the first flavor that fits, borrowing or not) and no preemption. A cycle takes the head of
every queue, those that need not borrow first, then by age. Of topology-aware scheduling it has the
best fit inside the flavor, with one host required where a host can take the gang.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bench.placement.baselines.queueing import able, places
from poolwise.sim.fleet import Placement, Pool, Room
from poolwise.sim.jobs import Job, Moves, Scene, Truth


@dataclass(frozen=True, slots=True)
class _Head:
    """The oldest workload of one queue, with the flavor that it would take."""

    borrows: bool
    order: int
    job: Job
    placement: Placement


class Kueue:
    """The scheduler's cycles; flavors in the reverse order of the pools, newest first."""

    def __init__(self, tenants: Iterable[str], truth: Truth, is_cautious: bool = False) -> None:
        """``is_cautious`` is whenCanBorrow: TryNextFlavor."""
        self._tenants, self._is_cautious = max(1, len(set(tenants))), is_cautious
        self._truth = truth

    def __call__(self, scene: Scene) -> Moves:
        """Admits until a whole cycle admits nobody."""
        room, flavors = scene.room, tuple(reversed(scene.pools))
        used = {
            (run.job.tenant, pool.name): 0 for run in scene.running.values() for pool in flavors
        }
        for run in scene.running.values():
            used[run.job.tenant, run.placement.pool] += run.job.accelerators
        starts: list[tuple[str, Placement]] = []
        waiting = [each.job for each in scene.waiting]
        while waiting and room.total():
            heads = self._heads(waiting, room, flavors, used)
            if not heads:
                break
            admitted = self._admit(heads, room, used)
            starts += admitted
            names = {name for name, _ in admitted}
            waiting = [job for job in waiting if job.name not in names]
        return Moves(tuple(starts))

    def _heads(
        self,
        waiting: Sequence[Job],
        room: Room,
        flavors: Sequence[Pool],
        used: dict[tuple[str, str], int],
    ) -> list[_Head]:
        found: dict[str, _Head] = {}
        refused: dict[tuple[Pool, ...], int] = {}
        for order, job in enumerate(waiting):
            if job.tenant in found:
                continue
            allowed = able(job, flavors, self._truth)
            if job.accelerators >= refused.get(allowed, job.accelerators + 1):
                continue
            head = self._assigned(order, job, places(job, room, allowed), flavors, used)
            if head is None:
                refused[allowed] = job.accelerators
            else:
                found[job.tenant] = head
        return sorted(found.values(), key=lambda each: (each.borrows, each.order))

    def _assigned(
        self,
        order: int,
        job: Job,
        found: Sequence[Placement],
        flavors: Sequence[Pool],
        used: dict[tuple[str, str], int],
    ) -> _Head | None:
        quotas = {pool.name: pool.accelerators / self._tenants for pool in flavors}
        heads = [
            _Head(
                used.get((job.tenant, each.pool), 0) + job.accelerators > quotas[each.pool],
                order,
                job,
                each,
            )
            for each in found
        ]
        if self._is_cautious:
            heads.sort(key=lambda each: each.borrows)
        return heads[0] if heads else None

    @staticmethod
    def _admit(
        heads: Sequence[_Head], room: Room, used: dict[tuple[str, str], int]
    ) -> list[tuple[str, Placement]]:
        admitted = []
        for head in heads:
            try:
                room.take(head.placement)
            except ValueError:  # an earlier head of this cycle took it
                continue
            key = (head.job.tenant, head.placement.pool)
            used[key] = used.get(key, 0) + head.job.accelerators
            admitted.append((head.job.name, head.placement))
        return admitted
