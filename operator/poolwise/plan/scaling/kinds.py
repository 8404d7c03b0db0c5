"""When prompts become others: an application puts documents before its questions from one minute
to the next.

A mixture of both kinds, which nobody ever sent, has the worst of spreads: what it is taken to need
would be several times too much. So prompts of a kind that is no longer sent are forgotten at once.
Engines tell lengths when an answer ends, which is after minutes where the change has filled them;
how many tokens all prompts had, some tell with the first token (:attr:`Delta.begun_prompt_tokens`).
"""

from __future__ import annotations

import math

from poolwise.plan.scaling.memory import Moments
from poolwise.plan.signals.window import Delta

OTHER_DEVIATIONS, OTHER_TIMES = 4.0, 3.0
"""By which the mean of prompts has to differ for them to be of another kind: in errors of both
means, and in times. Bursts of prompts that are two or three times as long come and go within
recorded hours."""
LEAST_OTHERS = 10.0
"""Of whom a mean is told: one long prompt is no other kind."""


def begun(delta: Delta) -> Moments:
    """Prompts whose first token came; their spread is not told. None where no engine tells them."""
    came = delta.ttft_seconds.count if delta.ttft_seconds else 0.0
    return Moments(came, delta.begun_prompt_tokens) if delta.begun_prompt_tokens else Moments()


def are_others(before: Moments, now: Moments, spread: Moments) -> bool:
    """Whether those of now are of another kind than those before.

    The errors of both means are those of lengths that spread as ``spread``. They have to lie far
    apart by their ratio and by its logarithm: of lengths with a heavy tail a few have a mean of
    several times the usual one with a long prompt among them, and of a fraction without.
    """
    if min(before.count, now.count) < LEAST_OTHERS or not (spread.squares and before.total):
        return False
    ratio = now.total / now.count / (before.total / before.count)
    scv = max(spread.relative_square - 1.0, 0.0)
    error = math.sqrt(scv * (1.0 / before.count + 1.0 / now.count))
    times = abs(math.log(max(ratio, 1e-9)))
    return times > math.log(OTHER_TIMES) and min(times, abs(ratio - 1.0)) > OTHER_DEVIATIONS * error


def newest(ended: Moments, began: Moments) -> Moments:
    """Those that ended, unless those that began are others: then these, with the spread of those
    until they end."""
    if not are_others(ended, began, ended):
        return ended
    count, times = began.count, began.total / began.count / (ended.total / ended.count)
    squares, cubes = ended.squares * times**2, ended.cubes * times**3
    return Moments(count, began.total, count / ended.count * squares, count / ended.count * cubes)
