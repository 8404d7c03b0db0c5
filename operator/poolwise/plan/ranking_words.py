"""Why a candidate won or lost, in one sentence with the numbers that decided."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from poolwise.plan.candidates.reasons import Verdict
from poolwise.plan.decision import Candidate
from poolwise.plan.ranking import Ranking, cost_of
from poolwise.plan.requests.request import Goal
from poolwise.plan.wording import duration, money, percent, three_digits

JOULES_PER_KILOWATT_HOUR = 3.6e6

_SUPERLATIVE = {Goal.TIME: "fastest", Goal.COST: "cheapest", Goal.ENERGY: "least energy"}


def judged(
    candidates: Sequence[Candidate], ranking: Ranking, goal: Goal, currency: str
) -> tuple[Candidate, ...]:
    """All candidates in their order, the winner marked and each feasible one with its reason."""
    words = _Words(ranking, goal, currency)
    return tuple(words.of(each) for each in candidates)


class _Words:
    def __init__(self, ranking: Ranking, goal: Goal, currency: str) -> None:
        self._ranking = ranking
        self._goal = goal
        self._currency = currency

    def of(self, candidate: Candidate) -> Candidate:
        if candidate is self._ranking.winner:
            told = f"{self._why_it_won()}{_remark(candidate)}"
            return replace(candidate, chosen=True, reason=told, reason_code=Verdict.CHOSEN)
        if candidate in self._ranking.ordered and candidate.feasible:
            return replace(candidate, reason=self._why_it_lost(candidate))
        return candidate

    def _why_it_won(self) -> str:
        ranking, winner = self._ranking, self._ranking.winner
        others = [each for each in ranking.ordered if each is not winner]
        best = ranking.ordered[0]
        if not others:
            return f"the only pool that can take it now: {self._measure(winner)}"
        if winner is best:
            told = f"{_SUPERLATIVE[self._goal]}: {self._measure(winner)}"
            level = " (no sure difference)" if others[0] in ranking.level else ""
            return f"{told}; next is {others[0].pool} with {self._measure(others[0])}{level}"
        if ranking.stays:
            told = f"stays where it runs: {self._measure(winner)}"
            return f"{told}; {best.pool} would take {self._measure(best)}"
        told = f"{self._measure(winner)} for {self._price(winner)}"
        if winner in ranking.level:
            level = f"{best.pool} ({self._measure(best)})"
            return f"level with {level} within the error of prediction, and cheaper: {told}"
        return f"{told}; {best.pool} would be {self._trade(best)}"

    def _why_it_lost(self, candidate: Candidate) -> str:
        ranking, winner = self._ranking, self._ranking.winner
        told = self._measure(candidate)
        mine, best = candidate.objective_value, winner.objective_value
        if mine is None or not best:
            return told
        if mine > best:
            return f"{told}, {_more(mine / best)} {winner.pool}"
        if ranking.stays:
            return f"{told}, and moving there would restart it"
        if candidate in ranking.level and winner in ranking.level:
            prices = f"{self._price(candidate)} against {self._price(winner)}"
            return f"{told} against {self._measure(winner)} is no sure difference, for {prices}"
        return f"{told}: {self._trade(candidate)}"

    def _trade(self, candidate: Candidate) -> str:
        """What the speed of a candidate would cost, against the winner."""
        winner = self._ranking.winner
        speed = (winner.objective_value or 0.0) / (candidate.objective_value or math.inf)
        cost = cost_of(candidate) / cost_of(winner) if cost_of(winner) else math.inf
        return (
            f"{three_digits(speed)} times as fast for {three_digits(cost)} times the cost"
            f" ({self._price(candidate)} against {self._price(winner)})"
        )

    def _measure(self, candidate: Candidate) -> str:
        """The objective with its unit."""
        value, is_run = candidate.objective_value, candidate.total_seconds is not None
        if value is None:
            return "at an unknown price"
        if self._goal is Goal.COST:
            return money(value, self._currency) + ("" if is_run else " per hour")
        if self._goal is Goal.ENERGY:
            kilowatt_hours = three_digits(value / JOULES_PER_KILOWATT_HOUR)
            return f"{kilowatt_hours} kWh" + ("" if is_run else " per hour")
        return duration(value) + ("" if is_run else " per request")

    def _price(self, candidate: Candidate) -> str:
        cost = cost_of(candidate)
        if math.isinf(cost):
            return "no known price"
        per_hour = "" if candidate.total_cost is not None else " per hour"
        return f"{money(cost, self._currency)}{per_hour}"


def _more(ratio: float) -> str:
    """How much more than another, which is named next."""
    return f"{percent(ratio - 1)} more than" if ratio < 2 else f"{three_digits(ratio)} times"


def _remark(candidate: Candidate) -> str:
    """What the assessment had to say of a feasible candidate."""
    return f"; {candidate.reason}" if candidate.reason else ""
