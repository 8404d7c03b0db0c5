"""When a run ends: ``remaining_seconds(resource, now) -> Interval | None``.

A run that has gone on for some time was not one of those that end before: what remains is told of
the runs that last so long at least. The prediction is log-normal, so what is left of a run that is
past its prediction is short but never nothing, and grows once more where the prediction was wrong.
``status.plan`` predicts what was ahead of the run when it was placed
(:mod:`poolwise.plan.steps.ahead`). Where the run tells its steps, the steps that are left at its
own pace take the prediction's place. ``spec.activeDeadlineSeconds`` ends it in any case.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from datetime import datetime
from statistics import NormalDist

from poolwise.model.prediction import NINE_IN_TEN, Interval
from poolwise.plan.decision import Key, Kind
from poolwise.plan.observed import Object
from poolwise.plan.reading import mapping, moment_of, number
from poolwise.plan.steps.ahead import kept_steps, left_of
from poolwise.plan.steps.told import MeasuredRun, measured

LEAST_SPREAD, MOST_SPREAD = 0.05, 10.0
"""Deviation of the logarithm of a run's time, however sure its step is: restarts, stragglers; and
however unsure: beyond, a range tells nothing but that somebody wrote it."""
FARTHEST = 6.0
"""Deviations beyond its prediction at which a run is as late as can be told."""
FRESH_SECONDS = 1200.0
"""What a run tells goes into its status every five minutes: older words are from before it fell
silent."""
_MINUTES, _HOURS = (5, 10, 15, 20, 30, 40), (1, 1.5, 2, 3, 4, 6, 8, 12, 18, 24)
ABOUT_SECONDS = (*(60.0 * each for each in _MINUTES), *(3600.0 * each for each in _HOURS))
"""Times that reasons tell, each up to half more than the one before (five minutes twice), so that a
text changes a score of times at most while it counts down. Beyond: doubled days."""
_NORMAL = NormalDist()
_UNITS = ((86_400.0, "d"), (3_600.0, "h"), (60.0, "min"))


def remaining_seconds(resource: Object, now: datetime) -> Interval | None:
    """What remains of a TrainingJob's run; None where nobody predicted how long it takes.

    :param resource: with the status that was written when it was placed; where that does not say
        when its pods started, they have not.
    """
    told = mapping(resource, "status", "plan")
    total = _positive(told, "totalSeconds")
    started = _started(resource)
    elapsed = max(0.0, (now - started).total_seconds()) if started else 0.0
    found: Interval | None = None
    run = measured(resource)
    if run is not None and started is not None and run.holds_on(told.get("pool"), started):
        found = _at_its_pace(run, now)
    elif total is not None:
        found = _left(total * share_ahead(resource, run, started), _spread(told), elapsed)
    deadline = _positive(mapping(resource, "spec"), "activeDeadlineSeconds")
    if deadline is None:
        return found
    most = max(deadline - elapsed, 0.0)
    if found is None:
        return Interval(most, 0.0, most)
    return Interval(min(found.mid, most), min(found.low, most), min(found.high, most))


def ends(resources: Iterable[Object], now: datetime) -> dict[Key, Interval]:
    """What remains of every TrainingJob of which that is known."""
    known = ((_key(each), remaining_seconds(each, now)) for each in resources)
    return {key: left for key, left in known if left is not None}


def unsaved_since(
    resources: Iterable[Object], runs: Iterable[MeasuredRun | None], now: datetime
) -> dict[Key, datetime]:
    """Since when each TrainingJob that still tells its steps has done what a stop would lose: since
    its last checkpoint, or its start where none was seen.

    :param runs: what their statuses tell, in the same order.
    """
    found = {
        _key(each): told.checkpoint or _started(each)
        for each, told in zip(resources, runs, strict=True)
        if told is not None and _is_fresh(told, now)
    }
    return {key: since for key, since in found.items() if since is not None}


def about(seconds: float) -> str:
    """A time to come as exact as a plan for people needs: ``about 40 min``.

    >>> about(2700.0)
    'about 40 min'
    """
    if seconds < ABOUT_SECONDS[0] / math.sqrt(2):
        return "a few minutes"
    days = ABOUT_SECONDS[-1] * 2.0 ** max(0, round(math.log2(seconds / ABOUT_SECONDS[-1])))
    near = min((*ABOUT_SECONDS, days), key=lambda each: abs(math.log(each / seconds)))
    unit_seconds, unit = next(each for each in _UNITS if near >= each[0] or each[1] == "min")
    return f"about {near / unit_seconds:g} {unit}"


def _at_its_pace(run: MeasuredRun, now: datetime) -> Interval:
    left, pace = run.remaining_seconds or 0.0, run.progress.pace_seconds or 0.0
    passed = max(0.0, (now - run.time).total_seconds())
    return _left(max(left, pace), LEAST_SPREAD, passed)


def share_ahead(resource: Object, run: MeasuredRun | None, started: datetime | None) -> float:
    """Of what the plan predicted, what was ahead of the run at its start: Kueue may stop a run and
    start it again by the same plan, and then its checkpoint has steps that the plan does not know
    of."""
    if run is None or not run.basis.steps or (started is not None and run.time >= started):
        return 1.0
    kept = kept_steps(run, bool(mapping(resource, "spec", "checkpoint")))
    planned = _positive(mapping(resource, "status", "plan"), "stepsAhead") or run.basis.steps
    return min(left_of(run.basis.steps, kept) / planned, 1.0)


def _started(resource: Object) -> datetime | None:
    return moment_of(mapping(resource, "status", "observed").get("startTime"))


def _is_fresh(told: MeasuredRun, now: datetime) -> bool:
    return (now - told.time).total_seconds() <= FRESH_SECONDS


def _left(total: float, spread: float, elapsed: float) -> Interval:
    """The middle and nine tenths of what a log-normal time has left after so long."""
    if elapsed <= 0.0:
        return Interval.around(total, spread)
    late = math.log(elapsed / total) / spread
    if late > FARTHEST:
        total, late = elapsed * math.exp(-FARTHEST * spread), FARTHEST
    outlast = _NORMAL.cdf(-late)

    def left(share: float) -> float:
        """Until which that share of those that outlast it have ended."""
        at = -_NORMAL.inv_cdf(outlast * (1.0 - share))
        return max(0.0, total * math.exp(spread * at) - elapsed)

    tail = _NORMAL.cdf(-NINE_IN_TEN)
    return Interval(left(0.5), left(tail), left(1.0 - tail))


def _spread(told: Mapping[str, object]) -> float:
    """Of the step, as the status has its range."""
    predicted = mapping(told, "predicted")
    low, high = (_positive(predicted, f"stepSeconds{end}") for end in ("Low", "High"))
    if low is None or high is None:
        return LEAST_SPREAD
    return min(max(LEAST_SPREAD, Interval(high, low, high).spread), MOST_SPREAD)


def _key(resource: Object) -> Key:
    metadata = mapping(resource, "metadata")
    return Key(Kind.TRAINING_JOB, str(metadata.get("namespace")), str(metadata.get("name")))


def _positive(document: Mapping[str, object], name: str) -> float | None:
    found = number(document, name)
    return found if found is not None and 0.0 < found < math.inf else None
