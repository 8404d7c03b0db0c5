"""How sure a comparison is, and how sure is what follows from predicted times.

The errors of two predictions for one workload are alike: the same model of its kernels, its engine
and its traffic stands behind both. So the ratio of two pools is surer than either time. Of the
variance of ln(measured / predicted) a part is common to all accelerators and cancels, and the rest
is the accelerator's own; for two of them with own deviations a and b, nine in ten ratios lie within
``exp(1.645 * sqrt(a^2 + b^2))`` of the predicted one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from poolwise.model.correction import Phase
from poolwise.model.efficiency import Provenance
from poolwise.model.hardware import Resource
from poolwise.model.prediction import NINE_IN_TEN, Bottleneck, Interval, ServingPrediction

OWN_SHARE: Mapping[Phase, float] = {
    Phase.TRAINING: 0.50,
    Phase.FIRST_TOKEN: 1.0,
    Phase.TOKEN: 0.71,
}
"""Of the variance, what an accelerator with runs of its own does not share with others:
``bench.ratio_spread`` on 62 pairs of training runs, and 390 of serving runs, equal in all else."""
OF_OTHERS = (Provenance.INHERITED, Provenance.SPECIFICATION)
"""Provenances of an accelerator without runs of its own: all of its error may be its own."""
TIMED = (Resource.COMPUTE, Resource.MEMORY_BANDWIDTH, Resource.INTERCONNECT, Resource.HOST)
"""Resources that shorten steps."""


def own_spread(interval: Interval, phase: Phase, provenance: str) -> float:
    """Deviation of the logarithm that another accelerator's prediction does not share."""
    share = 1.0 if provenance in OF_OTHERS else OWN_SHARE[phase]
    return interval.spread * math.sqrt(share)


def ratio_margin(own_spread: float, other_spread: float) -> float:
    """Relative half-width of what nine in ten ratios of two predictions lie within."""
    return math.expm1(NINE_IN_TEN * math.hypot(own_spread, other_spread))


def capacity_range(prediction: ServingPrediction, bottleneck: Bottleneck) -> Interval:
    """The highest rate inside the targets, as uncertain as the times that end it.

    Shorter times raise it as more of every resource would that shortens them: near a target by
    more than their own change.
    """
    limiting = limiting_phase(prediction)
    time = prediction.itl_seconds if limiting is Phase.TOKEN else prediction.ttft_seconds
    if not time.mid:
        time = prediction.e2e_seconds
    steepness = max(1.0, sum(map(bottleneck.elasticity, TIMED)))
    return Interval.around(prediction.capacity_requests_per_second, steepness * time.spread)


def limiting_phase(prediction: ServingPrediction) -> Phase:
    """The phase whose time ends the capacity: tokens, unless the first one is late."""
    is_first = prediction.limiting.startswith("TTFT") or not prediction.generates
    return Phase.FIRST_TOKEN if is_first else Phase.TOKEN
