"""What is told of workloads as metrics, from their statuses: sums, and each by its name."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from datetime import datetime

from poolwise.api.quantity import parse_duration
from poolwise.cluster import metric_table as table
from poolwise.handlers.samples import Sample, conditions, present
from poolwise.model.serving.prediction import REPORTED_PERCENTILE
from poolwise.model.work import Metric, percentile_name
from poolwise.plan.conditions import Type
from poolwise.plan.decision import Kind
from poolwise.plan.live.mismatch.clue import Mismatch
from poolwise.plan.observed import Object
from poolwise.plan.reading import Told, mapping, number, objects
from poolwise.plan.records.meter import JOULES_PER_KILOWATT_HOUR, read
from poolwise.plan.status.further import FIELD

UNTOLD = "Untold"
"""Reason of a workload without a status."""
_TOLD_CONDITIONS = (Type.READY, Type.STALLED, Type.PLANNED, Type.PLACED, Type.SCALING_ACTIVE)
_LATENCIES = {each.value: f"{each.lower()}Seconds" for each in Metric}


def sums(workloads: Iterable[Object]) -> Iterator[Sample]:
    """Workloads by state, and what the placed ones cost and give by pool."""
    states: Counter[tuple[str, str]] = Counter()
    cost: defaultdict[tuple[str, str], float] = defaultdict(float)
    tokens: defaultdict[tuple[str, str], float] = defaultdict(float)
    for workload in workloads:
        status = mapping(workload, "status")
        told = mapping(status, "plan")
        states[workload["kind"], _reason(status)] += 1
        if _is_placed(told):
            where = workload["kind"], str(told["pool"])
            left = number(told, "costPerHour") or 0.0
            for part in objects(told, FIELD):
                there = min(number(part, "costPerHour") or 0.0, left)
                cost[where[0], str(part.get("pool"))] += there
                left -= there
            cost[where] += left
            if (each := _tokens_per_second(told)) is not None:  # an encoder makes none
                tokens[where] += each
    for metric, values in ((table.WORKLOADS, states), (table.COST, cost), (table.TOKENS, tokens)):
        for labels, value in values.items():
            yield metric, labels, value


def samples_of_each(workloads: Iterable[Object], now: datetime) -> Iterator[Sample]:
    """All samples that bear a workload's name."""
    for workload in workloads:
        status = mapping(workload, "status")
        told = mapping(status, "plan")
        yield from _state(workload, status)
        yield from _plan(workload, told)
        yield from _accrued(workload, status, now)
        if workload["kind"] == Kind.TRAINING_JOB:
            predicted = mapping(told, "predicted")
            step_seconds = number(predicted, "stepSeconds")
            yield from present(table.WORKLOAD_STEP, _name(workload), step_seconds)
        else:
            yield from _service(workload, status, told)


def _state(workload: Object, status: Told) -> Iterator[Sample]:
    key = _key(workload)
    yield table.WORKLOAD_STATE, (*key, _reason(status)), 1
    known = conditions(status)
    for condition in _TOLD_CONDITIONS:
        yield from present(table.WORKLOAD_CONDITION, (*key, condition), known.get(condition))


def _plan(workload: Object, told: Told) -> Iterator[Sample]:
    if not told.get("pool"):
        return
    key = _key(workload)
    shape = mapping(told, "summary").get("shape")
    words = (told["pool"], told.get("accelerator"), shape, told.get("bottleneck"))
    yield table.WORKLOAD_INFO, (*key, *(str(word or "") for word in words)), 1
    if _is_placed(told):
        held = (
            (number(each, "count") or 0.0) * _replicas(each)
            for each in (told, *objects(told, FIELD))
        )
        yield table.WORKLOAD_ACCELERATORS, key, sum(held)
        yield from present(table.WORKLOAD_COST, key, number(told, "costPerHour"))
    yield from present(table.WORKLOAD_PREDICTED_COST, key, number(told, "totalCost"))
    yield from present(table.WORKLOAD_TOKENS, key, _tokens_per_second(told))
    yield from present(table.WORKLOAD_INTENSITY, key, number(told, "arithmeticIntensity"))


