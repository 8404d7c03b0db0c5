"""What holds a wish back: what was needed lately, changes of direction, and pacing of starts."""

from __future__ import annotations

from dataclasses import dataclass, replace

from poolwise.plan.scaling.memory import Memory

TURN_SECONDS = 1200.0
"""From one change from up to down until the next: each is followed by one from down to up, so there
are 6 changes of direction an hour at most."""
HOLD_SECONDS = 60.0
"""Beside a start: for how long a replica must not have been needed before it leaves."""


@dataclass(frozen=True, slots=True)
class Held:
    """What is left of a wish, in full replicas."""

    replicas: float
    memory: Memory
    why: str = ""
    """What held it back; empty: nothing did."""


def restrained(
    memory: Memory, now_seconds: float, held: float, wanted: float, start_seconds: float
) -> Held:
    """Up at once; down to the most that was wanted lately, and seldom after an up."""
    since = now_seconds - start_seconds - HOLD_SECONDS
    kept = tuple(each for each in memory.wanted if each[0] >= since)
    memory = replace(memory, wanted=(*kept, (now_seconds, wanted)))
    if wanted > held:
        return Held(wanted, replace(memory, direction=1))
    lately = min(max(each[1] for each in memory.wanted), held)
    if lately >= held:
        return Held(held, memory, "" if wanted == held else "so many were needed a moment ago")
    turned = memory.turns[-1:]
    if memory.direction >= 0:
        if turned and now_seconds - turned[0] < TURN_SECONDS:
            return Held(held, memory, "scaling changed its direction not long ago")
        turned = (now_seconds,)
    return Held(lately, replace(memory, direction=-1, turns=turned))
