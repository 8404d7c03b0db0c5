"""What holds a wish back: bounds, caps, pacing, and too many changes of direction."""

from __future__ import annotations

from dataclasses import dataclass, replace

from poolwise.plan.scaling.memory import Memory

TURNS_PER_HOUR = 3
"""From up to down: each is followed by one from down to up, so 6 changes of direction an hour."""
TURN_SECONDS = 3600.0


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
    turns = tuple(each for each in memory.turns if now_seconds - each < TURN_SECONDS)
    if memory.direction > 0:
        if not _may_turn(turns, now_seconds):
            return Held(held, memory, "the direction changed often lately")
        turns = (*turns, now_seconds)
    return Held(lately, replace(memory, direction=-1, turns=turns))


def _may_turn(turns: tuple[float, ...], now_seconds: float) -> bool:
    """The first two as they come, then one for each 20 minutes."""
    return len(turns) < TURNS_PER_HOUR and (
        len(turns) < 2 or now_seconds - turns[-1] >= TURN_SECONDS / TURNS_PER_HOUR
    )
