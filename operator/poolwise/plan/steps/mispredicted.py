"""Steps longer, or shorter, than the model's range allows: the condition ``AsPlanned`` of a job."""

from __future__ import annotations

import math

from poolwise.plan.conditions import Reason, Type, condition
from poolwise.plan.live.mismatch.speed import SURELY_BACK
from poolwise.plan.pool import Condition
from poolwise.plan.reading import Told, condition_of, mapping, number
from poolwise.plan.steps.told import FIELD
from poolwise.plan.wording import three_digits

LEAST_WINDOWS = 5.0
"""Of a minute each, whose median is judged: one that a checkpoint or an evaluation stretched is
outvoted by then."""
LEAST_OF_EAGER = 1.25
"""Times as long as predicted: of 18 workloads that were measured both ways each took 1.31 times as
long operator by operator as compiled, and more (``bench/own``)."""


def as_planned(observed: Told, status: Told, is_eager: bool) -> tuple[Condition, ...]:
    """Nothing while too few steps are measured, or no range is known.

    :param observed: ``status.observed`` as it will be.
    :param status: As it stands.
    :param is_eager: whether the spec says that the run goes operator by operator.
    """
    ratio, windows = number(observed, "ratio"), number(mapping(observed, FIELD), "samples")
    bounds = _bounds(mapping(status, "plan", "predicted"))
    if not ratio or not bounds or (windows or 0.0) < LEAST_WINDOWS:
        return ()
    low, high = bounds
    log_bound = math.log(high if ratio > 1.0 else low)
    before = condition_of(status, Type.AS_PLANNED)
    kept = SURELY_BACK if before.get("reason") == Reason.MISPREDICTED else 1.0
    if math.log(ratio) / log_bound <= kept:
        message = f"a step takes {three_digits(ratio)} times what was predicted, inside its range"
        return (condition(Type.AS_PLANNED, True, Reason.NO_MISMATCH, message),)
    message = (
        f"a step takes {three_digits(ratio)} times what was predicted, outside the range of "
        f"{three_digits(low)} to {three_digits(high)} times: {_why(ratio, is_eager)}. Its end and "
        "its cost are worked out from what is measured"
    )
    return (condition(Type.AS_PLANNED, False, Reason.MISPREDICTED, message),)


def _bounds(predicted: Told) -> tuple[float, float] | None:
    """The range (nine in ten) of a step over its middle; None where it is not told."""
    names = ("stepSecondsLow", "stepSeconds", "stepSecondsHigh")
    low, middle, high = (number(predicted, name) for name in names)
    if not low or not middle or not high or not low < middle < high:
        return None
    return low / middle, high / middle


def _why(ratio: float, is_eager: bool) -> str:
    """What it may come from, the likeliest first."""
    if ratio < 1.0:
        better = "the hardware or the model is better than described"
        return f"its layers are compiled after all, or {better}" if is_eager else better
    sick = "a device that is throttled or shared, a link that is not as described, or input that"
    sick += " comes late"
    if is_eager or ratio < LEAST_OF_EAGER:
        return sick
    eager = "spec.training.execution: Eager is for runs without compiled or fused layers, which"
    return f"{eager} take this long, and more memory than was planned; otherwise {sick}"
