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
from poolwise.plan.learning.doubt import own_spreads
from poolwise.plan.learning.kernel import NOISE, Cells, Vector, covariance


@dataclass(frozen=True, slots=True)
class PoolSpec:
    """Datasheet figures of one accelerator of a pool."""

    name: str
    flops_per_second: float
    """Peak of the arithmetic that workloads use."""
    bytes_per_second: float
    """Of its memory."""


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

    @property
    def variance(self) -> float:
        """Of the mean."""
        return NOISE**2 / self.count


class Belief(NamedTuple):
    """What is believed of one workload in one pool."""

    rate: Interval
    own_spread: float
    """Deviation of ln(rate) that the other pools do not share
    (:func:`poolwise.model.ranges.own_spread`)."""


class _Asked(NamedTuple):
    """What does not change with what was measured, but only with where."""

    mean: Vector
    prior: Vector
    """Covariance of the log rates at the places that are asked for."""
    towards: Vector
    """Covariance with those that were measured."""


class _Map:
    """The measured places, and how others lie to them; the same while no new one is measured."""

    def __init__(self, specs: tuple[PoolSpec, ...], places: tuple[Place, ...]) -> None:
        self.specs = specs
        self.places = {place: index for index, place in enumerate(places)}
        self._features = _features(specs)
        names = (name for place in places for name in (place.workload, _kin(place.workload)))
        self._numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
        self._cells = self._cells_of(places)
        self._among: dict[tuple[str, int], _Asked] = {}

    def knows(self, pool: str) -> bool:
        """Whether it has a datasheet."""
        return pool in self._features

    @property
    def mean(self) -> Vector:
        """Of the log rates at the measured places, before they were."""
        return self._cells.mean

    @property
    def prior(self) -> Vector:
        """Their covariance."""
        return covariance(self._cells, self._cells)

    def among(self, workload: str, accelerators: int) -> _Asked:
        """A workload on so many accelerators, close together, in every pool."""
        asked = workload, accelerators
        if asked not in self._among:
            places = [Place(workload, spec.name, accelerators, True) for spec in self.specs]
            self._among[asked] = self.asked(places)
        return self._among[asked]

    def asked(self, places: Sequence[Place]) -> _Asked:
        """Any places."""
        cells = self._cells_of([_place(*each) for each in places])
        return _Asked(cells.mean, covariance(cells, cells), covariance(cells, self._cells))

    def _cells_of(self, places: Sequence[Place]) -> Cells:
        numbers = dict(self._numbers)
        return Cells.of(
            [
                (
                    numbers.setdefault(each.workload, len(numbers)),
                    numbers.setdefault(_kin(each.workload), len(numbers)),
                    *self._features[each.pool],
                    math.log(each.accelerators),
                    float(not each.packed),
                )
                for each in places
            ]
        )


class _Known(NamedTuple):
    """What was measured."""

    seen: Mapping[Place, Seen]
    map: _Map
    inverse: Vector
    """Of the covariance of what was measured, with its noise."""