def _accrued(workload: Object, status: Told, now: datetime) -> Iterator[Sample]:
    meter = read(mapping(status, "observed", "accrued")).at(now)
    if meter.until is None:
        return
    key = _key(workload)
    if meter.currency:
        yield table.WORKLOAD_ACCRUED_COST, (*key, meter.currency), meter.cost
    yield table.WORKLOAD_ACCRUED_ENERGY, key, meter.kilowatt_hours * JOULES_PER_KILOWATT_HOUR


def _service(workload: Object, status: Told, told: Told) -> Iterator[Sample]:
    name = _name(workload)
    counts = (("planned", number(told, "replicas")), ("ready", number(status, "readyReplicas")))
    for state, count in counts:
        yield from present(table.WORKLOAD_REPLICAS, (*name, state), count)
    targets = list(_targets(workload))
    for metric, percentile, limit_seconds in targets:
        yield table.WORKLOAD_TARGET, (*name, metric, percentile_name(percentile)), limit_seconds
    for metric, field in _LATENCIES.items():
        asked = [percentile for about, percentile, _ in targets if about == metric]
        labels = (*name, metric, percentile_name(max(asked, default=REPORTED_PERCENTILE)))
        seconds = number(mapping(told, "predicted"), field)
        yield from present(table.WORKLOAD_LATENCY, labels, seconds)
    yield from _scaling(name, status)


def _scaling(name: tuple[str, str], status: Told) -> Iterator[Sample]:
    """What the load asks for, how the targets are kept, and what is not as planned; nothing of a
    service that nobody has looked at."""
    scaling = mapping(status, "scaling")
    if not scaling:
        return
    yield from present(table.SERVICE_DESIRED, name, number(scaling, "desiredReplicas"))
    yield from present(table.SERVICE_REPLICAS, name, number(status, "replicas"))
    held = number(mapping(scaling, "gateway"), "heldRequests")
    yield from present(table.SERVICE_HELD, name, held)
    standing = scaling.get("mismatches") or ()
    for reason in Mismatch:
        yield table.SERVICE_MISMATCH, (*name, reason.value), float(reason.value in standing)
    for signal in scaling.get("signals") or ():
        percentile, late = number(signal, "percentile"), number(signal, "lateShareHigh")
        if percentile is not None and percentile < 100.0 and late is not None:
            labels = (*name, str(signal.get("metric")), percentile_name(percentile))
            yield table.SERVICE_ATTAINMENT, labels, 1.0 - late
            yield table.SERVICE_BURN_RATE, labels, late / (1.0 - percentile / 100.0)


def _targets(service: Object) -> Iterator[tuple[str, float, float]]:
    """Metric, percentile and seconds of each target; none of a spec that cannot be read."""
    for target in mapping(service, "spec").get("slo") or ():
        try:
            seconds = parse_duration(str(target["target"]))
            yield str(target["metric"]), float(target["percentile"]), seconds
        except (KeyError, TypeError, ValueError):
            continue  # the condition Accepted tells of it


def _reason(status: Told) -> str:
    told = status.get("conditions") or ()
    return next((str(each["reason"]) for each in told if each["type"] == Type.READY), UNTOLD)


def _is_placed(told: Told) -> bool:
    return told.get("placed") is True and bool(told.get("pool"))


def _tokens_per_second(told: Told) -> float | None:
    """Of all replicas; what is told is of one."""
    each = number(mapping(told, "predicted"), "tokensPerSecond")
    return None if each is None else each * _replicas(told)


def _replicas(told: Told) -> float:
    replicas = number(told, "replicas")  # a job has none
    return 1.0 if replicas is None else replicas


def _name(workload: Object) -> tuple[str, str]:
    metadata = workload["metadata"]
    return metadata["namespace"], metadata["name"]


def _key(workload: Object) -> tuple[str, str, str]:
    return workload["kind"], *_name(workload)
