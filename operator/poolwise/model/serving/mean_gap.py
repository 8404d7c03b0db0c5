"""Mean gaps between the tokens of one request: what is told as its time per output token.

A step that carries somebody's prompt makes one gap long. The mean of few gaps is late with one
such step, that of many only where prompts come all the time: so it matters how many gaps answers
have, where that is known.
"""

from __future__ import annotations

import math

from poolwise.model.serving.load import Replica, State
from poolwise.model.serving.queueing import Delay

BUNCHING = 0.5
"""Of the arrivals' dispersion, what one request feels of it: routers keep requests apart."""
BISECTIONS = 24
MOST_SECONDS = 1e4
"""Of a mean gap: beyond it nobody asks."""


def share_later(served: Replica, at: State, seconds: float) -> float:
    """Of requests, those whose mean gap is longer."""
    return math.fsum(
        share * _late_with(served, at, gaps, seconds)
        for gaps, share in served.gaps or _usual(served)
        if gaps > 0.0
    )


def percentile(served: Replica, at: State, percent: float) -> float:
    """Seconds that so many of 100 requests have for their mean gap; 0 without tokens."""
    if not served.generates:
        return 0.0
    low, high = at.decode.seconds, max(at.decode.seconds, at.mixed.seconds) * 2.0
    allowed = 1.0 - percent / 100.0
    while share_later(served, at, high) > allowed and high < MOST_SECONDS:
        high *= 2.0
    for _ in range(BISECTIONS):
        middle = (low + high) / 2.0
        if share_later(served, at, middle) > allowed:
            low = middle
        else:
            high = middle
    return high


def _usual(served: Replica) -> tuple[tuple[float, float], ...]:
    """Gaps where only their mean is known: any answer but those of one token has one at least, so
    that where there is less than one on average, no larger share has any."""
    mean = served.generated.mean
    return ((max(mean, 1.0), min(mean, 1.0)),)


def _late_with(served: Replica, at: State, gaps: float, seconds: float) -> float:
    """Of answers with so many gaps, those whose mean one is longer.

    One of n gaps ends within ``n * seconds`` if its own steps and the prompts of others that are
    read meanwhile fit into that time.
    """
    own = at.decode.seconds
    if seconds <= own:
        return 1.0
    window = gaps * seconds
    any_share, prompts = _prompts_met(at.requests_per_second * window)
    if any_share <= 0.0:
        return 0.0
    return any_share * (1.0 - _read(served, at, prompts).share_below(window - gaps * own))


def _prompts_met(usual: float) -> tuple[float, float]:
    """Of answers, those that meet any prompt while so many come on average, and how many those do.

    A replica has just got a request, so that a router which sends them to whom has least turns to
    others: one of its own has to leave, and then it has to be its turn. With two stages of equal
    length arrivals are Erlang-2, and right after one of them ::

        P(none) = exp(-2 n) * (1 + 2 n)        E[N] = n - (1 - exp(-4 n)) / 4

    (Cox, Renewal Theory, 1962). Of what is late on eight replicas in the simulator this tells 0.7
    to 1.4 times at 5 and 8 requests/s each, and 0.4 to 1.3 times at 2; of what is late on one by
    itself, where nothing keeps requests apart, a sixth to a third, and less where hardly any is
    (``python -m bench.autoscale.validation``). What fleets teach makes up for that
    (:mod:`poolwise.plan.scaling.fragility`).
    """
    any_share = 1.0 - math.exp(-2.0 * usual) * (1.0 + 2.0 * usual)
    mean = usual + math.expm1(-4.0 * usual) / 4.0
    return any_share, max(mean / any_share, 1.0) if any_share > 0.0 else 1.0


def _read(served: Replica, at: State, prompts: float) -> Delay:
    """What prompts add to the steps of others: one, and those that chance adds to it."""
    added, more = at.added_seconds * served.interference, prompts - 1.0
    one = served.prompt.scaled(added)
    bunching = BUNCHING * max(served.arrival_dispersion, 0.1)
    return Delay(
        prompts * added,
        prompts * one.variance_seconds2 + more * bunching * added**2,
        prompts * one.third_seconds3
        + more * bunching * added * (3.0 * one.variance_seconds2 + bunching * added**2),
    )
