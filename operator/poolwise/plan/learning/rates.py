"""Measured rates and what they say of places where a workload never ran.

Gaussian regression (kriging) over :mod:`.kernel`: the estimate is the mean of ln(rate) given
everything that was measured, its range the deviation that is left. Measurements of one workload at
one place are one cell with their mean; its noise falls with their number.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from poolwise.model.prediction import Interval
from poolwise.plan.learning.kernel import NOISE, Cells, Vector, covariance


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


@dataclass(frozen=True, slots=True)
class Belief:
    """Normal distribution of the log rates of some places, given what was measured."""

    at: Mapping[Place, int]
    """Where each place stands in the mean."""
    mean: Vector
    covariance: Vector

    @staticmethod
    def none() -> Belief:
        """Of no place."""
        return Belief({}, np.zeros(0), np.zeros((0, 0)))

    def covers(self, places: Iterable[Place]) -> bool:
        """Whether it tells of all these."""
        return all(place in self.at for place in places)

    def after(self, place: Place, log_rate: float) -> Belief | None:
        """With one measurement more (a Kalman step); None of a place that it does not cover."""
        if place not in self.at:
            return None
        column = self.covariance[:, self.at[place]]
        gain = column / (column[self.at[place]] + NOISE**2)
        mean = self.mean + gain * (log_rate - self.mean[self.at[place]])
        return Belief(self.at, mean, self.covariance - np.outer(gain, column))

    def told(self, place: Place) -> Interval:
        """The rate at one place."""
        index = self.at[place]
        spread = math.sqrt(max(float(self.covariance[index, index]), 0.0))
        return Interval.around(math.exp(float(self.mean[index])), spread)


class Rates:
    """All that is known. Immutable: :meth:`observe` gives new ones."""

    def __init__(
        self,
        specs: tuple[PoolSpec, ...],
        seen: Mapping[Place, Seen] | None = None,
        belief: Belief | None = None,
    ) -> None:
        """``belief`` is what follows from ``seen`` for some places; None: nothing yet.

        ValueError where a figure is not positive.
        """
        self.specs = specs
        self.seen: Mapping[Place, Seen] = dict(seen or {})
        self._features = _features(specs)
        self._belief = belief or Belief.none()

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
        belief = self._belief.after(place, log_rate)
        return Rates(self.specs, {**self.seen, place: now}, belief)

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
        if not self._belief.covers(wanted):
            asked = dict.fromkeys([*self._belief.at, *self.seen, *wanted])
            self._belief = self._believed(tuple(asked))
        return [self._belief.told(each) for each in wanted]

    def _believed(self, places: tuple[Place, ...]) -> Belief:
        """From the prior and all measurements; those must be among the places."""
        cells = self._cells(places)
        at = {place: index for index, place in enumerate(places)}
        mean, prior = cells.mean, covariance(cells, cells)
        if not self.seen:
            return Belief(at, mean, prior)
        rows = [at[place] for place in self.seen]
        values = np.array([each.log_rate for each in self.seen.values()])
        noise = np.array([NOISE**2 / each.count for each in self.seen.values()])
        towards = prior[:, rows]
        gain = np.linalg.solve(towards[rows] + np.diag(noise), towards.T).T
        return Belief(at, mean + gain @ (values - mean[rows]), prior - gain @ towards.T)

    def _cells(self, places: Sequence[Place]) -> Cells:
        workloads = _numbered(each.workload for each in places)
        kins = _numbered(_kin(each.workload) for each in places)
        return Cells.of(
            [
                (
                    workloads[each.workload],
                    kins[_kin(each.workload)],
                    *self._features[each.pool],
                    math.log(each.accelerators),
                    float(not each.packed),
                )
                for each in places
            ]
        )


def _numbered(names: Iterable[str]) -> dict[str, int]:
    return {name: index for index, name in enumerate(dict.fromkeys(names))}


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
