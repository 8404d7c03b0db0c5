"""The search for the highest load at which all targets hold.

Loads lie on a grid of logarithms whose last step is the largest load, so that the answer does not
depend on where the search began (:mod:`poolwise.model.serving.search`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from poolwise.model.serving.latency import latencies
from poolwise.model.serving.load import Replica, State, state
from poolwise.model.serving.search import Bracket, Probe
from poolwise.model.serving.targets import each_miss, excess
from poolwise.model.work import Target

PRECISION = 1e-4
"""Step of the logarithm of loads: far below the 0.5 % that tells bottlenecks apart."""
LEAST_LOAD = 2.0**-22
"""Of the largest one: a lone request."""
SHARES = (2.0**-1, 1.0, 2.0**-3, 2.0**-7, 2.0**-14, LEAST_LOAD)
"""Of the largest load: first looks where nothing is known. Most replicas are filled to a half."""
NEAR = 1.12
"""Half-width of the first look around a load that is expected."""
SLACK = 2e-3
"""Of the logarithm of a rate that is aimed at from below."""
SECANTS = 5
USUAL_SLOPE, LEAST_SLOPE = 0.7 * PRECISION, 0.05 * PRECISION
"""Of the logarithm of the rate by step: loads grow faster than the rates that they serve."""


@dataclass(frozen=True, slots=True)
class Highest:
    """The highest load at which all targets hold."""

    load: float
    requests_per_second: float


NOWHERE = Highest(0.0, 0.0)


class Climb:
    """One replica with its targets; what was seen of a load is remembered.

    Of the targets those are asked about that may be missed below the least load outside.
    """

    def __init__(self, served: Replica, targets: tuple[Target, ...]) -> None:
        self._served, self._open = served, targets
        self._most = served.largest_load
        self._last = _step_of(self._most) + 1 if self._most > 0.0 else 0
        self._least = _step_of(self._most * LEAST_LOAD) if self._most > 0.0 else 0
        self._states: dict[int, State] = {}
        self._inside: Probe | None = None
        self._outside: Probe | None = None

    def strain(self, load: float) -> float:
        """How far a load, a lone request at least, is from missing a target; infinite where nothing
        fits."""
        if self._most <= 0.0:
            return math.inf
        step = _step_of(load) if load > 0.0 else self._least
        return self._look(min(max(step, self._least), self._last)).excess

    def highest(self, near: float = 0.0, worth: float = 0.0) -> Highest:
        """The highest load, or 0.

        ``near`` is a load that is expected, and changes only the time taken. A rate below
        ``worth`` is of no use: then nothing need be found.
        """
        if self._most <= 0.0 or self._is_below(worth):
            return NOWHERE
        for step in self._looks(near, worth):
            if self._inside and self._outside:
                break
            if self._is_open(step):
                self._look(step)
            if self._is_below(worth):
                return NOWHERE
        if self._inside and self._outside:
            return self._between(Bracket(self._inside, self._outside), worth)
        return self._at(self._inside.step) if self._inside else NOWHERE

    def _between(self, bracket: Bracket, worth: float) -> Highest:
        while not bracket.is_closed:
            bracket.add(self._look(bracket.next_step()))
            if self._is_below(worth):
                return NOWHERE
        return self._at(bracket.inside.step)

    def _looks(self, near: float, worth: float) -> Iterator[int]:
        """First a load that serves just less than is of use, or the expected one and its
        surroundings; then from the middle upwards or downwards."""
        if near > 0.0 and worth > 0.0:
            yield self._just_below(worth, min(_step_of(near), self._last))
        if near > 0.0:
            yield from (_step_of(near * each) for each in (1.0, NEAR, 1.0 / NEAR))
        yield from (self._last if each == 1.0 else _step_of(self._most * each) for each in SHARES)

    def _just_below(self, worth: float, step: int) -> int:
        """A step that serves a little less: the given one, or one below it by secants."""
        aim, rate = math.log(worth) - SLACK, self._log_rate(step)
        if rate < aim:
            return step
        known = next((each for each in self._states if each != step), None)
        slope = USUAL_SLOPE if known is None else (self._log_rate(known) - rate) / (known - step)
        for _ in range(SECANTS):
            if abs(aim - rate) < SLACK:
                break
            shift = round((aim - rate) / max(slope, LEAST_SLOPE))
            nearer = min(max(step + shift, self._least), self._last)
            if nearer == step:
                break
            slope = (self._log_rate(nearer) - rate) / (nearer - step)
            step, rate = nearer, self._log_rate(nearer)
        return step

    def _log_rate(self, step: int) -> float:
        return math.log(self._state(step).requests_per_second)

    def _is_open(self, step: int) -> bool:
        """Whether it is on the grid and between what is known inside and outside."""
        if step > self._last:
            return False
        if self._inside and step <= self._inside.step:
            return False
        return self._outside is None or step < self._outside.step

    def _is_below(self, worth: float) -> bool:
        """Whether even the least load outside serves less."""
        if not worth or not self._outside:
            return False
        return self._state(self._outside.step).requests_per_second < worth

    def _look(self, step: int) -> Probe:
        at = self._state(step)
        misses = each_miss(latencies(self._served, at), self._open)
        found = Probe(step, excess(at, self._open, misses))
        if found.excess > 0.0:
            self._outside = found
            # What holds here holds at every load that is still looked at.
            missed = [each for each, by in zip(self._open, misses, strict=True) if by > 0.0]
            self._open = tuple(missed) or self._open
        else:
            self._inside = found
        return found

    def _at(self, step: int) -> Highest:
        return Highest(self._load_at(step), self._state(step).requests_per_second)

    def _state(self, step: int) -> State:
        found = self._states.get(step)
        if found is None:
            found = self._states[step] = state(self._served, self._load_at(step))
        return found

    def _load_at(self, step: int) -> float:
        return min(math.exp(PRECISION * step), self._most)


def _step_of(load: float) -> int:
    """The last step up to a load; one that lies on a step is its own, whatever the rounding."""
    return math.floor(math.log(load) / PRECISION + 1e-6)
