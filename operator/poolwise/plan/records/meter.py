"""A meter: what something has used up to a moment, and what it uses per hour since then.

The sum at any later moment follows from it, so that a converged cluster need not be written to, and
an operator that was down for an hour counts that hour. ``status.observed.accrued`` is one::

    {cost: 36400.12, currency: USD, kilowattHours: 8611.2, acceleratorHours: 5312.0,
     until: "2026-11-24T12:00:00Z", perHour: {cost: 440.0, kilowatts: 104.1, accelerators: 64}}

Without ``perHour`` nothing is used any more, and the sums are final.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from poolwise.plan.conditions import timestamp
from poolwise.plan.reading import mapping, moment_of, number

DIGITS = 4
"""Decimals of sums: a hundredth of a cent, a tenth of a watt-hour."""
JOULES_PER_KILOWATT_HOUR = 3.6e6
_RATE_DIGITS = 6
_HOUR_SECONDS = 3600.0


@dataclass(frozen=True, slots=True)
class Rate:
    """What is used per hour."""

    accelerators: float
    cost: float | None
    """Money; None: nobody knows a price."""
    kilowatts: float | None
    """None: nobody predicted the power."""


@dataclass(frozen=True, slots=True)
class Meter:
    """Sums up to a moment, and the rate since then."""

    until: datetime | None = None
    """None: nothing was ever used."""
    rate: Rate | None = None
    """None: nothing is used now."""
    cost: float = 0.0
    kilowatt_hours: float = 0.0
    accelerator_hours: float = 0.0
    unpriced_hours: float = 0.0
    """Accelerator-hours that ``cost`` leaves out, since nobody knew their price."""
    currency: str = ""

    def at(self, moment: datetime) -> Meter:
        """The sums at a moment; earlier ones than ``until`` change nothing."""
        if self.rate is None or self.until is None or moment <= self.until:
            return self
        hours = (moment - self.until).total_seconds() / _HOUR_SECONDS
        used, rate = hours * self.rate.accelerators, self.rate
        return replace(
            self,
            until=moment,
            cost=self.cost + hours * (rate.cost or 0.0),
            kilowatt_hours=self.kilowatt_hours + hours * (rate.kilowatts or 0.0),
            accelerator_hours=self.accelerator_hours + used,
            unpriced_hours=self.unpriced_hours + (used if rate.cost is None else 0.0),
        )

    def stopped(self, moment: datetime) -> Meter:
        """From that moment on nothing is used."""
        return replace(self.at(moment), rate=None)

    def started(self, moment: datetime, rate: Rate, currency: str) -> Meter:
        """From that moment on it is used at a rate; sums of another currency are forgotten."""
        stopped = self.stopped(moment)
        until = moment if stopped.until is None else max(moment, stopped.until)
        is_other = bool(currency and stopped.currency not in ("", currency))
        cost = 0.0 if is_other else stopped.cost
        known = currency or stopped.currency
        return replace(stopped, until=until, rate=rate, cost=cost, currency=known)


def rate(accelerators: float, cost: float | None, kilowatts: float | None) -> Rate:
    """A rate as it is told, so that computing it again finds the same."""
    return Rate(
        round(accelerators, _RATE_DIGITS),
        None if cost is None else round(cost, _RATE_DIGITS),
        None if kilowatts is None else round(kilowatts, _RATE_DIGITS),
    )


def told(meter: Meter) -> dict[str, Any]:
    """As it stands in a status; empty where nothing was ever used."""
    if meter.until is None:
        return {}
    found: dict[str, Any] = {
        "cost": round(meter.cost, DIGITS),
        "currency": meter.currency,
        "kilowattHours": round(meter.kilowatt_hours, DIGITS),
        "acceleratorHours": round(meter.accelerator_hours, DIGITS),
        "unpricedAcceleratorHours": round(meter.unpriced_hours, DIGITS),
        "until": timestamp(meter.until),
    }
    if meter.rate is not None:
        found["perHour"] = {
            "cost": meter.rate.cost,
            "kilowatts": meter.rate.kilowatts,
            "accelerators": meter.rate.accelerators,
        }
    return _present(found)


def read(document: Mapping[str, Any]) -> Meter:
    """A meter from a status; an empty one from what nobody can read."""
    until = moment_of(document.get("until"))
    if until is None:
        return Meter()
    running, currency = mapping(document, "perHour"), document.get("currency")
    return Meter(
        until=until,
        rate=_rate(running) if running else None,
        cost=number(document, "cost") or 0.0,
        kilowatt_hours=number(document, "kilowattHours") or 0.0,
        accelerator_hours=number(document, "acceleratorHours") or 0.0,
        unpriced_hours=number(document, "unpricedAcceleratorHours") or 0.0,
        currency=currency if isinstance(currency, str) else "",
    )


def _rate(document: Mapping[str, Any]) -> Rate:
    return Rate(
        number(document, "accelerators") or 0.0,
        number(document, "cost"),
        number(document, "kilowatts"),
    )


def _present(document: Mapping[str, Any]) -> dict[str, Any]:
    """Without what is unknown, and without a currency or an unpriced part where there is none."""
    hidden = {"currency": "", "unpricedAcceleratorHours": 0.0}
    shown = {
        name: _present(value) if isinstance(value, Mapping) else value
        for name, value in document.items()
    }
    return {
        name: value
        for name, value in shown.items()
        if value is not None and value != hidden.get(name)
    }
