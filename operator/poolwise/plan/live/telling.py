"""What a service's user reads of its scaling: ``status.scaling``, and four conditions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from poolwise.plan.conditions import timestamp
from poolwise.plan.live.keeping import Signal
from poolwise.plan.live.look import Look, Mode
from poolwise.plan.live.mixture import pools_told
from poolwise.plan.live.steady import steady
from poolwise.plan.live.verdicts import conditions
from poolwise.plan.pool import Condition
from poolwise.plan.reading import Told, number
from poolwise.plan.rounding import present
from poolwise.plan.scaling.decision import Forecast, Remark, Tail
from poolwise.plan.wording import sentence, significant

DECISIONS_KEPT = 10
_DIGITS = 3
_SENTENCE = 512


@dataclass(frozen=True, slots=True)
class MeasuredStatus:
    """What a status tells of a look."""

    scaling: Mapping[str, Any]
    conditions: tuple[Condition, ...]
    observed: Mapping[str, Any] = field(default_factory=dict)
    """For ``status.observed``."""


def measured(look: Look, before: Told) -> MeasuredStatus:
    """``status.scaling`` and its conditions; ``before`` is ``status.scaling`` as it stands."""
    scaling = steady(before, _scaling(look, before), look.now)
    return MeasuredStatus(scaling, conditions(look), {} if scaling is before else _observed(look))


def _observed(look: Look) -> dict[str, Any]:
    """Told along with the rest: what of this moved alone is not worth a write."""
    return figures_told({"ratio": look.decision.token_ratio})


def _scaling(look: Look, before: Told) -> dict[str, Any]:
    decision = look.decision
    wanted = {} if look.mode is Mode.OFF else _number(look, before)
    return figures_told(
        {
            "time": timestamp(look.now),
            "mode": look.mode.value,
            **wanted,
            "pools": pools_told(look.by_pool, decision.weights),
            "limiting": decision.limiting or None,
            "requestsPerSecondPerReplica": decision.capacity_requests_per_second or None,
            "forecast": _forecast(decision.forecast) if decision.forecast else None,
            "signals": [signal_told(each) for each in look.signals] or None,
            "gateway": figures_told(look.gateway) or None,
            "mismatches": [kind.value for kind, _ in look.mismatches] or None,
            "memory": look.memory or None,
        }
    )


def _number(look: Look, before: Told) -> dict[str, Any]:
    """What is told of the number of replicas; in the mode Off that is nobody's but the user's."""
    decision = look.decision
    return {
        "desiredReplicas": look.replicas,
        "reason": sentence(look.reason, _SENTENCE),
        "remarks": sorted(set(decision.remarks) - _TOLD_ELSEWHERE) or None,
        "predicted": [_tail(each) for each in decision.tails] or None,
        "costPerHour": None if look.conflict else decision.cost_per_hour or None,
        "decisions": _decisions(look, before),
    }


_TOLD_ELSEWHERE = {Remark.METRICS_BROKEN, Remark.METRICS_MISSING}
"""By the condition MetricsAvailable, once it lasts: one scrape that fails is no story."""


def _decisions(look: Look, before: Told) -> list[Any]:
    """The newest first; a number that stays is no decision, nor is one that somebody else sets.

    The first one is compared with what was asked for: pods of a new service may not be there yet.
    """
    earlier = [each for each in before.get("decisions") or () if isinstance(each, Mapping)]
    last = number(before, "desiredReplicas")
    since = sum(look.by_pool.values()) if last is None else int(last)
    if look.standstill is not None or look.conflict:
        return earlier[:DECISIONS_KEPT]
    bounded, bound = _bounded(since, look)
    made = (
        _made(look, since, bounded, bound),
        _made(look, bounded, look.replicas, look.decision.reason),
    )
    return [*(each for each in reversed(made) if each), *earlier][:DECISIONS_KEPT]


def _bounded(count: int, look: Look) -> tuple[int, str]:
    """The number before a decision inside the limits of now, and which of them made it so: those
    are the user's word, and no look has any part in it."""
    if look.most is not None and count > look.most:
        return look.most, f"scaling.maxReplicas is {look.most}"
    there = min(look.least, look.replicas)  # as far as there is room
    if 0 < count < there:  # at zero it sleeps, whatever the least
        return there, f"scaling.minReplicas is {look.least}"
    return count, ""


def _made(look: Look, since: int, to: int, reason: str) -> dict[str, Any] | None:
    """None where it changes nothing."""
    if since == to:
        return None
    why = sentence(reason, _SENTENCE)
    return {"time": timestamp(look.now), "from": since, "to": to, "reason": why}


def _forecast(forecast: Forecast) -> dict[str, Any]:
    return figures_told({"low": forecast.low, "mid": forecast.mid, "high": forecast.high})


def signal_told(signal: Signal) -> dict[str, Any]:
    """Of ``signals``."""
    shares = signal.late_share
    return figures_told(
        {
            "metric": signal.target.metric.value,
            "percentile": signal.target.percentile,
            "targetSeconds": signal.target.seconds,
            "lowSeconds": signal.low_seconds,
            "highSeconds": signal.high_seconds,
            "samples": signal.samples,
            "lateShareLow": shares[0] if shares else None,
            "lateShareHigh": shares[1] if shares else None,
        }
    )


def _tail(tail: Tail) -> dict[str, Any]:
    """Seconds by number of replicas; a number that cannot keep up has none."""
    told = [
        figures_told({"replicas": replicas, "seconds": seconds})
        for replicas, seconds in sorted(tail.seconds.items())
    ]
    return {
        "metric": tail.target.metric.value,
        "percentile": tail.target.percentile,
        "targetSeconds": tail.target.seconds,
        "tails": told,
    }


def figures_told(document: Mapping[str, Any]) -> dict[str, Any]:
    """Figures to three digits; without what is unknown, or without end."""
    return {
        name: significant(value, _DIGITS) if isinstance(value, float) else value
        for name, value in present(document).items()
    }
