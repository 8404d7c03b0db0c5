"""What a look says of the forecast that was made for it: its error, and patterns in errors."""

from __future__ import annotations

import math
from dataclasses import replace

from poolwise.plan.scaling import surprise
from poolwise.plan.scaling.capability import Capability
from poolwise.plan.scaling.intake import Intake
from poolwise.plan.scaling.level import LONGEST_SECONDS, span_seconds
from poolwise.plan.scaling.memory import Bin, Memory
from poolwise.plan.scaling.momentum import Momentum
from poolwise.plan.scaling.outlook import LEAST_RATE, Outlook
from poolwise.plan.scaling.prospect import RECENT_SECONDS, newest_bin

KEPT_SECONDS = 2.0 * LONGEST_SECONDS
UNSETTLED_SECONDS = 60.0
"""After the first look nothing is known that a forecast could rest on."""
PEAK_HALF_LIFE_SECONDS = 6 * 3600.0


def with_bin(
    memory: Memory,
    now_seconds: float,
    taken: Intake,
    ahead: Outlook,
    able: Capability,
    ready: float,
) -> Memory:
    """With this step, and with what it says of the forecast that was made for it.

    :param ready: replicas that serve, in full ones of the first pool.
    """
    last = replace(
        newest_bin(now_seconds, taken, able),
        foreseen=ahead.coming,
        expected=ahead.lasting,
        demand=ahead.present,
        ready=ready,
        waiting=ahead.queue,
        filled=ahead.filled,
        capacity=able.requests_per_second,
        growth=ahead.growth,
    )
    memory = _with_error(memory, last, taken, ahead, able)
    kept = (each for each in memory.bins if now_seconds - each.at_seconds <= KEPT_SECONDS)
    faded = memory.peak * 0.5 ** (taken.seconds / PEAK_HALF_LIFE_SECONDS)
    peak = max(faded, min(ahead.present, ahead.settled))  # without what a queue piles up
    return replace(
        memory,
        bins=(*kept, last),
        momentum=_momentum(memory, last, span_seconds(ahead.horizon_seconds)),
        peak=peak,
        leapt_seconds=_leapt_seconds(memory, now_seconds, ahead),
    )


def _leapt_seconds(memory: Memory, now_seconds: float, ahead: Outlook) -> float | None:
    """Not before it is known what comes usually: until then all demand is beyond what ever came."""
    is_known = memory.age_seconds(now_seconds) >= LONGEST_SECONDS
    return now_seconds if ahead.leaps and is_known else memory.leapt_seconds


def _with_error(
    memory: Memory, last: Bin, taken: Intake, ahead: Outlook, able: Capability
) -> Memory:
    """Of what was foreseen a start ago for now."""
    then = _bin_at(memory, last.at_seconds - ahead.horizon_seconds)
    if then is None or then.at_seconds < (memory.since_seconds or 0.0) + UNSETTLED_SECONDS:
        return memory
    came = ahead.present / _scale(then, able)
    chance = able.arrivals_share / math.sqrt(max(_recent_arrivals(memory, taken), 1.0))
    checked = surprise.Checked(then.foreseen, then.expected, came)
    return replace(
        memory,
        errors=surprise.observed(memory.errors, checked, taken.seconds, taken.arrivals, chance),
        persistence=memory.persistence.after(then.foreseen, came, taken.seconds),
    )


def _momentum(memory: Memory, last: Bin, span_seconds: float) -> Momentum:
    """With what became of the growth of a start ago."""
    then = _bin_at(memory, last.at_seconds - span_seconds)
    if then is None:
        return memory.momentum
    return memory.momentum.after(then.growth, last.growth, last.seconds, span_seconds)


def _bin_at(memory: Memory, at_seconds: float) -> Bin | None:
    """The newest that had ended then; None: nothing is known of so long ago."""
    ended = (each for each in reversed(memory.bins) if each.at_seconds <= at_seconds)
    return next(ended, None)


def _scale(earlier: Bin, able: Capability) -> float:
    """Of a demand of then in replicas of now: a full cache is one whatever fills it, but arrivals
    are as much as a replica is taken to serve."""
    capacity = max(able.requests_per_second, LEAST_RATE)
    return float((max(earlier.capacity, LEAST_RATE) / capacity) ** able.arrivals_share)


def _recent_arrivals(memory: Memory, taken: Intake) -> float:
    """That the present rate is the mean of."""
    steps = max(round(RECENT_SECONDS / max(taken.seconds, 1.0)), 1)
    before = memory.bins[max(len(memory.bins) + 1 - steps, 0) :]
    return taken.arrivals + sum(each.arrivals for each in before)
