"""The feed-forward part of a mixture of experts, on the fullest device."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from poolwise.model.kernels.gemm import smooth_maximum
from poolwise.model.kernels.precision import SIXTEEN_BIT_BYTES, Speeds

LARGEST_SHARE = 0.8
"""Largest draw of a power-law routing, as a share of the tokens: how the measured benchmarks
(aiconfigurator's collectors, Apache-2.0) draw the load of an expert from ``x^-alpha``."""
A_TOKEN = 0.7
"""Expected tokens above which such an expert gets one: between rounding (0.5) and one."""


@dataclass(frozen=True, slots=True)
class Routing:
    """How unevenly tokens choose: draws from ``x^-alpha`` between 1 and ``largest``."""

    alpha: float
    largest: float

    @property
    def mean(self) -> float:
        """Of a draw."""
        return self._moment(1) / self._moment(0)

    @property
    def variation(self) -> float:
        """Standard deviation of a draw over its mean."""
        second = self._moment(2) / self._moment(0)
        return math.sqrt(max(second / self.mean**2 - 1.0, 0.0))

    def share_above(self, draw: float) -> float:
        """Draws beyond a value."""
        if draw <= 1.0:
            return 1.0
        power = 1.0 - self.alpha
        return max(1.0 - _integral(power, draw) / _integral(power, self.largest), 0.0)

    def _moment(self, order: int) -> float:
        return _integral(order + 1.0 - self.alpha, self.largest)


def _integral(power: float, end: float) -> float:
    """Of ``x^(power-1)`` from 1 to an end: ``(end^power - 1) / power``, which is ``ln(end)`` at 0
    and is lost to rounding near it unless it is taken so."""
    logarithm = math.log(end)
    return math.expm1(power * logarithm) / power if power else logarithm


@dataclass(frozen=True, slots=True)
class Experts:
    """Two or three grouped products over the experts that one device holds."""

    operation: ClassVar[str] = "experts"
    tokens: float
    hidden: float
    inner: float
    matrices: int
    """Three where a gate multiplies, else two."""
    chosen: float
    """Experts per token."""
    experts: float
    tensor: float
    parallel: float
    """Devices that share the experts out."""
    alpha: float | None
    """Of a power-law routing; None: all experts get the same."""

    def seconds(self, speeds: Speeds, constants: Mapping[str, float]) -> float:
        """max(products, weights) + tokens in and out + blocks one after another + launch.

        Each expert's tokens are padded to a tile. Libraries choose that tile from the tokens per
        expert of the device as if all were for it, so a small share of many tokens pays too.
        """
        local = max(self.experts / self.parallel, 1.0)
        load, active = self.load(local, constants["skew"])
        inner = self.inner / self.tensor
        weights = active * self.matrices * self.hidden * inner * speeds.weight_bytes
        memory = weights / (speeds.bytes_per_second * constants["bandwidth"])
        padded = load + active * constants["idle_tokens"]
        flops = 2.0 * self.matrices * self.hidden * (inner + constants["idle_inner"]) * padded
        compute = flops / (speeds.flops_per_second * constants["compute"])
        passed = 2.0 * load * (self.hidden + inner) + 2.0 * self.tokens * self.hidden
        passed_bytes = passed * SIXTEEN_BIT_BYTES
        passing = passed_bytes / (speeds.bytes_per_second * constants["passing"])
        tile = self.tokens * self.chosen / local
        tile /= 1.0 + tile / constants["largest_tile"]
        walk = (self.hidden + inner) * tile * constants["walk_seconds"]
        busy = smooth_maximum(compute, memory, constants["sharpness"])
        fixed = constants["launch_seconds"] + local * constants["expert_seconds"]
        return fixed + busy + passing + walk

    def load(self, local: float, skew: float) -> tuple[float, float]:
        """Tokens (once per expert) and experts with any, on the device that has most."""
        mean = self.tokens * self.chosen / self.experts
        factor, reached = 1.0, min(1.0, mean)
        if self.alpha is not None:
            routing = Routing(self.alpha, max(LARGEST_SHARE * self.tokens, 2.0))
            factor = min(self._fullest(routing, local, skew), self.parallel)
            reached = routing.share_above(A_TOKEN * routing.mean / mean)
        even = self.tokens * self.chosen / self.parallel
        load = min(even * factor, self.tokens * min(self.chosen, local))
        active = min(local * reached * math.sqrt(factor), local, load)
        return load, max(active, 1.0)

    def _fullest(self, routing: Routing, local: float, skew: float) -> float:
        """Load of the fullest of several devices over the mean: extremes of a normal sum."""
        if self.parallel <= 1.0:
            return 1.0
        extreme = math.sqrt(2.0 * math.log(self.parallel) / local)
        return 1.0 + skew * routing.variation * extreme * (1.0 - 1.0 / self.parallel)
