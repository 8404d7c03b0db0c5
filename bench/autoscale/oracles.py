"""Who knows the future: what the least cost would be.

O1 sees every arrival and pays for starts like everybody: it asks early enough, so a start delay
costs it nothing but its bill. For a given need by bins its fleet is optimal, layer by layer: the
k-th replica is there whenever k are needed, and stays through a gap that is shorter than a start,
since stopping and starting again would cost more than idling. The need is that of the fluid times a
headroom, by several shapes; the cheapest with which the simulation meets the targets of 99 % of the
requests (of those that an idle replica answers in time, :mod:`bench.autoscale.reach`) is searched
for. A plan of any other kind may be cheaper still: O1 is what foresight is worth at least.

O2 is our controller with one true rate in place of its forecast: that of the half minute around the
moment when a replica that is asked for now would have served for two looks. So it tells the loss of
that forecast from that of control. It is told nothing of what comes before or after, and as a rate
is given, it adds no growth of its own: it is no bound, and ours may do better.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from bench.autoscale.outcome import Outcome
from bench.autoscale.policy import Policy, View
from bench.autoscale.reach import aim
from bench.autoscale.scene import Scene
from bench.autoscale.watching import Late, Watched

BIN_SECONDS = 15.0


@dataclass(frozen=True, slots=True)
class Shape:
    """How a plan follows the fluid."""

    bins: int
    """Around each one that count for it, an odd number."""
    is_greatest: bool
    """Of these bins, their greatest need; or their mean."""
    root: float
    """Of the need's square root, added to it."""


SHAPES = (Shape(3, True, 0.0), Shape(3, True, 0.5), Shape(3, True, 1.0), Shape(5, False, 0.5))
"""Those that are tried; the first finds about which headroom is enough."""
LEAST_HEADROOM, MOST_HEADROOM = 0.5, 2.5
NEAR = (0.7, 1.0)
"""Of the first shape's headroom, where the others' are looked for."""
BISECTIONS = 8
EARLY = 1e-6
"""Of a bin: moments are sums of intervals."""


class Clairvoyant:
    """Follows a fleet that was planned before the trace began."""

    interval_seconds = BIN_SECONDS

    def __init__(self, replicas: Sequence[int], start_delay_seconds: float) -> None:
        """``replicas`` by bins from the start of the trace."""
        self._replicas = replicas
        self._delay_seconds = start_delay_seconds

    def desired(self, view: View) -> int:
        """The most that is planned from now until what is asked for now is there."""
        first = min(int(view.now_seconds / BIN_SECONDS + EARLY), len(self._replicas) - 1)
        there = math.ceil((view.now_seconds + self._delay_seconds) / BIN_SECONDS - EARLY)
        return max(self._replicas[first : max(there, first) + 1])


def clairvoyant(scene: Scene, play: Callable[[Policy], Outcome]) -> Outcome:
    """O1: the cheapest fleet of its kind that attains it, or the largest where none does."""
    search = _Search(scene, play)
    headroom = search.least_headroom(SHAPES[0], LEAST_HEADROOM, MOST_HEADROOM, BISECTIONS)
    low, high = NEAR
    for shape in SHAPES[1:]:
        search.least_headroom(shape, low * headroom, high * headroom, BISECTIONS // 2)
    return search.best or play(Clairvoyant([scene.most_replicas], scene.start_delay_seconds))


class _Search:
    """Over planned fleets; ``best`` is the cheapest of those that attained it."""

    def __init__(self, scene: Scene, play: Callable[[Policy], Outcome]) -> None:
        self.best: Outcome | None = None
        self._scene, self._play, self._aim = scene, play, aim(scene)

    def least_headroom(self, shape: Shape, low: float, high: float, steps: int) -> float:
        """By bisection; the lowest that was good, or ``high``."""
        for _ in range(steps):
            middle = math.sqrt(low * high)
            low, high = (low, middle) if self._is_good(middle, shape) else (middle, high)
        return high

    def _is_good(self, headroom: float, shape: Shape) -> bool:
        scene = self._scene
        policy = Clairvoyant(planned(scene, headroom, shape), scene.start_delay_seconds)
        try:
            outcome = self._play(Watched(policy, scene, 1.0 - self._aim))
        except Late:
            return False
        if outcome.attainment < self._aim:
            return False
        if self.best is None or outcome.replica_hours < self.best.replica_hours:
            self.best = outcome
        return True


def planned(scene: Scene, headroom: float, shape: Shape) -> tuple[int, ...]:
    """Replicas by bins: no gap of a layer is shorter than a start."""
    fluid = scene.needed_replicas(BIN_SECONDS)
    around = np.pad(fluid, shape.bins // 2, mode="edge")
    windows = np.lib.stride_tricks.sliding_window_view(around, shape.bins)
    need = windows.max(axis=1) if shape.is_greatest else windows.mean(axis=1)
    wanted = np.ceil(headroom * need + shape.root * np.sqrt(need)).astype(np.int64)
    bounded = np.clip(wanted, scene.least_replicas, scene.most_replicas).tolist()
    return tuple(without_short_gaps(bounded, int(scene.start_delay_seconds / BIN_SECONDS)))


def without_short_gaps(needed: Sequence[int], bins: int) -> list[int]:
    """Troughs filled where they last no longer than ``bins``: a closing by a flat element.

    A level may sink only for longer than a start takes, so each bin holds the least of the greatest
    levels of all stretches of ``bins + 1`` that it is part of; before and after, nothing is needed.
    """
    width = bins + 1
    edge = np.zeros(bins, np.int64)
    padded = np.concatenate((edge, np.asarray(needed), edge))
    dilated = np.lib.stride_tricks.sliding_window_view(padded, width).max(axis=1)
    closed = np.lib.stride_tricks.sliding_window_view(dilated, width).min(axis=1)
    return [int(level) for level in closed]
