"""When a run is expected to end: by what it tells of its steps, else by its start and its plan.

A gang begins with its last pod, and begins again when one of them is replaced: what it did before
is lost back to its last checkpoint, and all of it where it keeps none. A Job's own start knows
nothing of that.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from poolwise.api.quantity import parse_duration
from poolwise.plan.observed import Object
from poolwise.plan.reading import mapping, number
from poolwise.plan.status.pods import Observation
from poolwise.plan.steps.remaining import share_ahead
from poolwise.plan.steps.told import FIELD, MeasuredRun, read


def expected_finish(
    resource: Object, seen: Observation, told: Mapping[str, Any], observed: Mapping[str, Any]
) -> datetime | None:
    """None where that is not known: a gang goes on whole, so none of it does while pods are kept
    from running.

    :param told: ``status.plan`` as it will be.
    :param observed: has what the run told of its steps.
    """
    if seen.start_moment is None or (seen.problems and not seen.are_all_ready):
        return None
    newest = max(seen.start_moment, seen.span.newest or seen.start_moment)
    run, seconds = read(mapping(observed, FIELD)), number(told, "totalSeconds")
    if run is not None and run.holds_on(told.get("pool"), newest):
        return _later(run.time, run.remaining_seconds)
    planned = {"spec": resource["spec"], "status": {"plan": told}}
    return _later(newest, seconds and seconds - _done_seconds(planned, seen, run, seconds))


def _done_seconds(
    resource: Object, seen: Observation, run: MeasuredRun | None, total_seconds: float
) -> float:
    """What the plan need not do again once the newest pod is there. Without a word of its steps:
    what was done since the Job's start but one checkpoint's interval, since how often its pods were
    replaced is not known."""
    start, newest = seen.start_moment, seen.span.newest
    if start is None or newest is None:
        return 0.0
    if run is not None:
        return total_seconds * (1.0 - share_ahead(resource, run, newest))
    passed_seconds = (newest - start).total_seconds()
    interval_seconds = _interval_seconds(resource)
    return 0.0 if interval_seconds is None else max(passed_seconds - interval_seconds, 0.0)


def _interval_seconds(resource: Object) -> float | None:
    """Between two checkpoints; None where it keeps none, or nobody can read how often."""
    interval = mapping(resource, "spec", "checkpoint").get("interval")
    try:
        return None if interval is None else parse_duration(str(interval))
    except ValueError:
        return None


def _later(start: datetime, seconds: float | None) -> datetime | None:
    try:
        return None if seconds is None else start + timedelta(seconds=seconds)
    except OverflowError:  # beyond the year 9999
        return None
