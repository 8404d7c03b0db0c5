"""At rest: whether who waits would start at once if nobody else waited."""

from __future__ import annotations

from collections.abc import Iterator

from poolwise.plan.decision import Key, Plan
from poolwise.plan.observed import Decisions, Observed
from poolwise.plan.queueing.holders import told
from tests.handlers.histories.fresh import had_it_never_been
from tests.handlers.histories.world import World, decides_anew


def would_start(world: World, observed: Observed) -> Iterator[str]:
    """Who waits, and has room where nothing is reserved for others.

    As if what has ended had never been: whatever still counts of it is in somebody's way.
    """
    now = world.process.engine.planner.decisions
    waiting = {key for key in now.outcomes if _waits(world, key, now)}
    for key in waiting:
        alone = decides_anew(had_it_never_been(observed, waiting - {key})).outcomes[key]
        if isinstance(alone, Plan) and alone.claim and alone.claim.pool not in _kept(now, key):
            yield f"{key}: waits ({now.outcomes[key].reason}), and has room: {alone.reason}"


def _waits(world: World, key: Key, decisions: Decisions) -> bool:
    outcome = decisions.outcomes[key]
    is_open = isinstance(outcome, Plan) and not outcome.placed and not outcome.kept
    return is_open and not world.process.engine.planner.is_refused(key)


def _kept(decisions: Decisions, key: Key) -> set[str]:
    """Pools in which others than ``key`` have reserved nodes."""
    booked = decisions.standing.reservations
    return {each.option.pool for each in booked if each.key != told(key)}
