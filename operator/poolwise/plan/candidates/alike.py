"""Pools that a workload cannot tell apart, so that all but the first are judged by their name.

What stays within a node feels no network between nodes, and often neither storage nor cores. Pools
that differ in nothing else, with as much free on their nodes, are the same candidate.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from operator import attrgetter

from poolwise.model.hardware import Machine
from poolwise.plan.amounts import left
from poolwise.plan.candidates.exclusions import exclusion
from poolwise.plan.candidates.machines import felt_by_replica, felt_by_run
from poolwise.plan.candidates.situation import Situation
from poolwise.plan.decision import Candidate
from poolwise.plan.pool import Pool
from poolwise.plan.requests.request import Request, TrainingRequest

_FELT = attrgetter(
    "accelerator",
    "resource",
    "accelerators_per_node",
    "is_mig",
    "price",
    "price_problem",
    "capacity_type",
    "node_startup_seconds",
)
"""Of a pool: all else that is in a candidate, beside its machine and its nodes."""
_IS_TO_COME = attrgetter("is_to_come")


def felt(request: Request, pool: Pool, situation: Situation) -> Hashable | None:
    """All that a candidate within a node depends on; None where it may leave its node, or where
    more of the pool matters: cores that replicas run on, links that make nodes one, nodes that
    are still to come or take few pods, or a reason against it."""
    machine = _felt_machine(request, pool)
    is_plain = not (pool.is_cpu or pool.link_level or any(map(_IS_TO_COME, pool.nodes)))
    if machine is None or not is_plain or situation.may_run_out_of_pods(pool):
        return None
    if exclusion(request, pool, situation.settings):
        return None
    cores, memory_bytes = request.pod.cores > 0, request.pod.memory_bytes > 0
    others = request.pod.other_names
    page = situation.memo.rooms.page(situation.ledger)
    free = page.get(
        ("free", pool.name, cores, memory_bytes, others),
        lambda: situation.memo.numbers.of(
            tuple(_free(pool, situation, cores, memory_bytes, others))
        ),
    )
    return machine, _FELT(pool), free


def is_common(found: Candidate, request: Request, pool: Pool) -> bool:
    """Whether all pools that feel the same have this candidate: it keeps to a node, and says
    nothing of who holds their nodes, or of what else these have in all."""
    if found.prediction is None or found.count > pool.accelerators_per_node:
        return False
    return found.feasible or not (found.waits or request.pod.asks_more)


def _felt_machine(request: Request, pool: Pool) -> Machine | None:
    if pool.machine is None:
        return None
    if not isinstance(request, TrainingRequest):
        return felt_by_replica(pool.machine)
    most = min(request.most, sum(node.accelerators for node in pool.nodes))
    is_within = most <= pool.accelerators_per_node
    return felt_by_run(pool.machine, request.work, most) if is_within else None


def _free(
    pool: Pool, situation: Situation, cores: bool, memory_bytes: bool, others: Sequence[str]
) -> Iterator[tuple[float | None, ...]]:
    """What is free on each node, of all but accelerators where pods ask for it; unusable nodes have
    accelerators alone."""
    rooms, resource = situation.ledger.rooms, pool.resource or ""
    for node in pool.nodes:
        room = rooms.get(node.name)
        if room is None:
            yield (node.accelerators,)
        else:
            free = room.accelerators.get(resource, 0)
            asked = (room.cores if cores else 0.0, room.memory_bytes if memory_bytes else 0.0)
            more = tuple(left(room.others, name) for name in others) if others else ()
            yield (node.accelerators, free, *asked, *more)
