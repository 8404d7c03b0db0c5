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
"""Of the arrivals' dispersion, what one request feels of it where a router keeps requests apart;
else it feels all of it."""
BISECTIONS = 24
MOST_SECONDS = 1e4
"""Of a mean gap: beyond it nobody asks."""

_Met = tuple[float, float]
"""Of answers, those that meet any prompt of another, and how many all of them meet on average."""


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
    room = window - gaps * own
    apart = served.routed.apart_share
    late = 0.0
    if apart > 0.0:
        met = _met_apart(at.requests_per_second * window)
        late += apart * _longer(served, at, met, BUNCHING, room)
    if apart < 1.0:
        met = _met_by_chance(at.requests_per_second * (window + at.prompt_service_seconds))
        late += (1.0 - apart) * _longer(served, at, met, 1.0, room)
    return late


def _longer(served: Replica, at: State, met: _Met, bunching: float, seconds: float) -> float:
    """Of answers, those that others' prompts hold up for longer."""
    any_share, mean = met
    if any_share <= 0.0:
        return 0.0
    prompts = max(mean / any_share, 1.0)
    return any_share * (1.0 - _read(served, at, prompts, bunching).share_below(seconds))


def _met_apart(usual: float) -> _Met:
    """Where a router keeps requests apart, and so many come on average.

    A replica has just got a request, so that a router which sends them to whom has least turns to
    others: one of its own has to leave, and then it has to be its turn. With two stages of equal
    length arrivals are Erlang-2, and right after one of them ::

        P(none) = exp(-2 n) * (1 + 2 n)        E[N] = n - (1 - exp(-4 n)) / 4

    (Cox, Renewal Theory, 1962). Of what is late on eight replicas in the simulator this tells 0.7
    to 1.4 times at 5 and 8 requests/s each, and 0.4 to 1.3 times at 2
    (``python -m bench.autoscale.validation``). What fleets teach makes up for that
    (:mod:`poolwise.plan.scaling.fragility`).
    """
    any_share = 1.0 - math.exp(-2.0 * usual) * (1.0 + 2.0 * usual)
    return any_share, usual + math.expm1(-4.0 * usual) / 4.0


def _met_by_chance(usual: float) -> _Met:
    """Where nothing keeps requests apart (Poisson), and so many come on average: while the answer
    lasts, and while its own prompt is read, as those have to be read after it.

    Of what is late on one replica in the simulator this tells 0.5 to 1.9 times for answers of two
    and four tokens, and 0.2 to 0.6 times for those of eight, of which hardly any are.
    """
    return -math.expm1(-usual), usual


def _read(served: Replica, at: State, prompts: float, bunching: float) -> Delay:
    """What prompts add to the steps of others: one, and those that chance adds to it."""
    added, more = at.added_seconds * served.interference, prompts - 1.0
    one = served.prompt.scaled(added)
    bunching *= max(served.arrival_dispersion, 0.1)
    return Delay(
        prompts * added,
        prompts * one.variance_seconds2 + more * bunching * added**2,
        prompts * one.third_seconds3
        + more * bunching * added * (3.0 * one.variance_seconds2 + bunching * added**2),
    )
