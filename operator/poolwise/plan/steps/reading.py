"""From the text of rank 0's ``/metrics`` to a :class:`RunSample`, or to why it cannot be used.

``training_step_seconds`` may be a histogram, a native one, or a summary: of all three the sum and
the count are read. Where ranks tell a series each, steps are those of the furthest, and samples are
added up.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from poolwise.plan.signals.adapters import Fault
from poolwise.plan.signals.exposition import MOST_SKEW_SECONDS, Nonsense, Series, series_of
from poolwise.plan.signals.plausible import MOST_COUNTED
from poolwise.plan.steps.sample import (
    CHECKPOINT,
    METRICS,
    SAMPLES,
    STEP_SECONDS,
    STEPS,
    RunSample,
)

ENGINE = "training"
"""What such a replica is called where engines have names."""


def read(text: str, replica: str, at_seconds: float) -> RunSample | Fault:
    """What rank 0 told at that time (Unix seconds, by our clock)."""
    try:
        told = series_of(text, METRICS, at_seconds)
        count, total = _timed(told)
        sample = RunSample(
            replica,
            at_seconds,
            steps=_most(told, STEPS),
            timed_steps=count,
            timed_seconds=total,
            samples=_sum(told, SAMPLES),
            checkpoint_seconds=_checkpoint(told, at_seconds),
        )
    except Nonsense as error:
        return Fault(str(error))
    if sample.missing == METRICS:
        return Fault(f"serves none of {', '.join(METRICS)}")
    return sample


def _timed(told: Mapping[str, Sequence[Series]]) -> tuple[float | None, float | None]:
    """Steps that were timed, and their seconds; both or none."""
    natives = [each.histogram for each in told.get(STEP_SECONDS, ()) if each.histogram is not None]
    if natives:
        counts = _plausible(STEP_SECONDS, [each.count for each in natives])
        totals = _plausible(STEP_SECONDS, [each.total or 0.0 for each in natives])
        return math.fsum(counts), math.fsum(totals)
    count, total = (_sum(told, STEP_SECONDS + end) for end in ("_count", "_sum"))
    return (None, None) if count is None or total is None else (count, total)


def _checkpoint(told: Mapping[str, Sequence[Series]], now_seconds: float) -> float | None:
    """In whole seconds, as a status tells it: by a fraction it would be another one to the process
    that reads that. 0 is how a gauge begins: none was written yet."""
    at_seconds = _most(told, CHECKPOINT)
    if not at_seconds:
        return None
    if at_seconds > now_seconds + MOST_SKEW_SECONDS:
        ahead = at_seconds - now_seconds
        raise Nonsense(f"{CHECKPOINT} is {at_seconds:g}, which is {ahead:.3g} s in the future")
    return float(math.floor(at_seconds))


def _most(told: Mapping[str, Sequence[Series]], name: str) -> float | None:
    return max(_checked(name, told.get(name, ())), default=None)


def _sum(told: Mapping[str, Sequence[Series]], name: str) -> float | None:
    values = _checked(name, told.get(name, ()))
    return math.fsum(values) if values else None


def _checked(name: str, series: Iterable[Series]) -> list[float]:
    return _plausible(name, [each.value for each in series])


def _plausible(name: str, values: list[float]) -> list[float]:
    for value in values:
        if not 0 <= value <= MOST_COUNTED:
            raise Nonsense(f"{name} is {value:g}, which is not a possible count or time")
    return values
