"""Measured rates and what they say of places where a workload never ran.

Gaussian regression (kriging) over :mod:`.kernel`: the estimate is the mean of ln(rate) given
everything that was measured, its range the deviation that is left. Measurements of one workload at
one place are one cell with their mean; its noise falls with their number.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from poolwise.model.prediction import Interval
from poolwise.plan.learning.kernel import NOISE, Cells, Vector, covariance, variance

JITTER = 1e-9
UNSEEN = -1


@dataclass(frozen=True, slots=True)
class PoolSpec:
    """Datasheet figures of one accelerator of a pool."""

    name: str
    flops_per_second: float
    """Peak of the arithmetic that workloads use."""
    bytes_per_second: float
    """Of its memory."""
    link_bytes_per_second: float = 0.0
    """To other accelerators of its node; 0: not known."""


class Place(NamedTuple):
    """What a rate was measured of."""

    workload: str
    """``model/batch``, or any name; what is alike before the last ``/`` is kin."""
    pool: str
    accelerators: int
    packed: bool
    """On as few nodes as take it."""


@dataclass(frozen=True, slots=True)
class Seen:
    """Measurements at one place."""

    log_rate: float
    """The mean."""
    count: int

    def and_one(self, log_rate: float) -> Seen:
        """With one measurement more."""
        more = self.count + 1
        return Seen(self.log_rate + (log_rate - self.log_rate) / more, more)


class Rates:
    """All that is known. Immutable: :meth:`observe` gives new ones."""

    def __init__(
        self, specs: tuple[PoolSpec, ...], seen: Mapping[Place, Seen] | None = None
    ) -> None:
        """ValueError where a figure is not positive."""
        self.specs = specs
        self.seen: Mapping[Place, Seen] = dict(seen or {})
        self._features = _features(specs)
        self._told: dict[Place, Interval] = {}

    def observe(
        self, workload: str, pool: str, rate: float, accelerators: int = 1, packed: bool = True
    ) -> Rates:
        """With one measured rate (steps or samples a second) more.

        What is no positive number, or of a pool that is not known, tells nothing.
        """
        if not 0.0 < rate < math.inf or pool not in self._features:
            return self
        place = _place(workload, pool, accelerators, packed)
        earlier = self.seen.get(place)
        log_rate = math.log(rate)
        now = Seen(log_rate, 1) if earlier is None else earlier.and_one(log_rate)
        return Rates(self.specs, {**self.seen, place: now})

    def estimate(
        self, workload: str, pool: str, accelerators: int = 1, packed: bool = True
    ) -> Interval:
        """The rate, and the range that holds it nine times in ten.

        Of a workload that was never seen only the ratios between places mean anything. KeyError
        for a pool that is not known.
        """
        (told,) = self.estimates([Place(workload, pool, accelerators, packed)])
        return told

    def estimates(self, places: Sequence[Place]) -> list[Interval]:
        """The same of many places at once, which takes less time than one by one."""
        wanted = [_place(*each) for each in places]
        untold = [each for each in dict.fromkeys(wanted) if each not in self._told]
        if untold:
            self._told.update(zip(untold, self._estimated(untold), strict=True))
        return [self._told[each] for each in wanted]

    def _estimated(self, places: Sequence[Place]) -> Iterator[Interval]:
        asked = self._cells(places)
        means, left = asked.mean, variance(asked)
        if self.seen:
            known, weights, inverse = self._solved
            towards = covariance(asked, known)
            means = means + towards @ weights
            left = left - np.sum(towards @ inverse * towards, axis=1)
        for mean, rest in zip(means, left, strict=True):
            yield Interval.around(math.exp(mean), math.sqrt(max(rest, 0.0)))

    @cached_property
    def _solved(self) -> tuple[Cells, Vector, Vector]:
        """The cells that were seen, the weight of each, and the inverse of their covariance."""
        known = self._cells(tuple(self.seen))
        values = np.array([each.log_rate for each in self.seen.values()])
        noise = np.array([NOISE**2 / each.count for each in self.seen.values()])
        inverse = np.linalg.inv(covariance(known, known) + np.diag(noise + JITTER))
        weights: Vector = inverse @ (values - known.mean)
        return known, weights, inverse

    @cached_property
    def _numbers(self) -> tuple[dict[str, int], dict[str, int]]:
        """Of the workloads that were seen, and of their kins."""
        workloads = dict.fromkeys(each.workload for each in self.seen)
        kins = dict.fromkeys(map(_kin, workloads))
        return (
            {name: at for at, name in enumerate(workloads)},
            {name: at for at, name in enumerate(kins)},
        )

    def _cells(self, places: Sequence[Place]) -> Cells:
        """Of places of workloads that were seen, or all of one that was not."""
        workloads, kins = self._numbers
        return Cells.of(
            [
                (
                    workloads.get(each.workload, UNSEEN),
                    kins.get(_kin(each.workload), UNSEEN),
                    *self._features[each.pool],
                    math.log(each.accelerators),
                    float(not each.packed),
                )
                for each in places
            ]
        )


def _place(workload: str, pool: str, accelerators: int, packed: bool) -> Place:
    return Place(workload, pool, accelerators, packed or accelerators == 1)


def _kin(workload: str) -> str:
    return workload.rpartition("/")[0] or workload


def _features(specs: tuple[PoolSpec, ...]) -> dict[str, tuple[int, float, float]]:
    """Number, log speed and log ratio of FLOP/s to bytes/s by pool, around their means."""
    if not all(min(each.flops_per_second, each.bytes_per_second) > 0.0 for each in specs):
        raise ValueError("datasheet figures must be positive")
    flops = [math.log(each.flops_per_second) for each in specs]
    memory = [math.log(each.bytes_per_second) for each in specs]
    speeds = [(one + other) / 2 for one, other in zip(flops, memory, strict=True)]
    tilts = [(one - other) / 2 for one, other in zip(flops, memory, strict=True)]
    middle = [sum(each) / max(len(specs), 1) for each in (speeds, tilts)]
    return {
        spec.name: (at, speeds[at] - middle[0], tilts[at] - middle[1])
        for at, spec in enumerate(specs)
    }
