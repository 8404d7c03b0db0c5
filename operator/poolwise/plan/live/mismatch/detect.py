"""All detectors at one look."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from poolwise.model.work import Target
from poolwise.plan.live.mismatch.cache import CacheRoom, cache_pressure, preemptions
from poolwise.plan.live.mismatch.clue import Clue, Mismatch
from poolwise.plan.live.mismatch.history import History, settled
from poolwise.plan.live.mismatch.speed import mispredicted
from poolwise.plan.live.mismatch.tail import RECENT_SECONDS, tail_outgrows_load
from poolwise.plan.live.mismatch.warm_up import warm_up_breaches
from poolwise.plan.live.mismatch.watch import Watch
from poolwise.plan.live.overdue import Overdue, start_overdue

LEAST_TOKENS = 1000.0
"""Of the last minutes, from which they tell a speed."""


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What is known of a service beside its history."""

    targets: Sequence[Target]
    room: CacheRoom
    log_slowness: float
    """ln(measured / predicted) time of a token, as the controller has learned it."""
    log_band: float
    """Half-width of the model's range of that, nine in ten; 0: not known."""
    overdue: Overdue


def clues(history: History, watch: Watch, known: Circumstances) -> Iterator[Clue]:
    """Of each kind of which something can be said now."""
    found = (
        start_overdue(known.overdue),
        preemptions(history, known.room),
        cache_pressure(history, known.room),
        warm_up_breaches(known.targets, history),
        tail_outgrows_load(known.targets, history, watch.baseline(Mismatch.TAIL_OUTGROWS_LOAD)),
        mispredicted(known.log_slowness, known.log_band) if _generated(history) else None,
    )
    yield from (each for each in found if each is not None)


def _generated(history: History) -> bool:
    """Whether tokens came lately: what was learned of speed before says nothing of now."""
    delta = settled(history.within(RECENT_SECONDS))
    return delta is not None and (delta.generated_tokens or 0.0) >= LEAST_TOKENS
