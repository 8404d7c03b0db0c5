"""Whether what runs stays inside what its owner allows, by what it has cost and is expected to.

Nothing is stopped for its cost: the condition ``WithinBudget`` and an Event tell its owner.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from poolwise.plan.conditions import Reason, Type, condition
from poolwise.plan.limits import pays
from poolwise.plan.pool import Condition
from poolwise.plan.reading import mapping, quantity
from poolwise.plan.records.meter import Meter
from poolwise.plan.wording import money

NEARLY = 0.9
"""Of the limit: a run that is past its expected end and has spent so much is warned."""


@dataclass(frozen=True, slots=True)
class Money:
    """What a workload has cost, and when it is expected to end."""

    meter: Meter
    expected_finish: datetime | None
    now: datetime


def within_budget(spec: Mapping[str, Any], spent: Money) -> Iterator[Condition]:
    """The condition of a workload that has cost something and names a limit; else none."""
    objective = mapping(spec, "objective")
    total, hourly = (quantity(objective.get(name)) for name in ("maxCost", "maxCostPerHour"))
    if spent.meter.until is None:
        return
    if total is not None:
        yield _of_run(total, spent)
    elif hourly is not None and spent.meter.rate and spent.meter.rate.cost is not None:
        yield _of_service(hourly, spent.meter.rate.cost, spent.meter.currency)


def _of_run(limit: float, spent: Money) -> Condition:
    currency = spent.meter.currency or "USD"
    told = f"maxCost is {money(limit, currency)}"
    reached = _reached(limit, spent.meter)
    if spent.meter.at(spent.now).cost > limit:
        return condition(
            Type.WITHIN_BUDGET, False, Reason.COST_EXCEEDED, f"{told}{_overrun(spent, reached)}"
        )
    if reached is None or spent.meter.rate is None:
        return condition(Type.WITHIN_BUDGET, True, Reason.WITHIN_LIMIT, told)
    told += f", reached about {_moment(reached)} at {money(spent.meter.rate.cost or 0.0, currency)}"
    told += " per hour"
    finish = spent.expected_finish
    if finish is None:
        return condition(Type.WITHIN_BUDGET, True, Reason.WITHIN_LIMIT, told)
    late = finish <= spent.now
    told += f"; it {'was' if late else 'is'} expected to end about {_moment(finish)}"
    nearly = spent.meter.at(spent.now).cost >= NEARLY * limit
    if finish > reached or (late and nearly):
        told += ". Nothing stops it: raise objective.maxCost, or set spec.suspend"
        return condition(Type.WITHIN_BUDGET, False, Reason.COST_WILL_EXCEED, told)
    return condition(Type.WITHIN_BUDGET, True, Reason.WITHIN_LIMIT, told)


def _overrun(spent: Money, reached: datetime | None) -> str:
    currency = spent.meter.currency or "USD"
    if spent.meter.rate is None or reached is None:
        return f", and it has cost {money(spent.meter.cost, currency)}"
    rate = money(spent.meter.rate.cost or 0.0, currency)
    return (
        f", which was spent by {_moment(reached)}; it goes on costing {rate} per hour."
        " Nothing stops it: raise objective.maxCost, or set spec.suspend"
    )


def _of_service(limit: float, cost: float, currency: str) -> Condition:
    known = currency or "USD"
    told = f"costs {money(cost, known)} per hour, maxCostPerHour is {money(limit, known)}"
    is_paid = pays(limit, cost)
    reason = Reason.WITHIN_LIMIT if is_paid else Reason.COST_EXCEEDED
    return condition(Type.WITHIN_BUDGET, is_paid, reason, told)


def _reached(limit: float, meter: Meter) -> datetime | None:
    """When the sum is the limit at the present rate; None where it never is."""
    if meter.until is None or meter.rate is None or not meter.rate.cost:
        return None
    try:
        return meter.until + timedelta(hours=(limit - meter.cost) / meter.rate.cost)
    except OverflowError:
        return None


def _moment(moment: datetime) -> str:
    """To the minute, so that the sentence stays as it is."""
    return f"{moment:%Y-%m-%d %H:%M} UTC"