class Rates:
    """All that is known. Immutable: :meth:`observe` gives new ones."""

    def __init__(self, specs: tuple[PoolSpec, ...], known: _Known | None = None) -> None:
        """Nothing but datasheets without ``known``. ValueError where a figure is not positive."""
        self.specs = specs
        self.seen, self._map, self._inverse = known or _Known({}, _Map(specs, ()), np.zeros((0, 0)))
        self._told: dict[tuple[str, int], Mapping[str, Belief]] = {}

    @staticmethod
    def measured(specs: tuple[PoolSpec, ...], rates: Iterable[tuple[Place, float]]) -> Rates:
        """From all measurements at once, which takes less time than one by one."""
        nothing, seen = Rates(specs), dict[Place, Seen]()
        for asked, rate in rates:
            if nothing.tells(asked.pool, rate):
                place, log_rate = _place(*asked), math.log(rate)
                earlier = seen.get(place)
                seen[place] = earlier.and_one(log_rate) if earlier else Seen(log_rate, 1)
        return nothing._with(seen) if seen else nothing

    def tells(self, pool: str, rate: float) -> bool:
        """Whether a measurement is a positive number, of a pool that is known."""
        return 0.0 < rate < math.inf and self._map.knows(pool)

    def observe(
        self, workload: str, pool: str, rate: float, accelerators: int = 1, packed: bool = True
    ) -> Rates:
        """With one measured rate (steps or samples a second) more.

        What is no positive number, or of a pool that is not known, tells nothing.
        """
        if not self.tells(pool, rate):
            return self
        place = _place(workload, pool, accelerators, packed)
        earlier, log_rate = self.seen.get(place), math.log(rate)
        if earlier is None:
            return self._with({**self.seen, place: Seen(log_rate, 1)})
        now = earlier.and_one(log_rate)
        surer = self._surer(place, now.variance - earlier.variance)
        return Rates(self.specs, _Known({**self.seen, place: now}, self._map, surer))

    def has_run(self, workload: str) -> bool:
        """Whether it was measured, so that more than ratios between places is known of it."""
        return any(place.workload == workload for place in self.seen)

    def kin(self, workload: str) -> list[str]:
        """Who of its kin was measured."""
        ran = dict.fromkeys(place.workload for place in self.seen)
        return [each for each in ran if each != workload and _kin(each) == _kin(workload)]

    def runs(self, workload: str, pool: str) -> int:
        """Measurements of a workload in a pool."""
        alike = (at for at in self.seen if (at.workload, at.pool) == (workload, pool))
        return sum(self.seen[place].count for place in alike)

    def estimates(self, places: Sequence[Place]) -> list[Interval]:
        """The rates, and the ranges that hold them nine times in ten.

        Of a workload that was never seen only the ratios between places mean anything. KeyError
        for a pool that is not known.
        """
        return _intervals(*self._believed(self._map.asked(places)))

    def among(self, workload: str, accelerators: int) -> Mapping[str, Belief]:
        """Of one workload on so many accelerators, close together, in every pool."""
        asked = workload, accelerators
        if asked not in self._told:
            mean, spread = self._believed(self._map.among(*asked))
            told = map(Belief, _intervals(mean, spread), own_spreads(spread))
            names = (spec.name for spec in self.specs)
            self._told[asked] = dict(zip(names, told, strict=True))
        return self._told[asked]

    def _believed(self, asked: _Asked) -> tuple[Vector, Vector]:
        """Mean and covariance of log rates, given what was measured."""
        values = np.array([each.log_rate for each in self.seen.values()])
        gain = asked.towards @ self._inverse
        return asked.mean + gain @ (values - self._map.mean), asked.prior - gain @ asked.towards.T

    def _with(self, seen: Mapping[Place, Seen]) -> Rates:
        located = _Map(self.specs, tuple(seen))
        noise = np.diag([each.variance for each in seen.values()])
        return Rates(self.specs, _Known(seen, located, np.linalg.inv(located.prior + noise)))

    def _surer(self, place: Place, change: float) -> Vector:
        """The inverse where the variance of one measured cell changes (Sherman and Morrison)."""
        at = self._map.places[place]
        column = self._inverse[:, at]
        surer: Vector = self._inverse - np.outer(
            column * (change / (1.0 + change * column[at])), column
        )
        return surer


def _intervals(mean: Vector, spread: Vector) -> list[Interval]:
    deviations = np.sqrt(np.maximum(np.diag(spread), 0.0))
    return [
        Interval.around(math.exp(float(middle)), float(deviation))
        for middle, deviation in zip(mean, deviations, strict=True)
    ]


def _place(workload: str, pool: str, accelerators: int, packed: bool) -> Place:
    return Place(workload, pool, accelerators, packed or accelerators == 1)


def _kin(workload: str) -> str:
    return workload.rpartition("/")[0] or workload


def _features(specs: Iterable[PoolSpec]) -> dict[str, tuple[int, float, float]]:
    """Number, log speed and log ratio of FLOP/s to bytes/s by pool, around their means."""
    known = tuple(specs)
    if not all(min(each.flops_per_second, each.bytes_per_second) > 0.0 for each in known):
        raise ValueError("datasheet figures must be positive")
    flops = [math.log(each.flops_per_second) for each in known]
    memory = [math.log(each.bytes_per_second) for each in known]
    speeds = [(one + other) / 2 for one, other in zip(flops, memory, strict=True)]
    tilts = [(one - other) / 2 for one, other in zip(flops, memory, strict=True)]
    middle = [sum(each) / max(len(known), 1) for each in (speeds, tilts)]
    return {
        spec.name: (at, speeds[at] - middle[0], tilts[at] - middle[1])
        for at, spec in enumerate(known)
    }
