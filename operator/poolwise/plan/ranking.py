"""Which of several feasible candidates wins: the objective, and money where it cannot tell.

A prediction is a range. Where the ranges of the best candidate and of another overlap, nobody
knows which is better, and the cheaper one is taken.

Fast is not fast at any price: a candidate that is s times as fast may cost s times as much, and
only the root of s times as much where it waits for its input, since the accelerators that it pays
for then stand idle. Runs that are bound by their accelerators hardly meet this rule: those that
are s times as fast cost about as much for the whole run. A run that is bound by its input does,
since a dear accelerator waits as long as a cheap one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from poolwise.model.hardware import Resource
from poolwise.model.prediction import Interval, ServingPrediction, TrainingPrediction
from poolwise.plan.decision import Candidate
from poolwise.plan.requests.request import Goal

COST_WEIGHT = 1.0
"""Exponent of cost beside time: s times the speed is worth s times the cost."""
COST_WEIGHT_IDLE = 2.0
"""The same for what waits for input or host: s times the speed is worth the root of s."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """Candidates in order of the objective, and the one to take."""

    ordered: tuple[Candidate, ...]
    level: tuple[Candidate, ...]
    """Those whose ranges overlap that of the best objective, itself included."""
    winner: Candidate
    stays: bool = False
    """Whether the winner is where the workload runs already, and was not to beat the others."""

    @property
    def is_significant(self) -> bool:
        """Whether the winner is surely the best, and not only the cheapest of equals."""
        return self.level == (self.winner,)


def rank(candidates: Iterable[Candidate], goal: Goal) -> Ranking | None:
    """Order candidates by the objective; the cheapest wins where ranges overlap the best one's.

    None when there are none.
    """
    ordered = tuple(sorted(candidates, key=_by_objective))
    if not ordered:
        return None
    best = objective_range(ordered[0], goal)
    level = tuple(each for each in ordered if objective_range(each, goal).overlaps(best))
    winner = min(level, key=_by_cost)
    if goal is Goal.TIME and math.isfinite(cost_of(winner)):
        weight = COST_WEIGHT_IDLE if _waits_for_input(winner) else COST_WEIGHT
        winner = min((winner, *ordered), key=lambda each: _time_and_cost(each, weight))
    return Ranking(ordered, level, winner)


def objective_range(candidate: Candidate, goal: Goal) -> Interval:
    """The objective with the range of the prediction behind it; infinite where it is unknown."""
    value = candidate.objective_value
    if value is None:
        return Interval(math.inf, math.inf, math.inf)
    return _relative_range(candidate, goal).scaled(value)


def cost_of(candidate: Candidate) -> float:
    """Of the run, or per hour of a service; infinite where nobody priced the pool."""
    cost = candidate.cost_per_hour if candidate.total_cost is None else candidate.total_cost
    return math.inf if cost is None else cost


def _time_and_cost(candidate: Candidate, cost_weight: float) -> float:
    """What a speed-up must not raise; infinite where time or cost is unknown."""
    value = candidate.objective_value
    return math.inf if value is None else value * cost_of(candidate) ** cost_weight


def _waits_for_input(candidate: Candidate) -> bool:
    bottleneck = candidate.bottleneck
    return bottleneck is not None and bottleneck.resource in (Resource.INPUT, Resource.HOST)


def _relative_range(candidate: Candidate, goal: Goal) -> Interval:
    """Range around 1.

    All objectives of a run are proportional to its step time. Of a service only its latency has
    a range: its cost and energy are those of a whole number of replicas.
    """
    prediction = candidate.prediction
    if isinstance(prediction, TrainingPrediction):
        return _relative(prediction.step_seconds)
    if isinstance(prediction, ServingPrediction) and goal is Goal.TIME:
        return _relative(prediction.e2e_seconds)
    return Interval(1.0, 1.0, 1.0)


def _relative(interval: Interval) -> Interval:
    is_usable = 0 < interval.mid < math.inf
    return interval.scaled(1 / interval.mid) if is_usable else Interval(1.0, 1.0, 1.0)


def _by_objective(candidate: Candidate) -> tuple[float, float, str]:
    value = candidate.objective_value
    return (math.inf if value is None else value, cost_of(candidate), candidate.pool)


def _by_cost(candidate: Candidate) -> tuple[float, float, str]:
    value, cost, pool = _by_objective(candidate)
    return cost, value, pool
