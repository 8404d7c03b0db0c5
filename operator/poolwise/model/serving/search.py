"""Where a quantity that grows passes zero, on a grid: the last step that is not beyond it.

Answers lie on a grid so that they do not depend on how they were found: equal questions have equal
answers, and a looser one never a smaller answer, whatever guess the search began with.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Probe:
    """A step of the grid with the quantity there; beyond is above 0."""

    step: int
    excess: float


class Bracket:
    """A step inside and one outside, and where to look between them.

    Chandrupatla (1997): inverse quadratic interpolation through the last three points where these
    bend little, else bisection. Smooth quantities need about five looks, others 1.5 times those of
    bisection at most.
    """

    def __init__(self, inside: Probe, outside: Probe) -> None:
        self._newest, self._opposite, self._previous = outside, inside, inside

    @property
    def inside(self) -> Probe:
        """The last step that is known not to be beyond."""
        return min(self._newest, self._opposite, key=lambda each: each.step)

    @property
    def is_closed(self) -> bool:
        """Whether nothing lies between."""
        return abs(self._newest.step - self._opposite.step) <= 1

    def next_step(self) -> int:
        """Strictly between both."""
        start, end = self._newest.step, self._opposite.step
        guess = round(start + _share(self._newest, self._opposite, self._previous) * (end - start))
        return min(max(guess, min(start, end) + 1), max(start, end) - 1)

    def add(self, found: Probe) -> None:
        """What was found there."""
        if (found.excess > 0.0) == (self._newest.excess > 0.0):
            self._previous = self._newest
        else:
            self._previous, self._opposite = self._opposite, self._newest
        self._newest = found


def last_inside(excess: Callable[[int], float], inside: Probe, outside: Probe) -> int:
    """The last step before the quantity is above 0, between one inside and one outside."""
    bracket = Bracket(inside, outside)
    while not bracket.is_closed:
        step = bracket.next_step()
        bracket.add(Probe(step, excess(step)))
    return bracket.inside.step


def _share(newest: Probe, opposite: Probe, previous: Probe) -> float:
    """Of the way from the newest to the opposite point: where the inverse parabola through all
    three is 0, if it is sure to be monotone, or the line through two, if that is all there is."""
    f1, f2, f3 = newest.excess, opposite.excess, previous.excess
    if previous is opposite:
        return f1 / (f1 - f2)
    if f1 == f3 or f2 == f3:
        return 0.5
    x1, x2, x3 = newest.step, opposite.step, previous.step
    xi, phi = (x1 - x2) / (x3 - x2), (f1 - f2) / (f3 - f2)
    if phi**2 >= xi or (1.0 - phi) ** 2 >= 1.0 - xi:
        return 0.5
    return f1 / (f2 - f1) * f3 / (f2 - f3) + (x3 - x1) / (x2 - x1) * f1 / (f3 - f1) * f2 / (f3 - f2)
