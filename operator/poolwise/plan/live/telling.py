"""What a service's user reads of its scaling: ``status.scaling``, and four conditions.

The controller looks each few seconds; a status that followed it would be written for ever. What was
told stands while the number of replicas and all that holds it back are the same and no figure has
moved by more than a fifth.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from poolwise.plan.conditions import Reason, Type, condition, timestamp
from poolwise.plan.live.mismatch.clue import Mismatch
from poolwise.plan.live.mixture import numbers, pools_told
from poolwise.plan.observed import Object
from poolwise.plan.pool import Condition
from poolwise.plan.scaling.decision import Decision, Forecast, Remark, Signal, Tail
from poolwise.plan.status.figures import Told, number, part
from poolwise.plan.status.meter import moment_of
from poolwise.plan.wording import duration, plural, sentence, significant

DECISIONS_KEPT = 10
TOLERANCE = 0.2
"""Relative, of any figure before it is told anew."""
LEAST_FIGURE = 0.005
"""Differences below are none, whatever they are relative to: of requests per second, of shares."""
REST_SECONDS = 60.0
"""Figures that moved alone are told no more often."""
REMEMBERED_SECONDS = 900.0
"""What was learned is told anew no less often, while there is traffic to learn from."""
_DIGITS = 3
_ASIDE = ("reason", "time", "memory")
_DECISIVE = ("mode", "desiredReplicas", "decisions", "mismatches")
_SENTENCE = 512


class Mode(enum.StrEnum):
    """``spec.scaling.mode``."""

    DIRECT = "Direct"
    EXTERNAL = "External"
    OFF = "Off"


def mode_of(service: Object) -> Mode:
    """As the spec of a service says, or by default."""
    told = part(part(service, "spec"), "scaling").get("mode", Mode.DIRECT)
    return Mode(told) if told in set(Mode) else Mode.DIRECT


@dataclass(frozen=True, slots=True)
class Look:
    """One look at a service and what was decided, for people."""

    decision: Decision
    mode: Mode
    held: int
    """Replicas that the service has, draining ones apart."""
    told: int
    """Replicas whose metrics were read."""
    failing: Mapping[str, str]
    """Why replicas could not be read for several looks in a row, by name."""
    conflict: str | None
    """Who else scales it; None: nobody."""
    now: datetime
    mismatches: Sequence[tuple[Mismatch, str]] = ()
    """What is wrong beside the number, most telling first, with the sentence."""
    memory: str = ""
    """What the controller has learned, for the next process."""
    by_pool: Mapping[str, int] = field(default_factory=dict)
    """Replicas on each pool, as they are planned now."""

    @property
    def replicas(self) -> int:
        """Wanted from now on; where somebody else scales as well, what there is."""
        return self.held if self.conflict else self.decision.replicas


@dataclass(frozen=True, slots=True)
class Measured:
    """What a status tells of a look."""

    scaling: Mapping[str, Any]
    conditions: tuple[Condition, ...]
    observed: Mapping[str, Any] = field(default_factory=dict)
    """For ``status.observed``."""


def measured(look: Look, before: Told) -> Measured:
    """``status.scaling`` and its conditions; ``before`` is ``status.scaling`` as it stands."""
    scaling = _steady(before, _scaling(look, before), look.now)
    conditions = (_metrics(look), *_targets(look), *_active(look), *_as_planned(look))
    return Measured(scaling, conditions, {} if scaling is before else _observed(look))


def _observed(look: Look) -> dict[str, Any]:
    """Told along with the rest: what of this moved alone is not worth a write."""
    return _present({"ratio": look.decision.token_ratio})


def _scaling(look: Look, before: Told) -> dict[str, Any]:
    decision = look.decision
    return _present(
        {
            "time": timestamp(look.now),
            "mode": look.mode.value,
            "desiredReplicas": look.replicas,
            "reason": sentence(decision.reason, _SENTENCE),
            "pools": pools_told(look.by_pool, decision.weights),
            "remarks": sorted(set(decision.remarks) - _TOLD_ELSEWHERE) or None,
            "limiting": decision.limiting or None,
            "requestsPerSecondPerReplica": decision.capacity_requests_per_second or None,
            "forecast": _forecast(decision.forecast) if decision.forecast else None,
            "signals": [_signal(each) for each in decision.signals] or None,
            "predicted": [_tail(each) for each in decision.tails] or None,
            "costPerHour": decision.cost_per_hour or None,
            "decisions": _decisions(look, before),
            "mismatches": [kind.value for kind, _ in look.mismatches] or None,
            "memory": look.memory or None,
        }
    )


_TOLD_ELSEWHERE = {Remark.METRICS_BROKEN, Remark.METRICS_MISSING}
"""By the condition MetricsAvailable, once it lasts: one scrape that fails is no story."""


def _decisions(look: Look, before: Told) -> list[Any]:
    """The newest first; a number that stays is no decision."""
    earlier = [each for each in before.get("decisions") or () if isinstance(each, Mapping)]
    last = number(before, "desiredReplicas")
    since = look.held if last is None else int(last)
    if since == look.replicas:
        return earlier[:DECISIONS_KEPT]
    made = {
        "time": timestamp(look.now),
        "from": since,
        "to": look.replicas,
        "reason": sentence(look.decision.reason, _SENTENCE),
    }
    return [made, *earlier][:DECISIONS_KEPT]


def _forecast(forecast: Forecast) -> dict[str, Any]:
    return _present({"low": forecast.low, "mid": forecast.mid, "high": forecast.high})


def _signal(signal: Signal) -> dict[str, Any]:
    shares = signal.late_share
    return _present(
        {
            "metric": signal.target.latency.value,
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
        _present({"replicas": replicas, "seconds": seconds})
        for replicas, seconds in sorted(tail.seconds.items())
    ]
    return {
        "metric": tail.target.latency.value,
        "percentile": tail.target.percentile,
        "targetSeconds": tail.target.seconds,
        "tails": told,
    }


def _metrics(look: Look) -> Condition:
    if look.failing:
        first, *others = sorted(look.failing)
        more = f"; and {plural(len(others), 'more replica')}" if others else ""
        message = f"{first}: {look.failing[first]}{more}: the number of replicas does not fall"
        return condition(Type.METRICS_AVAILABLE, False, Reason.METRICS_BROKEN, message)
    if not look.told:
        message = "no replica has told its metrics yet"
        return condition(Type.METRICS_AVAILABLE, None, Reason.NOT_MEASURED, message)
    message = "the replicas tell their metrics"
    return condition(Type.METRICS_AVAILABLE, True, Reason.METRICS_READ, message)


def _targets(look: Look) -> Sequence[Condition]:
    """Beyond a target, inside all of them, or not known: bounds count, not estimates."""
    unreachable = look.decision.remarks.get(Remark.SLO_UNREACHABLE)
    if unreachable:
        return [condition(Type.SLO_MET, False, Reason.SLO_UNREACHABLE, unreachable)]
    if not look.decision.signals:
        message = "no target is set: only the rate counts"
        return [condition(Type.SLO_MET, None, Reason.NOT_MEASURED, message)]
    verdicts = {signal.target: _verdict(signal) for signal in look.decision.signals}
    missed = [target for target, verdict in verdicts.items() if verdict is False]
    if missed:
        told = "; ".join(
            f"{each} is above its target of {duration(each.seconds)}" for each in missed
        )
        return [condition(Type.SLO_MET, False, Reason.BEYOND_TARGETS, told)]
    if None in verdicts.values():
        open_ = [str(target) for target, verdict in verdicts.items() if verdict is None]
        message = f"too few requests, or buckets too coarse, to tell: {', '.join(open_)}"
        return [condition(Type.SLO_MET, None, Reason.TOO_FEW_SAMPLES, message)]
    told = ", ".join(str(each) for each in verdicts)
    return [condition(Type.SLO_MET, True, Reason.WITHIN_TARGETS, f"inside: {told}")]


def _verdict(signal: Signal) -> bool | None:
    """Whether the target holds; None where the buckets leave both open, or too few came."""
    if signal.low_seconds is not None and signal.low_seconds >= signal.target.seconds:
        return False
    if signal.high_seconds is not None and signal.high_seconds <= signal.target.seconds:
        return True
    if signal.late_share is None or signal.low_seconds is None:
        return None
    least, most = signal.late_share
    if least > signal.target.allowed_share:
        return False
    return True if most <= signal.target.allowed_share else None


_LIMITS = {
    Remark.AT_MAXIMUM: (
        Reason.AT_MAXIMUM,
        "the load needs more replicas than scaling.maxReplicas allows: see status.scaling",
    ),
    Remark.AT_CAPACITY: (
        Reason.AT_CAPACITY,
        "the load needs more replicas than there is free room for: see status.scaling",
    ),
    Remark.STARTS_PACED: (
        Reason.STARTS_PACED,
        "replicas start one after the other, so that loading weights does not slow them all",
    ),
}
"""Without figures, which move with the load."""


def _active(look: Look) -> Sequence[Condition]:
    if look.mode is Mode.OFF:
        return []
    if look.conflict:
        message = f"{look.conflict} scales it too: replicas stay as they are until one of both goes"
        return [condition(Type.SCALING_ACTIVE, False, Reason.AUTOSCALER_CONFLICT, message)]
    if look.failing:
        message = "metrics of replicas cannot be read: replicas are added at most"
        return [condition(Type.SCALING_ACTIVE, False, Reason.METRICS_BROKEN, message)]
    for remark, (reason, message) in _LIMITS.items():
        if remark in look.decision.remarks:
            return [condition(Type.SCALING_ACTIVE, True, reason, message)]
    message = "the number of replicas follows the load"
    if look.mode is Mode.EXTERNAL:
        message = "the number of replicas is told as a metric, spec.replicas is followed"
    return [condition(Type.SCALING_ACTIVE, True, Reason.FOLLOWS_LOAD, message)]


def _as_planned(look: Look) -> Sequence[Condition]:
    """Whether replicas do what the plan counts on; the sentences of all that they do not."""
    if look.mismatches:
        (first, _), *_ = look.mismatches
        message = ". Also, ".join(told for _, told in look.mismatches)
        return [condition(Type.AS_PLANNED, False, Reason(first), message)]
    if not look.told:
        return []
    message = "nothing that the replicas told speaks against the plan"
    return [condition(Type.AS_PLANNED, True, Reason.NO_MISMATCH, message)]


def _steady(before: Told, after: dict[str, Any], now: datetime) -> Mapping[str, Any]:
    """What was told, while it is about the same, or only figures moved a moment ago."""
    told_at = moment_of(before.get("time"))
    if told_at is None or any(before.get(name) != after.get(name) for name in _DECISIVE):
        return after
    if numbers(before) != numbers(after):
        return after
    age_seconds = (now - told_at).total_seconds()
    if age_seconds < REST_SECONDS:
        return before
    if age_seconds >= REMEMBERED_SECONDS and before.get("memory") != after.get("memory"):
        return after
    return before if _is_near(_figures(before), _figures(after)) else after


def _figures(told: Told) -> dict[str, Any]:
    """A sentence repeats figures that stand beside it, and a memory holds them all."""
    return {name: value for name, value in told.items() if name not in _ASIDE}


def _is_near(before: Any, after: Any) -> bool:
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        if before.keys() != after.keys():
            return False
        return all(_is_near(before[name], after[name]) for name in before)
    if _is_list(before) and _is_list(after):
        return len(before) == len(after) and all(map(_is_near, before, after))
    if _is_figure(before) and _is_figure(after):
        difference = abs(before - after)
        return bool(difference <= max(TOLERANCE * max(abs(before), abs(after)), LEAST_FIGURE))
    return bool(before == after)


def _is_figure(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple)


def _present(document: Mapping[str, Any]) -> dict[str, Any]:
    """Figures to three digits; without what is unknown, or without end."""
    return {
        name: significant(value, _DIGITS) if isinstance(value, float) else value
        for name, value in document.items()
        if value is not None and not (isinstance(value, float) and not math.isfinite(value))
    }
