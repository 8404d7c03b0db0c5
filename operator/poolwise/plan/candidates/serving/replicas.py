"""How many replicas of one shape a service takes."""

from __future__ import annotations

import math

from poolwise.plan.limits import SLACK
from poolwise.plan.requests.request import ServingRequest

ASSUMED_IN_FLIGHT = 1.0
"""Requests under way on average where neither a peak is declared nor the load known."""
ASSUMED_REQUESTS_PER_SECOND = 100.0
"""The same where only the rate counts: so many that replicas of all kinds are filled, and the least
for it is the least for each request."""


def replicas_needed(request: ServingRequest, planned_requests_per_second: float) -> int:
    """What the load asks for where it is known; else enough for the declared peak with
    ``redundancy`` to spare, and no fewer than run."""
    if request.given_replicas is not None:
        return request.given_replicas
    rate = request.work.requests_per_second
    least = max(request.least_replicas, 1)
    if request.live_replicas is not None:
        return max(least, min(request.live_replicas, request.most_replicas))
    least = max(least, min(request.running_replicas, request.most_replicas))
    if rate is None:
        return least
    return max(least, _for_rate(rate, planned_requests_per_second, request))


def replicas_paid(wanted: int, cost_per_hour: float, limit_per_hour: float | None) -> int:
    """Of so many replicas as many as an hour may cost; all where there is no limit.

    :param cost_per_hour: of one.
    """
    if limit_per_hour is None or cost_per_hour <= 0.0 or wanted <= 0:
        return wanted
    return max(min(wanted, math.floor(limit_per_hour / cost_per_hour + SLACK)), 0)


def replicas_weighed(
    request: ServingRequest, planned_requests_per_second: float, in_flight: float
) -> int:
    """By which pools and shapes are compared: those that run, and where others set their number as
    many as the targets need. One that is cheap for too few would win else, and stay when more come.

    Where nobody knows the load, one request under way is assumed: a replica that keeps a target for
    a lone request alone costs least, and would be needed ten times over as soon as users come. Of
    who has no target, and waits for hours, it is a rate that fills any replica.

    :param in_flight: of one replica at the rate that it is planned for.
    """
    held = replicas_needed(request, planned_requests_per_second)
    rate = request.work.requests_per_second
    if is_load_assumed(request):
        if request.work.targets:
            return max(held, math.ceil(ASSUMED_IN_FLIGHT / in_flight) + request.redundancy)
        rate = ASSUMED_REQUESTS_PER_SECOND
    elif request.given_replicas is None or rate is None:
        return held
    return max(held, _for_rate(rate, planned_requests_per_second, request))


def is_load_assumed(request: ServingRequest) -> bool:
    """Whether neither a peak is declared nor the load known. Never of models that generate nothing:
    their requests are under way for no longer than they are read."""
    is_known = request.work.requests_per_second is not None or request.live_replicas is not None
    return request.work.model.generates and not is_known


def assumed_load(request: ServingRequest) -> str:
    """What is assumed where the load is not known, in words; empty: it is."""
    if not is_load_assumed(request):
        return ""
    if request.work.targets:
        return "with one request under way"
    return f"at {ASSUMED_REQUESTS_PER_SECOND:g} requests/s"


def _for_rate(rate: float, planned_requests_per_second: float, request: ServingRequest) -> int:
    return math.ceil(rate / planned_requests_per_second) + request.redundancy
