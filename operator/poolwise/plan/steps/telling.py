"""What a run's user reads of its measurements: ``status.observed``, and two conditions.

Looks come every few seconds; the status moves when there is something to say (the first measured
step, a checkpoint), and else every few minutes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from poolwise.plan.conditions import Reason, Type, condition
from poolwise.plan.live.telling import MeasuredStatus
from poolwise.plan.pool import Condition
from poolwise.plan.reading import Told, mapping
from poolwise.plan.signals.adapters import Fault
from poolwise.plan.steps.mispredicted import as_planned
from poolwise.plan.steps.progress import Progress
from poolwise.plan.steps.sample import CHECKPOINT, METRICS, STEP_SECONDS, RunSample
from poolwise.plan.steps.told import FIELD, Basis, kept, read, shown_step_seconds, told
from poolwise.plan.wording import significant

PORT = "metrics"
"""Name of the port in ``spec.run.ports`` on which rank 0 tells them."""
LEAST_INTERVALS, REST_INTERVALS = 4.0, 20.0
"""Between two tellings, in intervals of looks: where there is something to say, and else."""


@dataclass(frozen=True, slots=True)
class RunLook:
    """One look at a run's rank 0, for people."""

    progress: Progress
    basis: Basis
    told: RunSample | Fault | None
    """None: it does not run, or has no address yet."""
    has_port: bool = True
    """Whether the spec names a port to ask."""
    is_eager: bool = False
    """Whether it says that the run goes operator by operator."""


def measured_run(look: RunLook, status: Told, interval_seconds: float) -> MeasuredStatus:
    """What a status tells of a look; ``status`` is that as it stands."""
    shown = observed(look, mapping(status, "observed"), mapping(status, "plan"), interval_seconds)
    return MeasuredStatus({}, (available(look), *as_planned(shown, status, look.is_eager)), shown)


def observed(look: RunLook, before: Told, plan: Told, interval_seconds: float) -> dict[str, Any]:
    """``ratio`` and ``training`` of ``status.observed``; ``before`` is that as it stands.

    :param plan: ``status.plan``.
    """
    known = mapping(before, FIELD)
    fresh = told(look.progress, look.basis) if look.progress.process else {}
    if known and not (fresh and _is_due(known, fresh, interval_seconds)):
        return kept(before)
    step_seconds, predicted = look.progress.step_seconds, shown_step_seconds(plan)
    ratio = {"ratio": significant(step_seconds / predicted)} if step_seconds and predicted else {}
    return {**ratio, FIELD: fresh} if fresh else {}


def _is_due(known: Told, fresh: Mapping[str, Any], interval_seconds: float) -> bool:
    then, now = read(known), read(fresh)
    if then is None or now is None or then.basis.pool != now.basis.pool:
        return True
    passed_seconds = (now.time - then.time).total_seconds()
    if passed_seconds < LEAST_INTERVALS * interval_seconds:
        return False
    is_saved = then.progress.checkpoint_seconds != now.progress.checkpoint_seconds
    is_news = is_saved or (now.samples > 0) != (then.samples > 0)
    is_pace_new = (then.remaining_seconds is None) != (now.remaining_seconds is None)
    is_behind = now.progress.steps < then.progress.steps
    is_rested = passed_seconds >= REST_INTERVALS * interval_seconds
    return is_news or is_pace_new or is_behind or is_rested


def available(look: RunLook) -> Condition:
    """Whether it tells anything; nothing else depends on it."""
    if not look.has_port:
        message = (
            f"spec.run.ports has no port named {PORT}: neither progress nor the time of a step is "
            "measured, all figures are predictions"
        )
        return condition(Type.METRICS_AVAILABLE, False, Reason.NO_METRICS_PORT, message)
    if isinstance(look.told, Fault):
        message = f"rank 0: {look.told.reason}; all figures are predictions, or as last measured"
        return condition(Type.METRICS_AVAILABLE, False, Reason.METRICS_BROKEN, message)
    if look.told is None:
        message = "rank 0 has not reported metrics yet: all figures are predictions"
        return condition(Type.METRICS_AVAILABLE, None, Reason.NOT_MEASURED, message)
    message = "the metrics of rank 0 are read" + _lacks(look.told)
    return condition(Type.METRICS_AVAILABLE, True, Reason.METRICS_READ, message)


def _lacks(sample: RunSample) -> str:
    """What it does not tell, and what is guessed for that."""
    if set(sample.missing) >= set(METRICS) - {CHECKPOINT}:
        return ", which count no steps: progress is predicted"
    lacks = [
        *(
            [f"{STEP_SECONDS}: a step is timed by the count of steps"]
            if STEP_SECONDS in sample.missing
            else []
        ),
        *([f"{CHECKPOINT}: what a stop loses is guessed"] if CHECKPOINT in sample.missing else []),
    ]
    return f", without {' and '.join(lacks)}" if lacks else ""
