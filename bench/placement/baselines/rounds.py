"""What schedulers share that decide anew who runs: places for the chosen, and what that moves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from poolwise.sim.fleet import Placement, Room
from poolwise.sim.jobs import Job, Moves, Scene


@dataclass(frozen=True, slots=True)
class Active:
    """A job that is not done."""

    job: Job
    pool: str | None
    """Where it runs now."""


def active(scene: Scene) -> list[Active]:
    """All jobs that are not done, in order of arrival."""
    running = [Active(run.job, run.placement.pool) for run in scene.running.values()]
    waiting = [Active(each.job, None) for each in scene.waiting]
    return sorted([*running, *waiting], key=lambda each: each.job.arrival_seconds)


def moves(scene: Scene, chosen: Mapping[str, str], wake_seconds: float | None) -> Moves:
    """Run these jobs in these pools, from now on.

    Places are given anew, larger gangs first, so that gangs find whole nodes; a job that can stay
    on its nodes does, and the others of the running ones are restarted elsewhere. What does not
    fit, runs in a later round.
    """
    jobs = {each.job.name: each.job for each in scene.waiting}
    jobs |= {name: run.job for name, run in scene.running.items()}
    order = sorted(chosen, key=lambda name: (-jobs[name].accelerators, name not in scene.running))
    room, placed = Room(scene.pools), dict[str, Placement]()
    for name in order:
        placement = _place(scene, jobs[name], chosen[name], room)
        if placement is not None:
            room.take(placement)
            placed[name] = placement
    stays = {name for name, run in scene.running.items() if placed.get(name) == run.placement}
    starts = [(name, placement) for name, placement in placed.items() if name not in stays]
    return Moves(starts, [name for name in scene.running if name not in stays], wake_seconds)


def _place(scene: Scene, job: Job, pool: str, room: Room) -> Placement | None:
    run = scene.running.get(job.name)
    if run is not None and run.placement.pool == pool:
        free = room.free(pool)
        if all(free[node] >= count for node, count in run.placement.nodes):
            return run.placement
    largest = max(each for known in scene.pools if known.name == pool for each in known.nodes)
    return (room.packed if job.accelerators <= largest else room.spread)(pool, job.accelerators)
