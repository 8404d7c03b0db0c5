"""What of a trace can be replayed at all: checked before a minute of work goes into it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bench.autoscale.engine import Engine
from bench.autoscale.scene import BIN_SECONDS
from bench.autoscale.sizing import Work
from bench.autoscale.traces import Trace, part_of
from bench.files import BadInput

LEAST_SECONDS = BIN_SECONDS
"""Fleets are sized by the busiest minute: a trace has one at least."""
MOST_REQUESTS_PER_HOUR = 2_000_000
"""All policies are done with so many of an hour in about a quarter of one, on two cores."""
MOST_REQUESTS = 8_000_000
"""A replay takes 300 bytes for each, and two run at a time."""


def replayable(trace: Trace, engine: Engine) -> Trace:
    """Without requests whose tokens fit no replica's cache: engines refuse them on any fleet.

    Raises :class:`BadInput` for a trace that is too short, or that has no other ones.
    """
    found = _fitting(trace, engine)
    if found.seconds < LEAST_SECONDS:
        raise _refused(
            found,
            f"its requests all arrive within {found.seconds:g} s, "
            f"must be spread over {LEAST_SECONDS:g} s at least",
        )
    return found


def _refused(trace: Trace, why: str) -> BadInput:
    """With what was left out before, which may be the reason."""
    return BadInput("; ".join(filter(None, [f"{trace.name}: {why}", trace.complaint])))


def check_left(thinned: Trace, trace: Trace) -> None:
    """Raises :class:`BadInput` where too little of a trace is left in ``thinned``."""
    if thinned.seconds < LEAST_SECONDS:
        raise BadInput(
            f"{trace.name}: {len(thinned.requests)} of its {len(trace.requests)} requests are left "
            "for a fleet of this size, too few to replay"
        )


def _fitting(trace: Trace, engine: Engine) -> Trace:
    requests, most_tokens = trace.requests, engine.limits.kv_tokens
    fits = requests.input_tokens + requests.output_tokens <= most_tokens
    if fits.all():
        return trace
    if not fits.any():
        raise _refused(
            trace, f"no request fits a replica's cache of {most_tokens} tokens ({engine.name})"
        )
    told = (
        f"{trace.name}: {int((~fits).sum())} of {len(requests)} requests left out, whose tokens "
        f"fit no replica's cache of {most_tokens}"
    )
    complaint = "; ".join(filter(None, [trace.complaint, told]))
    kept = np.flatnonzero(fits)
    arrivals = requests.arrival_seconds[kept]
    found = part_of(requests, arrivals - arrivals[0], kept)
    return replace(trace, requests=found, complaint=complaint)


def affordable_peak(trace: Trace, work: Work, peak_replicas: float) -> float:
    """``peak_replicas``, or as many as keep the replay inside its bounds of requests.

    Answers of a few tokens come by the hundreds each second from one replica.
    """
    users = peak_replicas / float(work.needed_replicas(trace.requests, BIN_SECONDS).max())
    hours = max(trace.seconds / 3600.0, 1.0)
    most = min(MOST_REQUESTS_PER_HOUR * hours, MOST_REQUESTS)
    return peak_replicas * min(1.0, most / (users * len(trace.requests)))
