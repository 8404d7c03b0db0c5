"""What users read of a job in a queue: Kueue's own conditions, in Kueue's own words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from poolwise.plan.conditions import Reason, Type, condition
from poolwise.plan.decision import Plan
from poolwise.plan.pool import Condition


def is_waiting(plan: Plan) -> bool:
    """Whether a plan is made, and Kueue has not let the job in (yet, or any more)."""
    if plan.admission is None:
        return plan.queue is not None
    return plan.placed and not plan.admission.is_reserved


def placed(plan: Plan) -> Condition:
    """``Placed`` of a job that waits: for what, by Kueue's word."""
    planned = f"planned for {plan.chosen.pool}" if plan.chosen else "planned"
    if plan.admission is None:
        told = f"{planned}; its turn is up to Kueue, which is about to be told of it"
        return condition(Type.PLACED, False, Reason.QUEUED, told)
    gate = "; it is held back until there is room" if plan.record and plan.record.is_gated else ""
    said = f"{planned}{gate}; Kueue: {plan.admission.message}"
    return condition(Type.PLACED, False, plan.admission.reason, said)


def queue_conditions(spec: Mapping[str, Any], plan: Plan) -> list[Condition]:
    """Kueue's conditions as they are, or why there are none although the spec names a queue."""
    if plan.admission is not None:
        return [
            condition(Type(each.type), each.status, each.reason or Reason.QUEUED, each.message)
            for each in plan.admission.conditions
        ]
    queue = plan.queue or (plan.record and plan.record.queue)
    if not spec.get("queueName") or not plan.placed or queue is not None:
        return []
    told = (
        f"spec.queueName is {spec['queueName']}, and Kueue was not installed when this was placed: "
        "it runs without a quota"
    )
    return [condition(Type.QUOTA_RESERVED, None, Reason.KUEUE_NOT_INSTALLED, told)]
