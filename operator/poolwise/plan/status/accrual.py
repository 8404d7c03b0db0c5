"""What a workload has cost and used so far: its meter, moved on by what is seen now.

It counts while its pods are on nodes: accelerators times their share of the node's price, and the
predicted power. Starts and ends are those of the pods (of the Job, where they are gone), so that
neither a restart nor an hour without an operator changes a sum. A price or a number of replicas
that changes counts from when it is seen. The status is written when the rate changes, at the end,
and every ``accrual_seconds`` in between.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from poolwise.plan.decision import Candidate, Outcome, Plan, chosen_pool
from poolwise.plan.pool import Pool
from poolwise.plan.reading import Told, mapping, number
from poolwise.plan.records.hourly import (
    WATTS_PER_KILOWATT,
    comparable_cost,
    cost_per_hour,
    kilowatts,
    replicas_of,
)
from poolwise.plan.records.meter import Meter, Rate, rate, read
from poolwise.plan.records.meter import told as meter_told
from poolwise.plan.status.pods import Observation
from poolwise.plan.status.span import Span


def accrued(
    meter: Meter,
    outcome: Outcome,
    told: Told,
    pools: Mapping[str, Pool],
    seen: Observation,
    now: datetime,
) -> Meter:
    """The meter as it should stand in the status; ``told`` is ``status.plan`` as it will be, and
    ``pools`` are those that there are, by name."""
    now = now.replace(microsecond=0)  # statuses tell whole seconds: a fraction would count twice
    span, pool = _span(seen), chosen_pool(outcome, pools)
    found = _current(meter, outcome, told, pool)
    if found is not None and isinstance(outcome, Plan):
        for part_ in outcome.parts:
            found = _with_part(found, part_, pools, told, is_all_paid=pool is None)
    if span.is_active and found is not None:
        currency = pool.price.currency if pool and pool.price else ""
        return _running(meter, found, currency or meter.currency, span.since or now, now)
    if meter.rate is not None:
        return meter.stopped(span.ended or now)
    return _missed(meter, told, span)


def brought_up_to_date(
    status: dict[str, Any], now: datetime, step_seconds: float
) -> dict[str, Any]:
    """A status whose sums are those of now, where they are older than a step (0: never)."""
    observed = mapping(status, "observed")
    meter, now = read(mapping(observed, "accrued")), now.replace(microsecond=0)
    if not step_seconds or meter.rate is None or meter.until is None:
        return status
    if now - meter.until < timedelta(seconds=step_seconds):
        return status
    return {**status, "observed": {**observed, "accrued": meter_told(meter.at(now))}}


def _running(meter: Meter, found: Rate, currency: str, since: datetime, now: datetime) -> Meter:
    """What begins counts from its first pod on. What goes on at another rate does so from now: the
    first pod of a rollout is older than the replicas, or the price, that came after it."""
    if meter.rate is None or meter.until is None:
        return meter.started(since, found, currency)
    return meter if meter.rate == found else meter.started(now, found, currency)


def _missed(meter: Meter, told: Told, span: Span) -> Meter:
    """A run that began and ended while nobody looked."""
    if span.since is None or span.ended is None or told.get("placed") is not True:
        return meter
    if meter.until is not None and meter.until >= span.since:
        return meter
    found = _as_told(told)
    currency = str(told.get("currency") or meter.currency)
    return meter.started(span.since, found, currency).stopped(span.ended)


def _span(seen: Observation) -> Span:
    """Of the pods; of the Job where it alone tells."""
    span = seen.span
    if span.is_active or span.ended is not None:
        return span
    if seen.end_time is not None:
        return Span(False, span.since or seen.start_moment, ended=seen.end_time)
    if seen.ready and seen.start_moment is not None:
        return Span(True, seen.start_moment)
    return span


def _current(meter: Meter, outcome: Outcome, told: Told, pool: Pool | None) -> Rate | None:
    """What its pods use now; as before, where no plan tells what they hold."""
    if not isinstance(outcome, Plan) or not outcome.placed or outcome.chosen is None:
        return meter.rate
    chosen = outcome.chosen
    return rate(
        chosen.count * replicas_of(chosen),
        _cost(chosen, pool, told, meter),
        kilowatts(chosen, told),
    )


def _with_part(
    found: Rate, part_: Plan, pools: Mapping[str, Pool], told: Told, *, is_all_paid: bool
) -> Rate:
    """With what replicas on a further pool use; an accelerator of theirs as much power as one of
    the first pool. The cost that was known last, while the first pool is gone, is of all."""
    chosen = part_.chosen
    pool = pools.get(chosen.pool) if chosen else None
    if chosen is None or pool is None:
        return found
    cost, power = found.cost, kilowatts(chosen, told)
    if cost is not None and not is_all_paid:
        own = comparable_cost(pool, chosen)
        cost = None if own is None else cost + own
    both = None if found.kilowatts is None or power is None else found.kilowatts + power
    return rate(found.accelerators + chosen.count * replicas_of(chosen), cost, both)


def _cost(chosen: Candidate, pool: Pool | None, told: Told, meter: Meter) -> float | None:
    """At the pool's price of now; at the last one known where the pool is gone."""
    if pool is not None:
        return cost_per_hour(pool, chosen)
    return meter.rate.cost if meter.rate else number(told, "costPerHour")


def _as_told(told: Told) -> Rate:
    """Of a run that is over: as it was planned."""
    count, watts = number(told, "count") or 0.0, number(told, "powerWatts")
    kilowatts = None if watts is None else watts * max(count, 1.0) / WATTS_PER_KILOWATT
    return rate(count, number(told, "costPerHour"), kilowatts)
