"""Conditions of a service that is looked at: whether its metrics are read, its targets met, its
replicas scaled, and the plan kept."""

from __future__ import annotations

from collections.abc import Sequence

from poolwise.plan.conditions import Reason, Type, condition
from poolwise.plan.live.keeping import Signal
from poolwise.plan.live.look import Look, Mode
from poolwise.plan.pool import Condition
from poolwise.plan.scaling.decision import Remark
from poolwise.plan.wording import duration, plural


def conditions(look: Look) -> tuple[Condition, ...]:
    """One of each type at most."""
    zero = () if look.zero is None else (look.zero,)
    return (_metrics(look), *_targets(look), *_active(look), *zero, *_as_planned(look))


_SILENT = "no replica has reported metrics yet"
_HELD = {
    Mode.DIRECT: ": the number of replicas does not fall",
    Mode.EXTERNAL: ": the published number of replicas does not fall",
    Mode.OFF: "",
}
"""What follows for the number where replicas cannot be read."""


def _metrics(look: Look) -> Condition:
    if look.failing:
        first, *others = sorted(look.failing)
        more = f"; and {plural(len(others), 'more replica')}" if others else ""
        message = f"{first}: {look.failing[first]}{more}{_HELD[look.mode]}"
        return condition(Type.METRICS_AVAILABLE, False, Reason.METRICS_BROKEN, message)
    if look.refused:
        message = f"{look.refused}{_HELD[look.mode]}"
        return condition(Type.METRICS_AVAILABLE, False, Reason.METRICS_BROKEN, message)
    if look.is_asleep:
        message = "no replica runs: there is nothing to measure"
        return condition(Type.METRICS_AVAILABLE, None, Reason.SCALED_TO_ZERO, message)
    if not look.is_measured:
        return condition(Type.METRICS_AVAILABLE, None, Reason.NOT_MEASURED, _SILENT)
    message = "the metrics of its replicas are read"
    return condition(Type.METRICS_AVAILABLE, True, Reason.METRICS_READ, message)


def _targets(look: Look) -> Sequence[Condition]:
    """Beyond a target, inside all of them, or not known: bounds count, not estimates."""
    if look.standstill:
        return [condition(Type.SLO_MET, None, Reason.NOT_MEASURED, look.standstill.message)]
    unreachable = look.decision.remarks.get(Remark.SLO_UNREACHABLE)
    if unreachable:
        return [condition(Type.SLO_MET, False, Reason.SLO_UNREACHABLE, unreachable)]
    if not look.signals:
        message = "no target is set: only the rate counts"
        return [condition(Type.SLO_MET, None, Reason.NOT_MEASURED, message)]
    verdicts = {signal.target: _verdict(signal) for signal in look.signals}
    missed = [target for target, verdict in verdicts.items() if verdict is False]
    if missed:
        told = "; ".join(
            f"{each} is above its target of {duration(each.seconds)}" for each in missed
        )
        return [condition(Type.SLO_MET, False, Reason.BEYOND_TARGETS, told)]
    if None in verdicts.values() and _is_unheard(look):
        message = "metrics of its replicas cannot be read" if look.failing else _SILENT
        return [condition(Type.SLO_MET, None, Reason.NOT_MEASURED, message)]
    if None in verdicts.values():
        open_ = [str(target) for target, verdict in verdicts.items() if verdict is None]
        message = f"too few requests, or buckets too coarse, to tell: {', '.join(open_)}"
        return [condition(Type.SLO_MET, None, Reason.TOO_FEW_SAMPLES, message)]
    told = ", ".join(str(each) for each in verdicts)
    return [condition(Type.SLO_MET, True, Reason.WITHIN_TARGETS, f"inside: {told}")]


def _is_unheard(look: Look) -> bool:
    """Whether nothing was measured, however many requests there are."""
    is_silent = not (look.is_measured or look.is_asleep)
    return is_silent and not any(signal.samples for signal in look.signals)


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
    Remark.AT_COST_LIMIT: (
        Reason.AT_COST_LIMIT,
        "the load needs more replicas than objective.maxCostPerHour pays: see status.scaling",
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
        why = look.conflict.problem
        return [condition(Type.SCALING_ACTIVE, False, Reason.AUTOSCALER_CONFLICT, why)]
    if look.standstill:
        stands = look.standstill
        return [condition(Type.SCALING_ACTIVE, False, stands.reason, stands.message)]
    if look.failing or look.refused:
        return [_unread(look)]
    for remark, (reason, message) in _LIMITS.items():
        if remark in look.decision.remarks and not (look.is_blind and remark is Remark.AT_MAXIMUM):
            return [condition(Type.SCALING_ACTIVE, True, reason, message)]
    if look.is_blind:
        return [_never_read(look)]
    message = "the number of replicas follows the load"
    if look.mode is Mode.EXTERNAL:
        message = "the number of replicas is published as a metric; spec.replicas is followed"
    return [condition(Type.SCALING_ACTIVE, True, Reason.FOLLOWS_LOAD, message)]


_NO_MORE = "scaling.maxReplicas allows no more"


def _unread(look: Look) -> Condition:
    """Of a service some of whose replicas cannot be read."""
    message = "metrics of replicas cannot be read"
    if look.mode is Mode.EXTERNAL:
        message += _HELD[look.mode]
    elif Remark.AT_MAXIMUM in look.decision.remarks:
        message += f", and {_NO_MORE}"
    else:
        message += ": replicas may be added, none is removed"
    return condition(Type.SCALING_ACTIVE, False, Reason.METRICS_BROKEN, message)


def _never_read(look: Look) -> Condition:
    """Of a service none of whose replicas has told yet."""
    if Remark.AT_MAXIMUM in look.decision.remarks:
        return condition(Type.SCALING_ACTIVE, True, Reason.AT_MAXIMUM, f"{_SILENT}: {_NO_MORE}")
    message = f"{_SILENT}: their number stays"
    return condition(Type.SCALING_ACTIVE, True, Reason.NOT_MEASURED, message)


def _as_planned(look: Look) -> Sequence[Condition]:
    """Whether replicas do what the plan counts on; the sentences of all that they do not."""
    if look.mismatches:
        (first, _), *_ = look.mismatches
        message = ". Also, ".join(told for _, told in look.mismatches)
        return [condition(Type.AS_PLANNED, False, Reason(first), message)]
    if not look.is_measured or look.standstill:
        return []
    message = "nothing that the replicas report contradicts the plan"
    return [condition(Type.AS_PLANNED, True, Reason.NO_MISMATCH, message)]
