"""Waiting and tails: how load, bursts and a spread of sizes turn a mean into a percentile.

A random time is carried by its mean, variance and third central moment. Independent times add;
a percentile reads the shifted log-normal law with the same three moments. That law is exact for a
fixed time plus one proportional to a log-normal length, and within 4 % of the exponential law of a
loaded queue at p95 and p99.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist

STANDARD = NormalDist()
Z95 = STANDARD.inv_cdf(0.95)
ROOT_2 = math.sqrt(2.0)
MIXTURE_BISECTIONS = 18
"""To 4e-6 of the distance between the two kinds."""
LEAST_VARIATION = 1e-6
"""Deviation over the mean: a time that varies less is a fixed one."""
LEAST_SKEW = 0.01
"""Below it a log-normal law is a normal one."""


@dataclass(slots=True)  # not frozen: a search makes thousands, and freezing takes longer
class Delay:
    """A random time by its first moments; infinite where a queue has no steady state."""

    mean_seconds: float
    variance_seconds2: float = 0.0
    third_seconds3: float = 0.0
    """Third central moment."""

    @staticmethod
    def log_normal(mean_seconds: float, variance_seconds2: float) -> Delay:
        """By the log-normal law without a shift."""
        if mean_seconds <= 0.0 or variance_seconds2 <= 0.0:
            return Delay(mean_seconds, variance_seconds2)
        third = (variance_seconds2 / mean_seconds**2 + 3.0) * variance_seconds2**2 / mean_seconds
        return Delay(mean_seconds, variance_seconds2, third)

    def scaled(self, factor: float) -> Delay:
        """So many times as long."""
        if factor == 1.0:
            return self
        return Delay(
            self.mean_seconds * factor,
            self.variance_seconds2 * factor**2,
            self.third_seconds3 * factor**3,
        )

    @property
    def _is_fixed(self) -> bool:
        """Whether it does not vary, or never ends."""
        mean = self.mean_seconds
        return math.isinf(mean) or self.variance_seconds2 <= (LEAST_VARIATION * mean) ** 2

    @property
    def high_seconds(self) -> float:
        """One deviation above the mean: what a delay adds to a tail."""
        return self.mean_seconds + math.sqrt(self.variance_seconds2)

    @property
    def third_moment_seconds3(self) -> float:
        """About zero."""
        mean = self.mean_seconds
        return self.third_seconds3 + 3.0 * mean * self.variance_seconds2 + mean**3

    def percentile(self, percent: float) -> float:
        """Seconds that ``percent`` of 100 samples stay below."""
        if self._is_fixed:
            return self.mean_seconds
        shift, location, width = self._law()
        return max(shift + math.exp(location + normal_quantile(percent) * width), 0.0)

    def share_below(self, seconds: float) -> float:
        """Of samples, by the same law."""
        if self._is_fixed:
            return 0.0 if seconds < self.mean_seconds else 1.0
        shift, location, width = self._law()
        if seconds <= shift:
            return 0.0
        return normal_cdf((math.log(seconds - shift) - location) / width)

    def _law(self) -> tuple[float, float, float]:
        """Shift, and mean and standard deviation of the logarithm of the rest.

        The skewness g of a log-normal law is ``(w + 2) sqrt(w - 1)`` with ``w = exp(width**2)``;
        that cubic in w has one real root.
        """
        deviation = math.sqrt(self.variance_seconds2)
        skew = max(self.third_seconds3 / deviation**3, LEAST_SKEW)
        root = math.cbrt(1.0 + skew**2 / 2.0 + skew * math.sqrt(1.0 + skew**2 / 4.0))
        spread = root + 1.0 / root - 1.0
        scale = deviation / math.sqrt(spread * (spread - 1.0))
        return (
            self.mean_seconds - scale * math.sqrt(spread),
            math.log(scale),
            math.sqrt(math.log(spread)),
        )


NEVER = Delay(math.inf, math.inf, math.inf)


@dataclass(slots=True)  # not frozen, as Delay
class AfterWait:
    """A random time that begins with a wait, as a rule for nothing: never less than without it.

    A wait that few have, and have for long, has a third moment so large that the law of the sum
    leaves too little of those who do not wait: of two queues the longer one would be the earlier.
    """

    wait: Delay
    rest: Delay

    @property
    def mean_seconds(self) -> float:
        """With the wait."""
        return self.wait.mean_seconds + self.rest.mean_seconds

    def percentile(self, percent: float) -> float:
        """Seconds that ``percent`` of 100 samples stay below."""
        if self.wait.mean_seconds <= 0.0:
            return self.rest.percentile(percent)
        return max(total((self.wait, self.rest)).percentile(percent), self.rest.percentile(percent))

    def share_below(self, seconds: float) -> float:
        """Of samples."""
        if self.wait.mean_seconds <= 0.0:
            return self.rest.share_below(seconds)
        whole = total((self.wait, self.rest))
        return min(whole.share_below(seconds), self.rest.share_below(seconds))


@dataclass(slots=True)  # not frozen, as Delay
class Between:
    """A random time that is never shorter or longer than these, though its law would be."""

    law: Delay
    least_seconds: float
    most_seconds: float

    def percentile(self, percent: float) -> float:
        """Seconds that ``percent`` of 100 samples stay below."""
        return min(max(self.law.percentile(percent), self.least_seconds), self.most_seconds)

    def share_below(self, seconds: float) -> float:
        """Of samples."""
        if seconds >= self.most_seconds:
            return 1.0
        return self.law.share_below(seconds) if seconds >= self.least_seconds else 0.0


@dataclass(frozen=True, slots=True)
class Lengths:
    """A distribution of sizes by its mean and squared coefficient of variation."""

    mean: float
    scv: float
    skew: float | None = None
    """Third central moment over the cube of the mean, where it was measured; None: as of the
    log-normal law."""

    def scaled(self, mean_seconds: float) -> Delay:
        """A time in proportion to the size."""
        skew = log_normal_skew(self.scv) if self.skew is None else self.skew
        third = skew * mean_seconds**3
        return Delay(mean_seconds, self.scv * mean_seconds**2, third)

    @property
    def biased_mean(self) -> float:
        """Mean over what is in service at an instant, E[X²]/E[X]: long ones stay longer."""
        return self.mean * (1.0 + self.scv)

    def at_most(self, most: float) -> Lengths:
        """Where no size is larger: moments that a wide law has of sizes beyond are cut to those
        that are possible.

        ``E[X**2] <= most * E[X]`` and ``E[X**3] <= most**2 * E[X]`` for sizes from 0 to ``most``.
        """
        if self.mean <= 0.0:
            return self
        mean = min(self.mean, most)
        larger = most / mean
        scv = min(self.scv, larger - 1.0)
        most_skew = larger**2 - 3.0 * (1.0 + scv) + 2.0
        skew = self.skew
        if (log_normal_skew(scv) if skew is None else skew) > most_skew:
            skew = most_skew
        return Lengths(mean, scv, skew)

    def mean_of_at_least(self, least: float) -> float:
        """Mean of max(least, X) for the log-normal law (Black and Scholes' formula)."""
        if self.scv <= 0.0 or self.mean <= 0.0:
            return max(least, self.mean)
        width = math.sqrt(math.log1p(self.scv))
        above = math.log(self.mean / least) / width + width / 2.0
        return least * normal_cdf(width - above) + self.mean * normal_cdf(above)


def log_normal_skew(scv: float) -> float:
    """Third central moment of the log-normal law with mean 1: ``scv**2 * (scv + 3)``."""
    return scv * scv * (scv + 3.0)


@lru_cache(maxsize=4096)
def log_normal(p50: float, p95: float) -> Lengths:
    """The log-normal law with this median and 95th percentile; one size when they are equal."""
    if p50 <= 0.0 or p95 <= p50:
        return Lengths(max(p50, 0.0), 0.0)
    log_variance = (math.log(p95 / p50) / Z95) ** 2
    return Lengths(p50 * math.exp(log_variance / 2), math.expm1(log_variance))


def total(delays: Iterable[Delay]) -> Delay:
    """The sum of independent delays."""
    mean = variance = third = 0.0
    for delay in delays:
        mean += delay.mean_seconds
        variance += delay.variance_seconds2
        third += delay.third_seconds3
    return Delay(mean, variance, third)


def waiting(
    arrivals_per_second: float, service: Delay, servers: float, arrival_dispersion: float
) -> Delay:
    """Time in queue before one of ``servers`` equal servers is free, in order of arrival (G/G/m).

    Sakasegawa (1977) with the Allen-Cunneen correction: the probability to wait at all is about
    ``rho ** (sqrt(2 (m + 1)) - 1)``, and those who wait do so for a gamma time with mean
    ``S / (m (1 - rho)) * (ca2 + cs2) / 2``. Exact for M/M/1 and M/G/1 (Pollaczek-Khinchine), whose
    second moment has the third one of the service as well: a few long prompts make long tails.
    ``arrival_dispersion`` is ca2: 0 for a metronome, 1 for Poisson, more for bursts. :data:`NEVER`
    when the servers cannot keep up.
    """
    if service.mean_seconds <= 0.0 or arrivals_per_second <= 0.0:
        return Delay(0.0)
    load = arrivals_per_second * service.mean_seconds / servers if servers > 0.0 else math.inf
    if load >= 1.0:
        return NEVER
    mean = service.mean_seconds
    scv = service.variance_seconds2 / mean**2
    probability = load ** (math.sqrt(2.0 * (servers + 1.0)) - 1.0)
    conditional = mean / (servers * (1.0 - load)) * (arrival_dispersion + scv) / 2.0
    if conditional <= LEAST_VARIATION * mean:
        return Delay(0.0)
    rest, rest_second = mean * (1.0 + scv) / 2.0, service.third_moment_seconds3 / (3.0 * mean)
    heavier = (rest_second - 2.0 * rest**2) / (servers**2 * (1.0 - load))
    return _zero_or_gamma(probability, conditional, max(0.0, 1.0 + heavier / conditional**2))


def _zero_or_gamma(probability: float, mean: float, scv: float) -> Delay:
    """Nothing, or with ``probability`` a gamma time with these moments (scv 1: exponential)."""
    first = probability * mean
    second = first * mean * (1.0 + scv)
    third = second * mean * (1.0 + 2.0 * scv)
    return Delay(first, second - first**2, third - 3.0 * first * second + 2.0 * first**3)


def mixture_percentile(
    usual: Delay | Between, rare: Delay, rare_share: float, percent: float
) -> float:
    """Percentile of a time that is ``rare`` with probability ``rare_share``; by bisection."""
    ends = usual.percentile(percent), rare.percentile(percent)
    low, high = min(ends), max(ends)
    if rare_share <= 0.0 or low <= 0.0 or high <= low:
        return ends[0]
    for _ in range(MIXTURE_BISECTIONS):
        middle = math.sqrt(low * high)
        below = usual.share_below(middle)
        if below + rare_share * (rare.share_below(middle) - below) < percent / 100.0:
            low = middle
        else:
            high = middle
    return high


def normal_cdf(quantile: float) -> float:
    """Standard normal distribution."""
    return 0.5 * math.erfc(-quantile / ROOT_2)


@lru_cache(maxsize=256)
def normal_quantile(percent: float) -> float:
    """Standard normal quantile."""
    return STANDARD.inv_cdf(percent / 100.0)
