"""What one look at a replica cannot truly tell: then nothing of it is used, and nothing shrinks.

Beside what no number can be (:mod:`poolwise.plan.signals.plausible`), what one replica cannot have
done. Bounds are far beyond what any engine does, so that no burst is ever taken for a lie; what
lies within them cannot be told from the truth by one number.
"""

from __future__ import annotations

from poolwise.plan.signals.sample import Sample

MOST_IN_FLIGHT = 65_536.0
"""On one replica. Engines run some thousands at once, and as many sockets has one address."""
MOST_PER_SECOND = 1000.0
"""Requests that one replica begins to answer, of any length; encoders serve more by the model."""
MOST_TIMES = 50.0
"""What it serves at the present mix: prompts may become that much shorter from one look on."""


def most_requests(requests_per_second: float, seconds: float) -> float:
    """That may come to one replica in so long; the first is what it serves by the model."""
    return max(MOST_PER_SECOND, MOST_TIMES * requests_per_second) * seconds


def doubt(sample: Sample, arrivals: float, most_arrivals: float) -> str | None:
    """Why a look cannot be true, as a clause; None: it may be.

    :param arrivals: since it was last read, or since it is there.
    """
    for value, doing in ((sample.running, "running"), (sample.waiting, "waiting")):
        if value is not None and value > MOST_IN_FLIGHT:
            return f"{sample.replica}: {value:g} requests {doing} cannot be true"
    if abs(arrivals) > most_arrivals:
        return f"{sample.replica}: {arrivals:g} requests in that time cannot be true"
    return None
