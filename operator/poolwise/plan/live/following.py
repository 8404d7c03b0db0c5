"""What of a service's wishes for its number of replicas cannot be met: a number that others set
(modes External and Off), and none at all while it is idle."""

from __future__ import annotations

from poolwise.api.service import Scaling
from poolwise.plan.conditions import Reason, Type, condition
from poolwise.plan.decision import Plan
from poolwise.plan.live.look import Mode, mode_of
from poolwise.plan.observed import Object
from poolwise.plan.pool import Condition
from poolwise.plan.status.figures import number, part


def cut_short(service: Object, plan: Plan) -> Condition | None:
    """``ScalingActive`` of a service that runs fewer replicas than ``spec.replicas`` says; None
    where it runs them all, and where Poolwise sets the number."""
    spec = part(service, "spec")
    asked = number(spec, "replicas")
    if mode_of(service) is Mode.DIRECT or asked is None or not plan.placed or plan.chosen is None:
        return None
    runs = (plan.chosen.replicas or 0) + plan.further_replicas
    if runs >= asked:
        return None
    most = number(part(spec, "scaling"), "maxReplicas") or Scaling().max_replicas
    if runs >= most:
        told = f"spec.replicas is {asked:g}, scaling.maxReplicas allows {most:g}"
        return condition(Type.SCALING_ACTIVE, True, Reason.AT_MAXIMUM, told)
    told = f"spec.replicas is {asked:g}, there is room for {runs}: more start as room gets free"
    return condition(Type.SCALING_ACTIVE, True, Reason.AT_CAPACITY, told)


def stays_at_one(service: Object) -> Condition | None:
    """``ScalesToZero`` of a service that asks for it; None of one that does not, or whose number is
    nobody's but its user's.

    The last replica would take with it the only thing that can answer: nothing in front of a
    service keeps requests until the next one is ready.
    """
    is_asked = part(part(service, "spec"), "scaling").get("scaleToZero") is True
    if not is_asked or mode_of(service) is Mode.OFF:
        return None
    told = (
        "scaling.scaleToZero is true, but nothing would hold the requests that come while no"
        " replica runs: one replica at least is asked for"
    )
    return condition(Type.SCALES_TO_ZERO, False, Reason.NOTHING_HOLDS_REQUESTS, told)
