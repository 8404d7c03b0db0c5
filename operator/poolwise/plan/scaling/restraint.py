"""What holds a wish back: what was needed lately, changes of direction, and pacing of starts."""

from __future__ import annotations

from dataclasses import dataclass, replace

from poolwise.plan.scaling.felt import SETTLED_STAYS
from poolwise.plan.scaling.memory import Memory

TURNS, TURNS_SECONDS = 2, 3600.0
"""From up to down, in so long a time; each is followed by one from down to up, so that there are no
more than 6 changes of direction in an hour. One more where most of what is there idles, whatever is
kept of a leap."""
TURN_SECONDS, SOON_SECONDS = 1200.0, 300.0
"""Between two of them: usually, and where far too many are there."""
FAR_TOO_MANY, MOST_IDLE = 0.75, 0.5
"""Of what is there, that has been enough lately."""
LEAPT_SECONDS = TURN_SECONDS
"""After a leap beyond all that ever came twice as much as is needed is kept for so long: who leaps
once may leap again, and what the first leap's queue asked for meets the second."""
HOLD_SECONDS, LEAST_HOLD_SECONDS = 20.0, 120.0
"""Beside a start, and at least. However quick a start is, requests that wait for it are late, and
lulls between bursts last longer: with 20 s starts two minutes cost 4 to 20 % less on three of five
traces than 80 s (they let fleets go that the next burst asked for again), and 4 % more on one. Of
starts that take longer the first matters: 60 s instead cost 0.6 % more over ten hours with starts
of 180 and 420 s, and 1.2 % over nine orders of llm-d's stages, for nothing."""


@dataclass(frozen=True, slots=True)
class Held:
    """What is left of a wish, in full replicas."""

    replicas: float
    memory: Memory
    why: str = ""
    """What held it back; empty: nothing did."""


def hold_seconds(start_seconds: float, stay_seconds: float) -> float:
    """For how long a replica must not have been needed before it leaves.

    Where requests stay for minutes, it takes two of their stays until those that are left are as
    full as they will be: who leaves sooner is missed only when the next ones have left as well.
    """
    stays = SETTLED_STAYS * stay_seconds
    return max(start_seconds + HOLD_SECONDS, LEAST_HOLD_SECONDS, stays)


def restrained(
    memory: Memory, now_seconds: float, held: float, wanted: float, hold_seconds: float
) -> Held:
    """Up at once; down to the most that was wanted lately, and seldom after an up."""
    since = now_seconds - hold_seconds
    kept = tuple(each for each in memory.wanted if each[0] >= since)
    memory = replace(memory, wanted=(*kept, (now_seconds, wanted)))
    if wanted > held:
        return Held(wanted, replace(memory, direction=1, raised_seconds=now_seconds))
    lately = needed = min(max(each[1] for each in memory.wanted), held)
    if lately >= held:
        return Held(held, memory, "" if wanted == held else "so many were needed a moment ago")
    if memory.has_leapt(now_seconds, LEAPT_SECONDS):
        lately = min(lately / MOST_IDLE, held)
        if lately >= held:
            return Held(held, memory, "demand has leapt beyond all that ever came not long ago")
    turns = tuple(each for each in memory.turns if now_seconds - each < TURNS_SECONDS)
    if memory.direction >= 0:
        if not _may_turn(turns, now_seconds, needed / held):
            return Held(held, memory, "scaling changed its direction not long ago")
        turns = (*turns, now_seconds)
    return Held(lately, replace(memory, direction=-1, turns=turns))


def _may_turn(turns: tuple[float, ...], now_seconds: float, needed_share: float) -> bool:
    rest = SOON_SECONDS if needed_share <= FAR_TOO_MANY else TURN_SECONDS
    most = TURNS + (needed_share <= MOST_IDLE)
    return len(turns) < most and (not turns or now_seconds - turns[-1] >= rest)
