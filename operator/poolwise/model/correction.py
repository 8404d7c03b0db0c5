"""What a cluster measures of a workload corrects what the model says of it.

The error of a prediction has a part that stays for one model in one phase on one pool (its kernels,
its engine, its network) and a part that changes with every batch and length. Measurements tell the
first part. With ``s`` the spread of ln(measured / predicted) that the prediction came with and
``P`` the share of its variance that stays, ``w`` measurements with median ``m`` give ::

    gain   g  = w * P / (w * P + 1 - P)
    ln(factor) = g * m,  within ln(BOUND) on either side
    spread    = s * sqrt(1 - P * g)

the mean and deviation of a normal prior N(0, P s^2) seen through noise (1 - P) s^2. The median
makes it deaf to outliers and to order; each measurement counts half after a half-life, so that
without new ones ``w`` goes to 0, the factor to 1 and the spread to ``s``.

Phases are kept apart by whoever keeps the corrections: one is for one (model, phase, pool).
"""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from poolwise.model.prediction import Interval, Measured

WINDOW = 16
"""Measurements that are kept: the gain is then 0.85 to 0.95, and more hardly raise it."""
BOUND = 2.0
"""Largest factor either way. Of the published rows 0.4 % of the steps, 3 % of the tokens and 11 %
of the first tokens are off by more (``bench.correction``). What lasts beyond it is rather another
machine or workload than was described, and to follow would hide that."""
HALF_LIFE_SECONDS = 7 * 86400.0
"""Drivers and images are renewed within weeks; what is run every day stays known."""
AGE_STEPS = 8
"""Of one half-life in which a measurement ages: a status changes by the day, not by the look."""


class Phase(enum.StrEnum):
    """What a measurement is of; nothing learned in one tells of another."""

    TRAINING = "training"
    """Seconds of an optimizer step."""
    FIRST_TOKEN = "first-token"
    """Seconds until the first token (or the answer of a model that only reads)."""
    TOKEN = "token"
    """Seconds between tokens."""


LASTING: Mapping[Phase, float] = {
    Phase.TRAINING: 0.56,
    Phase.FIRST_TOKEN: 0.30,
    Phase.TOKEN: 0.27,
}
"""Share of the variance of ln(measured / predicted) that runs of one model, accelerator and engine
have in common: ``bench.correction`` on 93 workloads with 542 rows, and 31 with 2,154 for tokens."""
ALIKE = 0.9
"""The same of runs that also agree in batch, lengths and layout: what is left are nodes and seeds,
5 % from run to run of the 15 % by which the model is off."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One measurement."""

    at_seconds: float
    """When, since the epoch."""
    ratio: float
    """Measured over predicted."""

    @property
    def is_usable(self) -> bool:
        """Whether it is a positive number at a known moment."""
        return 0.0 < self.ratio < math.inf and math.isfinite(self.at_seconds)


@dataclass(frozen=True, slots=True)
class WarmUp:
    """What a pod's first measurements tell nothing of: compilation, caches, autotuning."""

    samples: int = 10
    seconds: float = 120.0


NOTHING = Measured(1.0, 0)


@dataclass(frozen=True, slots=True)
class Prior:
    """What is believed of ln(measured / predicted) before a pool's own measurements, as shares of
    the prediction's variance."""

    mean: float = 0.0
    variance: float | None = None
    """Of what stays; None: as the phase has it."""
    measured: Measured = NOTHING
    """What was seen on other pools."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A correction at one moment."""

    log_factor: float = 0.0
    narrowing: float = 1.0
    """What is left of a prediction's spread."""
    measured: Measured = NOTHING

    @property
    def factor(self) -> float:
        """What a predicted time is multiplied by."""
        return math.exp(self.log_factor)


UNCORRECTED = Estimate()


@dataclass(frozen=True, slots=True)
class Correction:
    """What was measured of one model in one phase on one pool. Immutable."""

    phase: Phase
    samples: tuple[Sample, ...] = ()
    """The newest, oldest first."""

    def with_samples(self, more: Iterable[Sample]) -> Correction:
        """With what was measured since; the order in which it comes does not matter."""
        usable = [each for each in more if each.is_usable]
        ordered = sorted([*self.samples, *usable], key=_moment)
        return Correction(self.phase, tuple(ordered[-WINDOW:]))

    def at(
        self,
        now_seconds: float,
        half_life_seconds: float = HALF_LIFE_SECONDS,
        lasting: float | None = None,
        prior: Prior | None = None,
    ) -> Estimate:
        """What it says now.

        :param lasting: as :data:`LASTING`, where it is not that of the phase.
        :param prior: what other pools say.
        """
        stays = LASTING[self.phase] if lasting is None else lasting
        before = prior or Prior()
        variance = stays if before.variance is None else before.variance
        weighted = self._weighted(now_seconds, half_life_seconds)
        middle, informed = _seen(weighted)
        gain = informed * variance / (informed * variance + 1.0 - stays)
        most = math.log(BOUND)
        log_factor = before.mean + gain * (middle - before.mean)
        narrowing = math.sqrt(variance * (1.0 - gain) + 1.0 - stays)
        count = sum(weight > 0.0 for _, weight in weighted)
        told = Measured(math.exp(middle), count) if count else before.measured
        return Estimate(max(-most, min(most, log_factor)), narrowing, told)

    def seen(
        self, now_seconds: float, half_life_seconds: float = HALF_LIFE_SECONDS
    ) -> tuple[float, float]:
        """Median of ln(measured / predicted) by weight, and the sum of the weights."""
        return _seen(self._weighted(now_seconds, half_life_seconds))

    def _weighted(self, now_seconds: float, half_life_seconds: float) -> list[tuple[float, float]]:
        return [
            (math.log(each.ratio), _weight(now_seconds - each.at_seconds, half_life_seconds))
            for each in self.samples
        ]


def _seen(weighted: Sequence[tuple[float, float]]) -> tuple[float, float]:
    return _median(weighted), math.fsum(weight for _, weight in weighted)


def corrected(interval: Interval, estimate: Estimate) -> Interval:
    """A predicted time as measurements correct it: moved by the factor, and narrowed."""
    if not 0.0 < interval.mid < math.inf:
        return interval
    mid = interval.mid * estimate.factor
    low, high = (
        mid * (end / interval.mid) ** estimate.narrowing for end in (interval.low, interval.high)
    )
    return Interval(mid, low, high)


def _moment(sample: Sample) -> tuple[float, float]:
    return sample.at_seconds, sample.ratio


def _weight(age_seconds: float, half_life_seconds: float) -> float:
    steps = math.floor(AGE_STEPS * max(age_seconds, 0.0) / half_life_seconds)
    return math.exp2(-steps / AGE_STEPS)


def _median(weighted: Iterable[tuple[float, float]]) -> float:
    """By weight; between the two middle values where the weights divide evenly there."""
    ordered = sorted(weighted)
    half = math.fsum(weight for _, weight in ordered) / 2.0
    if not half:
        return 0.0
    passed = 0.0
    for index, (value, weight) in enumerate(ordered):
        passed += weight
        if math.isclose(passed, half):
            return (value + ordered[index + 1][0]) / 2.0
        if passed > half:
            return value
    return ordered[-1][0]
