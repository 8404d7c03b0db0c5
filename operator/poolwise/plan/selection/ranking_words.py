"""Why a candidate won or lost, in one sentence with the numbers that decided."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from poolwise.model.hardware import Resource
from poolwise.plan.candidates.exclusions import SET_PRICE, UNPRICED
from poolwise.plan.candidates.reasons import Verdict
from poolwise.plan.decision import Candidate
from poolwise.plan.ledger.growth import startup_words
from poolwise.plan.records.meter import JOULES_PER_KILOWATT_HOUR
from poolwise.plan.requests.request import Goal
from poolwise.plan.selection.ranking import (
    Difference,
    Ranking,
    by_objective,
    cost_of,
    energy_of,
    is_as_cheap,
    most_cost,
    precariousness,
    shortage,
    slowness,
    stands_idle,
)
from poolwise.plan.wording import duration, measured, money, percent, plural, three_digits

HARDLY = 5e-5
"""Relative difference that two decimals of a per cent do not show."""

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
            told = f"{self._why_it_won()}{_wait(candidate)}{_remark(candidate)}"
            told += _measured(candidate)
            return replace(candidate, chosen=True, reason=told, reason_code=Verdict.CHOSEN)
        if candidate in self._ranking.ordered and candidate.feasible:
            told = f"{self._why_it_lost(candidate)}{_wait(candidate)}{_measured(candidate)}"
            return replace(candidate, reason=told)
        return candidate

    def _why_it_won(self) -> str:
        ranking, winner = self._ranking, self._ranking.winner
        others = [each for each in ranking.ordered if each is not winner]
        best = ranking.ordered[0]
        if ranking.because:
            return f"{self._deal(winner)}; {ranking.because}"
        if not others:
            return f"the only pool that can take it now: {self._measure(winner)}"
        if others[0].too_few and not winner.too_few:
            return f"the only pool that can meet the targets: {self._measure(winner)}"
        if winner is best:
            is_known = winner.objective_value is not None
            best_of = f"{_SUPERLATIVE[self._goal]}: " if is_known else ""
            return f"{best_of}{self._measure(winner)}; {self._next(others[0])}"
        if ranking.stays:
            told = f"stays where it runs: {self._measure(winner)}"
            return f"{told}; {best.pool} would take {self._measure(best)}"
        told = self._deal(winner)
        if winner in ranking.level and not ranking.is_for_idleness:
            level = f"{best.pool} ({self._measure(best)}; {_doubt(winner, best)})"
            return f"level with {level}, {_why_preferred(winner, best)}: {told}"
        return f"{told}; {best.pool} would be {self._trade(best)}"

    def _next(self, second: Candidate) -> str:
        """The runner-up, against a winner that is first by the objective."""
        if self._is_as_good(second):
            return f"the same as {second.pool}, {_edge(self._ranking.winner, second)[0]}"
        if second.objective_value is None:
            return "no other pool has a price to compare it with"
        told, own = self._measure(second), self._measure(self._ranking.winner)
        is_tie = told == own and self._goal is not Goal.COST
        prices = f", for {self._prices(second)}" if is_tie else ""
        return f"next is {second.pool} with {told}{self._in_doubt(second)}{prices}"

    def _why_it_lost(self, candidate: Candidate) -> str:
        ranking, winner = self._ranking, self._ranking.winner
        told = self._measure(candidate)
        mine, best = candidate.objective_value, winner.objective_value
        if candidate.too_few and not winner.too_few:
            return f"{told}, which it cannot have: {candidate.too_few}"
        if self._is_as_good(candidate):
            return f"{told}, the same as {winner.pool}, {self._why_not_the_same(candidate)}"
        if mine is None:
            return candidate.price_problem or f"{UNPRICED}: {SET_PRICE}"
        if not best:
            return told
        if mine > best:
            return f"{told}, {_more(mine / best)} {winner.pool}{self._in_doubt(candidate)}"
        if ranking.stays:
            return f"{told}, and moving there would restart it"
        if ranking.because and self._goal is not Goal.TIME:
            prices = "" if self._goal is Goal.COST else f", for {self._prices(candidate)}"
            against = f"{told} against {self._measure(winner)}{self._in_doubt(candidate)}"
            return f"{against}{prices}, and left to other workloads"
        is_level = candidate in ranking.level and winner in ranking.level
        if is_level and not ranking.is_for_idleness:
            level = f"{told} against {self._measure(winner)}{self._in_doubt(candidate)}"
            if self._goal is Goal.COST:
                return f"{level}{_slower(candidate, winner)}"
            return f"{level}, for {self._prices(candidate)}"
        return f"{told}: {self._trade(candidate)}"

    def _why_not_the_same(self, candidate: Candidate) -> str:
        """What decided against one that is as good as the winner, and may come before it."""
        ranking, winner = self._ranking, self._ranking.winner
        is_before = by_objective(candidate) < by_objective(winner)
        if is_before and ranking.stays:
            return "where it runs"
        if is_before and ranking.because:
            return "and left to other workloads"
        return _edge(winner, candidate)[1]

    def _in_doubt(self, candidate: Candidate) -> str:
        """That the difference to the winner is none to rely on, where it is so."""
        winner = self._ranking.winner
        found = Difference.of(candidate, winner)
        is_in_doubt = found.apart > HARDLY and found.is_level
        return f" ({_doubt(candidate, winner)})" if is_in_doubt else ""

    def _is_as_good(self, candidate: Candidate) -> bool:
        """Whether neither the objective, the cost nor a wait tells it from the winner."""
        winner = self._ranking.winner
        same_value = candidate.objective_value == winner.objective_value
        same_wait = candidate.startup_seconds == winner.startup_seconds
        return same_value and same_wait and cost_of(candidate) == cost_of(winner)

    def _trade(self, candidate: Candidate) -> str:
        """What the speed of a candidate would cost, against the winner."""
        winner = self._ranking.winner
        speed = (winner.objective_value or 0.0) / (candidate.objective_value or math.inf)
        mine, best = cost_of(candidate), cost_of(winner)
        times = three_digits(speed)
        is_faster, prices = times != three_digits(1.0), self._prices(candidate)
        faster = f"{times} times as fast" if is_faster else "hardly faster"
        if math.isinf(mine) and math.isinf(best):
            return f"{faster}{_wait_for_data(candidate)}, and no price of either is known"
        if math.isinf(mine) or math.isinf(best) or not best:
            return f"{faster} for {prices}{_wait_for_data(candidate)}"
        told = f"{faster} for {three_digits(mine / best)} times the cost ({prices})"
        told += _wait_for_data(candidate)
        if not (self._ranking.is_for_idleness and stands_idle(candidate)):
            return told
        if not is_faster:
            return told
        most = three_digits(most_cost(speed))
        return f"{told}, which makes such speed worth {most} times the cost at most"

    def _prices(self, candidate: Candidate) -> str:
        mine, best = self._price(candidate), self._price(self._ranking.winner)
        return f"{mine} against {best}" if mine != best else f"the same {mine}"

    def _measure(self, candidate: Candidate) -> str:
        """The objective with its unit."""
        value, is_run = candidate.objective_value, candidate.total_seconds is not None
        if value is None:
            return candidate.price_problem or "at an unknown price"
        if self._goal is Goal.COST:
            told = money(value, self._currency) + ("" if is_run else " per hour")
            return told + _weighed(candidate)
        if self._goal is Goal.ENERGY:
            amount = three_digits(value / JOULES_PER_KILOWATT_HOUR)
            return f"{amount} kWh" if is_run else f"{amount} kW{_weighed(candidate)}"
        return duration(value) + ("" if is_run else " per request")

    def _deal(self, candidate: Candidate) -> str:
        """The objective, and what it costs where that is another thing."""
        measure = self._measure(candidate)
        return measure if self._goal is Goal.COST else f"{measure} for {self._price(candidate)}"

    def _price(self, candidate: Candidate) -> str:
        cost = cost_of(candidate)
        if math.isinf(cost):
            return "no comparable price" if candidate.price_problem else "no known price"
        is_run = candidate.total_cost is not None
        per_hour = "" if is_run else f" per hour{_weighed(candidate)}"
        return f"{money(cost, self._currency)}{per_hour}"


def _edge(winner: Candidate, other: Candidate) -> tuple[str, str]:
    """What decides between pools that are else as good: of the winner, and of the other."""
    if other.broken_accelerators > 0 == winner.broken_accelerators:
        return "and breaks no whole domain", "which breaks no whole domain"
    if shortage(winner) != shortage(other):
        more = "more of the replicas that it needs"
        return f"and has room for {more}", f"which has room for {more}"
    if precariousness(winner) != precariousness(other):
        return f"which is {other.capacity_type}", f"which is {winner.capacity_type}"
    if slowness(winner) != slowness(other):
        is_service = other.total_seconds is None
        serves = ("and serves more", "which serves more")
        return serves if is_service else ("and faster", "which is faster")
    if energy_of(winner) != energy_of(other):
        return "and takes less energy", "which takes less energy"
    return "and first by name", "which comes first by name"


def _why_preferred(winner: Candidate, best: Candidate) -> str:
    """What speaks for a winner that is level with the best one."""
    if best.broken_accelerators > 0 == winner.broken_accelerators:
        return "which would break a whole domain"
    if math.isinf(cost_of(best)):
        return "whose price is not known"
    if slowness(winner) < slowness(best) and is_as_cheap(winner, cost_of(best)):
        times = (best.total_seconds or math.inf) / (winner.total_seconds or math.inf)
        return f"as cheap, and {three_digits(times)} times as fast"
    return "and cheaper"


def _slower(candidate: Candidate, winner: Candidate) -> str:
    """How long runs take that cost the same, where that decides."""
    if slowness(candidate) <= slowness(winner) or not is_as_cheap(winner, cost_of(candidate)):
        return ""
    mine, best = (duration(each.total_seconds or 0.0) for each in (candidate, winner))
    return f", and takes {mine} against {best}"


def _weighed(candidate: Candidate) -> str:
    """For how many replicas, where that is not the number that it gets at first."""
    weighed, held = candidate.weighed_replicas, candidate.replicas
    if weighed == held:
        return ""
    load = f" {candidate.assumed_load}" if candidate.assumed_load else ""
    return f" for the {plural(weighed or 0, 'replica')} that it needs{load}"


def _doubt(first: Candidate, second: Candidate) -> str:
    """``not significant: 3.1 % apart, ±6.2 %``."""
    found = Difference.of(first, second)
    return f"not significant: {percent(found.apart)} apart, ±{percent(found.margin)}"


def _more(ratio: float) -> str:
    """How much more than another, which is named next."""
    if ratio - 1 < HARDLY:
        return "hardly more than"
    return f"{percent(ratio - 1)} more than" if ratio < 2 else f"{three_digits(ratio)} times"


def _wait_for_data(candidate: Candidate) -> str:
    """That its accelerators stand idle, and for what."""
    if candidate.bottleneck is None or not stands_idle(candidate):
        return ""
    is_input = candidate.bottleneck.resource is Resource.INPUT
    return f", and its accelerators would wait for {'input' if is_input else 'the host'}"


def _wait(candidate: Candidate) -> str:
    """Why it could not run at once, where it has to wait for nodes."""
    seconds = candidate.startup_seconds
    return f"; {startup_words(seconds)}" if seconds else ""


def _remark(candidate: Candidate) -> str:
    """What the assessment had to say of a feasible candidate."""
    return f"; {candidate.reason}" if candidate.reason else ""


def _measured(candidate: Candidate) -> str:
    """What its figures depend on beside the model."""
    told = candidate.prediction.measured if candidate.prediction else {}
    phrases = (
        measured(phase, each.ratio, each.samples, None if each.elsewhere else candidate.pool)
        for phase, each in sorted(told.items())
    )
    return "".join(f"; {each}" for each in phrases)
