"""What of a number of replicas that others set (modes External and Off) cannot be met."""

from __future__ import annotations

from poolwise.api.service import Scaling
from poolwise.plan.conditions import Reason, Type, condition
from poolwise.plan.decision import Plan
from poolwise.plan.live.look import Mode, mode_of
from poolwise.plan.observed import Object
from poolwise.plan.pool import Condition
from poolwise.plan.reading import Told, mapping, number, quantity


def cut_short(service: Object, plan: Plan, told: Told) -> Condition | None:
    """``ScalingActive`` of a service that runs fewer replicas than ``spec.replicas`` says; None
    where it runs them all, and where Poolwise sets the number.

    :param told: ``status.plan``.
    """
    spec = mapping(service, "spec")
    asked = number(spec, "replicas")
    if mode_of(service) is Mode.DIRECT or asked is None or not plan.placed or plan.chosen is None:
        return None
    runs = plan.replicas + plan.further_replicas
    if runs >= asked:
        return None
    most = number(mapping(spec, "scaling"), "maxReplicas") or Scaling().max_replicas
    if runs >= most:
        message = f"spec.replicas is {asked:g}, scaling.maxReplicas allows {most:g}"
        return condition(Type.SCALING_ACTIVE, True, Reason.AT_MAXIMUM, message)
    limit = quantity(mapping(spec, "objective").get("maxCostPerHour"))
    cost = number(told, "costPerHour")
    if limit is not None and cost is not None and cost / max(runs, 1) * (runs + 1) > limit:
        message = f"spec.replicas is {asked:g}, objective.maxCostPerHour pays {runs}"
        return condition(Type.SCALING_ACTIVE, True, Reason.AT_COST_LIMIT, message)
    message = f"spec.replicas is {asked:g}, there is room for {runs}: more start as room gets free"
    return condition(Type.SCALING_ACTIVE, True, Reason.AT_CAPACITY, message)
