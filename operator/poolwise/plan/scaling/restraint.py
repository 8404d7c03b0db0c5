"""What holds a wish back: bounds, caps, pacing, and too many changes of direction."""

from __future__ import annotations

from dataclasses import dataclass, replace

from poolwise.plan.scaling.memory import Memory

TURN_SECONDS = 1200.0
"""From one change from up to down until the next: each is followed by one from down to up, so there
are 6 changes of direction an hour at most."""


@dataclass(frozen=True, slots=True)
class Held:
    """A number of replicas, and what of a wish was held back."""

    replicas: int
    memory: Memory
    why: str = ""


def restrained(
    memory: Memory, now_seconds: float, held: int, wanted: int, hold_seconds: float
) -> Held:
    """Up at once; down to the most that was wanted lately, and seldom after an up."""
    kept = tuple(each for each in memory.wanted if now_seconds - each[0] <= hold_seconds)
    memory = replace(memory, wanted=(*kept, (now_seconds, wanted)))
    if wanted > held:
        return Held(wanted, replace(memory, direction=1))
    lately = min(max(each[1] for each in memory.wanted), held)
    if lately >= held:
        return Held(held, memory, "" if wanted == held else f"{held} were needed lately")
    turned = memory.turns[-1:]
    if memory.direction > 0:
        if turned and now_seconds - turned[0] < TURN_SECONDS:
            return Held(held, memory, "the direction changed lately")
        turned = (now_seconds,)
    return Held(lately, replace(memory, direction=-1, turns=turned))
