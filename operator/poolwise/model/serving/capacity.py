"""The most a replica serves inside its targets, and what stops it there.

Every latency grows with the load, so there is a highest load at which all targets hold
(:mod:`poolwise.model.serving.climb`); the rate at that load is the capacity.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from poolwise.model.serving.climb import LEAST_LOAD, PRECISION, Climb, Highest
from poolwise.model.serving.latency import latencies
from poolwise.model.serving.load import Replica, state
from poolwise.model.serving.targets import first_missed
from poolwise.model.work import Target


@dataclass(frozen=True, slots=True)
class Capacity:
    """The last state at which all targets hold."""

    requests_per_second: float
    load: float
    limiting: str
    """``TTFT p99`` and the like, ``KV cache``, ``Batch`` (max_num_seqs) or ``Rate``."""


KV_CACHE = "KV cache"
NOTHING = Capacity(0.0, 0.0, "")
BISECTIONS = 12
"""To a four-thousandth of a load."""


def capacity(served: Replica, targets: tuple[Target, ...]) -> Capacity:
    """Without targets: saturation. A load of 0 where a target fails even unloaded."""
    return told(served, targets, highest(served, targets))


def highest(
    served: Replica, targets: tuple[Target, ...], near: float = 0.0, worth: float = 0.0
) -> Highest:
    """The highest load at which all targets hold, or 0; see :class:`Climb`."""
    return Climb(served, targets).highest(near, worth)


def told(served: Replica, targets: tuple[Target, ...], found: Highest) -> Capacity:
    """With what stops it."""
    return Capacity(found.requests_per_second, found.load, _stopped_by(served, targets, found.load))


def ceiling_requests_per_second(served: Replica) -> float:
    """With every slot taken, whatever the targets: no capacity is above it."""
    load = served.largest_load
    return state(served, load).requests_per_second if load > 0.0 else 0.0


def sustained_requests_per_second(served: Replica, load: float) -> float:
    """The rate below which waiting has an end, of loads up to a given one.

    A batch is the fuller the better for who only computes; but who waits for a prompt's turn holds
    a slot meanwhile, so that requests that come by chance run out of slots before the batch is
    full, and of time where prompts come as fast as they are read.
    """
    if load <= 0.0:
        return 0.0
    if _ends(served, load):
        return state(served, load).requests_per_second
    ends, endless = LEAST_LOAD * load, load  # who is alone waits for nobody
    for _ in range(BISECTIONS):
        middle = (ends + endless) / 2.0
        ends, endless = (middle, endless) if _ends(served, middle) else (ends, middle)
    return state(served, ends).requests_per_second


def _ends(served: Replica, load: float) -> bool:
    return math.isfinite(latencies(served, state(served, load)).e2e.mean_seconds)


def _stopped_by(served: Replica, targets: tuple[Target, ...], load: float) -> str:
    most = served.largest_load
    if most <= 0.0:
        return KV_CACHE
    if load == most:
        return _ceiling(served)
    just_above = load * math.exp(PRECISION) if load else most * LEAST_LOAD
    return _limiting(served, min(just_above, most), targets)


def _ceiling(served: Replica) -> str:
    if not served.generates:
        return "Rate"
    return KV_CACHE if served.cache_slots <= served.batch_slots else "Batch"


def _limiting(served: Replica, load: float, targets: tuple[Target, ...]) -> str:
    """The missed target just above the capacity, or the slots where waiting for one misses it."""
    times = latencies(served, state(served, load))
    missed = first_missed(times, targets)
    if missed is None:
        return "Rate"
    if missed.metric.is_from_arrival and times.slot_wait.high_seconds > times.queue.high_seconds:
        return _ceiling(served)
    return str(missed)
