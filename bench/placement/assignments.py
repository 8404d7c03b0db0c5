"""The planner's answers to the small instances of :mod:`.milp`, greedy and optimised."""

from __future__ import annotations

import math
from dataclasses import dataclass

from bench.placement import milp
from poolwise.plan.joint.assignment import assign
from poolwise.plan.joint.items import Assignment

TOLERANCE = 1e-6


@dataclass(frozen=True, slots=True)
class Score:
    """Over all instances."""

    instances: int
    within_2_percent: int
    """Instances in which the optimiser's answer is worth at least 98 % of the best."""
    greedy_within_2_percent: int
    worst: float
    """Least share of the best that the optimiser's answer is worth."""
    relaxed_gap: float
    """Mean share by which the linear relaxation (U1) exceeds the best (U2)."""


def score(instances: int = milp.INSTANCES) -> Score:
    """AssertionError where an answer breaks a rule, or is worth more than the best one."""
    shares, greedy_shares, gaps = [], [], []
    for seed in range(instances):
        given = milp.instance(seed)
        best, relaxed = milp.exact(given), milp.exact(given, is_whole=False)
        found = _worth(given, assign(given.items, given.pools))
        greedy = _worth(given, assign(given.items, given.pools, optimise=False))
        scale = TOLERANCE * max(relaxed, 1.0)
        assert greedy <= found + scale <= best + 2 * scale <= relaxed + 3 * scale, f"seed {seed}"
        shares.append(found / best if best else 1.0)
        greedy_shares.append(greedy / best if best else 1.0)
        gaps.append(relaxed / best - 1.0 if best else 0.0)
    return Score(
        instances,
        sum(share >= 1.0 - milp.WITHIN for share in shares),
        sum(share >= 1.0 - milp.WITHIN for share in greedy_shares),
        min(shares),
        sum(gaps) / len(gaps),
    )


def _worth(given: milp.Instance, answer: Assignment) -> float:
    """The sum of the values of what was taken, once it is known to be allowed."""
    taken = [(each.choice.option, dict(each.nodes)) for each in answer.taken.values()]
    wrong = milp.overfilled(given, taken)
    assert wrong is None, wrong
    return math.fsum(each.choice.value for each in answer.taken.values())
