"""Which of several feasible candidates wins: the objective, and money where it cannot tell.

A prediction is a range. Where the best candidate and another are nearer to each other than the
ratio of their predictions is sure (:mod:`poolwise.model.ranges`), nobody knows which is better, and
the cheapest of them is taken, unless it is expected to be worse by more than
:data:`MOST_GIVEN_UP`: of a workload of which next to nothing is known, pools that differ by a
factor are in doubt. Outside of that the objective decides alone: who asks for Time gets the faster
pool whatever it costs, and bounds the cost by ``maxCost`` or by the goal Cost.

One exception. Where the winner on Time waits for its input or its host, its speed is that of the
host, and the accelerators that it is priced by stand idle: a dear one waits as long as a cheap
one. There s times the speed may cost the root of s times as much, and no more.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

from poolwise.model.hardware import Resource
from poolwise.model.prediction import ServingPrediction
from poolwise.model.ranges import ratio_margin
from poolwise.plan.decision import Candidate
from poolwise.plan.limits import as_cheap_as
from poolwise.plan.nodes.labels import LEAST_ASSURED
from poolwise.plan.requests.request import Goal

IDLE_COST_WEIGHT = 2.0
"""Exponent of cost beside time, for accelerators that wait for input or host: s times the speed
is worth the root of s times the cost."""

MOST_GIVEN_UP = 0.3
"""Of the objective, for money, where nobody knows which is better, and of money, so that a domain
stays whole: what is in doubt between two fitted accelerators (own spreads of 0.11, margin 28 %).
Without a limit, runs that no model describes took 19 and 26 % longer than on the fastest pools (T1,
load 0.5, seeds 0 and 1), with it 1 % less and 0.2 % more (``bench.placement``)."""

NEXT_TO_NOTHING = 1e-6
"""Relative; it only decides between what is else the same."""
SPEED_STEPS = 20
"""Per e-fold: pools of one price whose speeds differ by less than 5 % are equally fast."""
UNKNOWN_LOSS = 2.0
"""Times the winner, for a candidate that nobody can put a number on (no price is known, or it
cannot have the replicas that the targets need)."""


@dataclass(frozen=True, slots=True)
class Difference:
    """How far two candidates are apart, and how far they would have to be."""

    apart: float
    """Of the larger objective over the smaller, beyond 1."""
    margin: float
    """What the error of prediction alone may make of equals, nine times in ten."""

    @staticmethod
    def of(first: Candidate, second: Candidate) -> Difference:
        """Between two candidates; infinite where the objective of one is unknown."""
        values = sorted(map(_by_value, (first, second)))
        margin = ratio_margin(first.own_spread, second.own_spread)
        if values[0] == values[1]:
            return Difference(0.0, margin)
        return Difference(values[1] / values[0] - 1 if values[0] else math.inf, margin)

    @property
    def is_level(self) -> bool:
        """Whether nobody knows which is better."""
        return self.apart <= self.margin


@dataclass(frozen=True, slots=True)
class Ranking:
    """Candidates in order of the objective, and the one to take."""

    ordered: tuple[Candidate, ...]
    level: tuple[Candidate, ...]
    """Those that may be as good as the best objective, itself included."""
    equals: tuple[Candidate, ...]
    """Those of them that are taken for as good, since little would be lost."""
    winner: Candidate
    stays: bool = False
    """Whether the winner is where the workload runs already, and was not to beat the others."""
    because: str = ""
    """Clause: why the winner is taken though another would be better for this workload alone;
    empty where it is the best one."""
    weighs_idleness: bool = False
    """Whether accelerators that would stand idle decided, by time x cost^2."""

    @property
    def is_for_idleness(self) -> bool:
        """Whether the winner is taken because others' accelerators would stand idle: neither by the
        objective, nor for its price among equals, nor where it runs or for the sake of others."""
        if not self.weighs_idleness or self.stays or self.because or self.winner in self.equals:
            return False
        return self.winner == min(self.ordered, key=_time_and_cost)

    @property
    def is_significant(self) -> bool:
        """Whether the winner is surely the best, and not only the cheapest of equals."""
        return self.level == (self.winner,)


def rank(candidates: Iterable[Candidate], goal: Goal) -> Ranking | None:
    """Order candidates by the objective; the cheapest wins among those level with the best one.
    Who can have as many replicas as the targets need comes before who can not.

    Goal Time: where that winner waits for input or host, the least time x cost^2 wins instead.
    None when there are none.
    """
    ordered = tuple(sorted(candidates, key=lambda each: (bool(each.too_few), by_objective(each))))
    if not ordered:
        return None
    able = [each for each in ordered if bool(each.too_few) == bool(ordered[0].too_few)]
    level = tuple(each for each in able if Difference.of(each, ordered[0]).is_level)
    equals = tuple(each for each in level if Difference.of(each, ordered[0]).apart <= MOST_GIVEN_UP)
    winner = min(equals, key=partial(_by_cost, cheapest=min(map(cost_of, equals))))
    if goal is Goal.TIME and stands_idle(winner) and math.isfinite(cost_of(winner)):
        winner = min((winner, *ordered), key=_time_and_cost)
        return Ranking(ordered, level, equals, winner, weighs_idleness=True)
    return Ranking(ordered, level, equals, winner)


def most_cost(speed: float) -> float:
    """Times the cost that so many times the speed is worth where accelerators stand idle."""
    return math.pow(speed, 1.0 / IDLE_COST_WEIGHT)


def losses(ranking: Ranking) -> dict[str, float]:
    """By pool: how many times worse a candidate is than the winner, in what decided; at least 1.

    Those that are taken for as good as the best one lose next to nothing, the cheaper the less; and
    of those that lose the same, the cheaper loses next to nothing less.
    """
    winner = ranking.winner
    cheapest = min(map(cost_of, ranking.equals))
    in_doubt = sorted(ranking.equals, key=partial(_by_cost, cheapest=cheapest))
    found = {
        each.pool: _loss(each, ranking) * (1.0 + NEXT_TO_NOTHING * at)
        for at, each in enumerate(ranking.ordered)
    }
    if not ranking.weighs_idleness:
        found |= {each.pool: 1.0 + NEXT_TO_NOTHING * at for at, each in enumerate(in_doubt)}
    return {**found, winner.pool: 1.0}


def _loss(candidate: Candidate, ranking: Ranking) -> float:
    if candidate.too_few and not ranking.winner.too_few:
        return UNKNOWN_LOSS
    score = _time_and_cost if ranking.weighs_idleness else _by_value
    reference = ranking.winner if ranking.weighs_idleness else ranking.ordered[0]
    mine, best = score(candidate), score(reference)
    if mine == best == 0.0:  # neither costs anything: the objective is left to tell them apart
        mine, best = _by_value(candidate), _by_value(reference)
    if not (math.isfinite(mine) and math.isfinite(best) and best > 0):
        return UNKNOWN_LOSS
    return max(mine / best, 1.0 + NEXT_TO_NOTHING)


def cost_of(candidate: Candidate) -> float:
    """Of the run, or per hour of a service; infinite where nobody priced the pool."""
    known = candidate.total_cost, candidate.weighed_cost_per_hour, candidate.cost_per_hour
    return next((cost for cost in known if cost is not None), math.inf)


def stands_idle(candidate: Candidate) -> bool:
    """Whether its accelerators wait for input or host, which alone set its speed."""
    bottleneck = candidate.bottleneck
    return bottleneck is not None and bottleneck.resource in (Resource.INPUT, Resource.HOST)


def _time_and_cost(candidate: Candidate) -> float:
    """What the speed of idle accelerators must not raise; infinite where it is unknown."""
    value = candidate.objective_value
    return math.inf if value is None else value * cost_of(candidate) ** IDLE_COST_WEIGHT


def _by_value(candidate: Candidate) -> float:
    return math.inf if candidate.objective_value is None else candidate.objective_value


def slowness(candidate: Candidate) -> int:
    """In steps of 5 %: of a run by its time, of a service by what its replicas serve at most.

    A dearer pool is not taken for it: it tells pools apart that are else the same.
    """
    prediction, seconds = candidate.prediction, candidate.total_seconds
    if isinstance(prediction, ServingPrediction):
        replicas = candidate.weighed_replicas or candidate.replicas or 1
        rate = replicas * prediction.capacity_requests_per_second
        seconds = 1.0 / rate if rate else None
    return round(SPEED_STEPS * math.log(seconds)) if seconds else 0


def shortage(candidate: Candidate) -> float:
    """Share of the replicas that its targets need and that it cannot have; 0 of a run."""
    needed = candidate.weighed_replicas
    return 1.0 - (candidate.replicas or 0) / needed if candidate.too_few and needed else 0.0


def precariousness(candidate: Candidate) -> int:
    """The more, the less right there is to its nodes: spot nodes are taken away."""
    return -LEAST_ASSURED.index(candidate.capacity_type)


def energy_of(candidate: Candidate) -> float:
    """Joules of the run, or per hour of a service; infinite where they are unknown."""
    return math.inf if candidate.energy_joules is None else candidate.energy_joules


SortKey = tuple[float, float, float, float, int, int, float, str]
"""Of a candidate: the least comes first."""


def by_objective(candidate: Candidate) -> SortKey:
    """Of equals, who has most of the replicas that it needs comes first, then who waits for no
    nodes, then whose nodes are the most assured, then who is faster, then who takes less energy;
    the name only tells what else is the same."""
    return (
        _by_value(candidate),
        cost_of(candidate),
        shortage(candidate),
        candidate.startup_seconds,
        precariousness(candidate),
        slowness(candidate),
        energy_of(candidate),
        candidate.pool,
    )


def _by_cost(candidate: Candidate, cheapest: float) -> tuple[bool, float, int, SortKey]:
    """Who breaks no whole domain first: it costs nobody what only gangs could pay for. That these
    come is not known, so it is paid for within bounds. Of runs that cost the same the fastest."""
    cost, order = cost_of(candidate), by_objective(candidate)
    spares = not candidate.broken_accelerators and cost <= cheapest * (1.0 + MOST_GIVEN_UP)
    if is_as_cheap(candidate, cheapest):
        return not spares, cheapest, slowness(candidate), order
    return not spares, cost, 0, order


def is_as_cheap(candidate: Candidate, cost: float) -> bool:
    """Whether it is a run that costs the same, or less."""
    is_run = candidate.total_seconds is not None
    return is_run and cost_of(candidate) <= as_cheap_as(cost) < math.inf
