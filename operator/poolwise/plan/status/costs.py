"""Phrases of money and energy: what is predicted, and what has been used so far."""

from __future__ import annotations

from datetime import datetime

from poolwise.plan.reading import Told, number
from poolwise.plan.records.meter import JOULES_PER_KILOWATT_HOUR, read
from poolwise.plan.status.figures import cost
from poolwise.plan.wording import duration, money, three_digits


def predicted_cost(told: Told) -> str:
    """``$36,400 and 8,611 kWh in all, 2 h of it lost to ...``, or ``$20.60/h and 4.1 kW``."""
    joules, lost = number(told, "energyJoules"), number(told, "lostSeconds")
    energy = None if joules is None else joules / JOULES_PER_KILOWATT_HOUR
    is_run = number(told, "totalSeconds") is not None
    unit = "kWh" if is_run else "kW"
    phrases = [*cost(told)[-1:], "" if energy is None else f"{three_digits(energy)} {unit}"]
    text = " and ".join(filter(None, phrases))
    if not is_run or not text:
        return text
    waste = f", with {duration(lost)} lost to interruptions of Spot nodes" if lost else ""
    return f"{text} in all{waste}"


def so_far(accrued: Told, now: datetime | None) -> str:
    """``so far $1,320, 312 kWh and 48 accelerator-hours, at $110/h and 10.2 kW``."""
    meter = read(accrued)
    meter = meter if now is None else meter.at(now)
    if meter.until is None:
        return ""
    currency = meter.currency or "USD"
    sums = [money(meter.cost, currency)] if meter.currency else []
    sums.append(f"{three_digits(meter.kilowatt_hours)} kWh")
    if meter.accelerator_hours:
        sums.append(f"{three_digits(meter.accelerator_hours)} accelerator-hours")
    if meter.unpriced_hours:
        sums.append(f"{three_digits(meter.unpriced_hours)} of them at an unknown price")
    text = f"so far {', '.join(sums)}"
    if meter.rate is None:
        return text
    rates = [] if meter.rate.cost is None else [f"{money(meter.rate.cost, currency)}/h"]
    rates += [] if meter.rate.kilowatts is None else [f"{three_digits(meter.rate.kilowatts)} kW"]
    return f"{text}, at {' and '.join(rates)}" if rates else text
