"""Tokens that take longer, or shorter, than the model's range allows."""

from __future__ import annotations

import math

from poolwise.plan.live.mismatch.clue import Clue, Mismatch
from poolwise.plan.wording import three_digits

SURELY_BACK = 0.8
"""Of the range (of logarithms): once back inside so much of it, it is told no more."""


def mispredicted(log_slowness: float, log_band: float) -> Clue | None:
    """How far the measured time of a token is from the predicted one at the same batch.

    :param log_slowness: ln(measured / predicted), as the controller has learned it.
    :param log_band: half-width of the range that holds the truth nine times in ten; 0: not known.
    """
    if log_band <= 0.0:
        return None
    factor, most = math.exp(log_slowness), math.exp(log_band)
    why = (
        "a device that is throttled or shared, a link or driver that is not as described, or an "
        "engine without its fast kernels"
        if log_slowness > 0.0
        else "the hardware or the model is better than described"
    )
    told = (
        f"a token takes {three_digits(factor)} times what is predicted at this batch, outside the "
        f"range of {three_digits(1.0 / most)} to {three_digits(most)} times: {why}. The number of "
        "replicas follows the measurements; other pools are still compared by predictions"
    )
    is_there = abs(log_slowness) > log_band
    is_gone = abs(log_slowness) < SURELY_BACK * log_band
    return Clue(Mismatch.MISPREDICTED, is_there, is_gone, told)
