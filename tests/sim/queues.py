"""Queues with a known law, request by request."""

from __future__ import annotations

import heapq
import math

import numpy as np

from poolwise.sim.serving.requests import Floats


def in_order(arrivals: Floats, services: Floats, servers: int) -> Floats:
    """When each leaves a queue with so many servers, by its definition: whoever is free first."""
    free_at = [0.0] * servers
    found = np.empty(len(arrivals))
    for place, (arrival, service) in enumerate(zip(arrivals, services, strict=True)):
        found[place] = max(arrival, free_at[0]) + service
        heapq.heapreplace(free_at, found[place])
    return found


def in_common(arrivals: Floats, services: Floats) -> Floats:
    """When each leaves a processor that all present share alike.

    ``given`` is what each would have had since the beginning; a request leaves when that has grown
    by its service.
    """
    found = np.empty(len(arrivals))
    present: list[tuple[float, int]] = []
    now = given = 0.0
    coming = [*zip(arrivals.tolist(), services.tolist(), strict=True), (math.inf, 0.0)]
    for place, (arrival, service) in enumerate(coming):
        while present and now + (present[0][0] - given) * len(present) <= arrival:
            now += (present[0][0] - given) * len(present)
            given, leaving = heapq.heappop(present)
            found[leaving] = now
        if present:
            given += (arrival - now) / len(present)
        now = arrival
        heapq.heappush(present, (given + service, place))
    return found
