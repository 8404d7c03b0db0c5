"""A history from its first event to rest."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable

import structlog

from poolwise.cluster.resources import DISRUPTION_BUDGETS
from tests.handlers.histories.at_rest import at_rest, differences, words
from tests.handlers.histories.cluster import USUAL_SECONDS
from tests.handlers.histories.controllers import is_ready
from tests.handlers.histories.events import Event
from tests.handlers.histories.invariants import at_a_quiet_moment
from tests.handlers.histories.outcomes import amiss
from tests.handlers.histories.pauses import written
from tests.handlers.histories.statuses import repeated
from tests.handlers.histories.virtual_time import VirtualLoop, played
from tests.handlers.histories.world import World

QUIET_SECONDS = 200.0
"""After an event: by then all is told that will be told of it."""
DECIDED_SECONDS = 70.0
"""After this, no look from before an event decides anything."""
REST_SECONDS = 600.0
WATCHED_SECONDS = 300.0
MOST_DUE = 5
"""Moments by which time alone changes a decision, one after the other, that are waited for."""
MOST_WRITES = 2
"""Of one object in that time, where nothing happens but that replicas go on to tell."""


def play(history: Iterable[tuple[Event, float]]) -> None:
    """:raises AssertionError: for the first invariant that does not hold."""
    logs = structlog.get_config()
    try:
        played(lambda loop: _play(loop, history))
    finally:
        structlog.configure(**logs)


async def _play(loop: VirtualLoop, history: Iterable[tuple[Event, float]]) -> None:
    world = World(loop)
    await world.begin()
    for event, seconds in history:
        await event.happen(world)
        await _wait(world, event, seconds)
        world.check()
        if seconds >= QUIET_SECONDS and not world.is_hindered:
            assert not (problems := at_a_quiet_moment(world)), "\n".join(problems)
    await heal(world)
    await _until_nothing_is_due(world)
    await asyncio.sleep(DECIDED_SECONDS)  # what was due a moment ago is carried out
    world.check()
    problems = [*at_a_quiet_moment(world), *at_rest(world), *amiss(world)]
    before, told = len(world.cluster.operator_writes), len(world.cluster.statuses)
    await asyncio.sleep(WATCHED_SECONDS)
    world.check()
    writes = Counter(write for _, write in world.cluster.operator_writes[before:])
    problems += [
        f"{write}: {count} times at rest"
        for write, count in writes.items()
        if "status" not in write and count > MOST_WRITES
    ]
    problems += repeated(world.cluster.statuses[told:])
    problems += written(world)
    problems += await _of_a_restart(world)
    assert not problems, "\n".join(problems)
    await world.process.end()


async def _wait(world: World, event: Event, seconds: float) -> None:
    """Where metrics broke and nothing else happens, nobody takes replicas away."""
    await asyncio.sleep(min(seconds, DECIDED_SECONDS))
    before = len(world.cluster.shrunk)
    await asyncio.sleep(max(0.0, seconds - DECIDED_SECONDS))
    shrunk = world.cluster.shrunk[before:]
    assert not (shrunk and event.name == "tell" and world.told.is_broken), shrunk


async def _of_a_restart(world: World) -> list[str]:
    """Another process finds all as it should be."""
    await _until_nothing_is_due(world)
    before, told, left = len(world.cluster.operator_writes), words(world), _left(world)
    await world.restart()
    await asyncio.sleep(QUIET_SECONDS)
    writes = [write for _, write in world.cluster.operator_writes[before:]]
    problems = [
        f"{each} by a new process at rest" for each in writes if not _may_differ(world, each)
    ]
    problems += [
        f"{name} leaves {least} by a new process at rest, and left {left[name]}"
        for name, least in _left(world).items()
        if least < left.get(name, 0)
    ]
    return problems + differences(told, words(world))


async def _until_nothing_is_due(world: World) -> None:
    """In a while: a start that takes too long is given up then, by whichever process leads."""
    for _ in range(MOST_DUE):
        due, now = world.process.engine.planner.decisions.look_again_at, world.loop.utc_now()
        if due is None or (left_seconds := (due - now).total_seconds()) > 2 * QUIET_SECONDS:
            return
        await asyncio.sleep(max(0.0, left_seconds) + DECIDED_SECONDS)


def _may_differ(world: World, write: str) -> bool:
    """Statuses tell of looks. A budget may rise (:func:`_left` sees that none falls): what few
    looks foresee is less sure and may ask for more, and a drain waits for that at worst. Who
    starts may be overdue just then, of which an Event tells."""
    is_starting = not all(map(is_ready, world.pods()))
    may_be_due = is_starting and write.startswith("create events/")
    return "status" in write or "poddisruptionbudgets" in write or may_be_due


def _left(world: World) -> dict[str, int]:
    """Pods that drains of nodes leave, by disruption budget."""
    return {
        each["metadata"]["name"]: each["spec"]["minAvailable"]
        for each in world.cluster.all(DISRUPTION_BUDGETS)
    }


async def heal(world: World) -> None:
    """Nothing stands against the operator any more."""
    cluster = world.cluster
    cluster.failures.clear()
    cluster.unwanted.clear()
    cluster.lag_seconds.clear()
    cluster.write_seconds = USUAL_SECONDS
    world.controllers.is_scheduling = True
    if not world.process.leads:
        await world.restart()
    world.controllers.start_seconds = min(world.controllers.start_seconds, 20.0)
    await asyncio.sleep(REST_SECONDS)
