"""One pool as a candidate for a training run: its best count and layout, or what is against it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from poolwise.model.correction import Phase
from poolwise.model.prediction import Interval, Memory, TrainingPrediction
from poolwise.model.ranges import own_spread
from poolwise.plan.candidates.exclusions import (
    Exclusion,
    excluded,
    exclusion,
    precision_remark,
    too_dear,
)
from poolwise.plan.candidates.reasons import Verdict
from poolwise.plan.candidates.situation import Situation
from poolwise.plan.candidates.smallest import memory_clause
from poolwise.plan.candidates.supply import interruptions
from poolwise.plan.candidates.training.answers import (
    TrainingAnswers,
    gang_of,
    training_answers,
)
from poolwise.plan.candidates.training.layouts import NoTrainingShape, TrainingShape
from poolwise.plan.candidates.training.offers import TrainingOffer, counts_between, preferred
from poolwise.plan.decision import Candidate
from poolwise.plan.pool import Pool
from poolwise.plan.requests.request import Goal, TrainingRequest
from poolwise.plan.wording import duration, plural


def training_candidate(request: TrainingRequest, pool: Pool, situation: Situation) -> Candidate:
    """The pool at its best shape, or the first reason against it."""
    against = exclusion(request, pool, situation.settings)
    if against:
        return excluded(pool, against)
    answers = training_answers(request, pool, situation)
    return _Assessment(request, pool, situation, answers).candidate()


MOST_TRIED = 1024
"""Accelerators up to which it is looked for a count that holds a run which finds no room."""


@dataclass(frozen=True, slots=True)
class _Assessment:
    request: TrainingRequest
    pool: Pool
    situation: Situation
    answers: TrainingAnswers

    def candidate(self) -> Candidate:
        most = sum(node.accelerators for node in self.pool.nodes)
        least = self.pool.in_whole_slices(self.request.least)
        if least > most:
            return self._too_small(least, most)
        counts = list(counts_between(least, min(self.request.most, most), self.pool))
        searches = {count: self.answers.shape(count) for count in counts}
        offers = [
            self._offer(count, found)
            for count, found in searches.items()
            if isinstance(found, TrainingShape)
        ]
        if not offers:
            return self._no_shape(max(counts), searches[max(counts)])
        allowed = [offer for offer in offers if self._limit_broken(offer) is None]
        if not allowed:
            return self._beyond_limits(offers)
        return self._best(allowed, offers)

    def _best(self, offers: list[TrainingOffer], every: list[TrainingOffer]) -> Candidate:
        """The best count that fits now, else the best one to wait for.

        :param every: those too that break a limit.
        """
        fitting = [offer for offer in offers if self._has_room(offer)]
        if fitting:
            offer = preferred(fitting, every, *self._taste)
            broken = self.situation.breaks(offer.gang, self.pool, offer.wish)
            remark = "; ".join(filter(None, (self._remark(offer), broken.words())))
            told = Exclusion(Verdict.LOST, remark)
            return self._described(offer, told, offers, broken.accelerators)
        possible = [offer for offer in offers if self._why_never(offer) is None]
        if not possible:
            offer = preferred(offers, every, *self._taste)
            never = self._why_never(offer)
            assert never is not None, "only asked when no count is possible"
            return self._described(offer, never)
        offer = preferred(possible, every, *self._taste)
        reason = self.situation.why_no_room(offer.gang, self.pool, offer.wish)
        told = Exclusion(Verdict.INSUFFICIENT_CAPACITY, reason)
        return replace(self._described(offer, told, offers), waits=True)

    def _remark(self, offer: TrainingOffer) -> str:
        assert self.pool.machine is not None, "pools without a machine are excluded"
        remark = precision_remark(self.request.work.precision, self.pool.machine.device)
        told = offer.interruptions.words() if offer.interruptions else ""
        rests_on = self.answers.measured.words()
        return "; ".join(filter(None, (remark, offer.wish.reason, told, rests_on)))

    @property
    def _taste(self) -> tuple[Goal, float]:
        return self.request.goal, self.situation.settings.marginal_efficiency

    def _has_room(self, offer: TrainingOffer) -> bool:
        return self.situation.has_room(offer.gang, self.pool, offer.wish)

    def _why_never(self, offer: TrainingOffer) -> Exclusion | None:
        return self.situation.why_never(offer.gang, self.pool, offer.wish)

    def _offer(self, count: int, shape: TrainingShape) -> TrainingOffer:
        work, gang = self.request.work, gang_of(count, self.request, self.pool)
        seconds = (work.steps or 0.0) * shape.prediction.step_seconds.mid
        lost = interruptions(
            self.pool, gang.pods, seconds, work.checkpoint_interval_seconds, self.situation.settings
        )
        seconds = lost.expected_seconds if lost else seconds
        price = self.pool.price
        share = count / max(self.pool.accelerators_per_node, 1)
        return TrainingOffer(
            count=count,
            gang=gang,
            shape=shape,
            total_seconds=seconds,
            cost_per_hour=price.per_node_hour * share if price else None,
            energy_joules=shape.prediction.power_watts * count * seconds,
            wish=(wish := self.answers.wish(shape.layout, gang)),
            startup_seconds=self.situation.startup_seconds(gang, self.pool, wish),
            interruptions=lost,
        )

    def _limit_broken(self, offer: TrainingOffer) -> Exclusion | None:
        request, currency = self.request, self.situation.settings.currency
        if offer.interruptions is not None and offer.interruptions.is_hopeless:
            return Exclusion(Verdict.TOO_INTERRUPTED, offer.interruptions.words())
        if request.deadline is not None:
            now = self.situation.now
            left = (request.deadline - now).total_seconds()
            if offer.elapsed_seconds > left:
                told = _late(offer.elapsed_seconds, request.deadline, now)
                shortfall = offer.elapsed_seconds / left if left > 0 else math.inf
                return Exclusion(Verdict.DEADLINE_MISSED, told, shortfall)
        return too_dear(self.pool, offer.total_cost, request.max_cost, "maxCost", currency)

    def _beyond_limits(self, offers: list[TrainingOffer]) -> Candidate:
        nearest = min(offers, key=lambda offer: offer.total_seconds)
        if all(self._broken_code(offer) == Verdict.TOO_EXPENSIVE for offer in offers):
            nearest = min(offers, key=lambda offer: offer.total_cost or 0.0)
        broken = self._limit_broken(nearest)
        assert broken is not None, "only called when every offer breaks a limit"
        return self._described(nearest, broken)

    def _broken_code(self, offer: TrainingOffer) -> str | None:
        broken = self._limit_broken(offer)
        return broken.reason_code if broken else None

    def _described(
        self,
        offer: TrainingOffer,
        told: Exclusion,
        offers: Iterable[TrainingOffer] = (),
        broken_accelerators: int = 0,
    ) -> Candidate:
        prediction, goal = offer.shape.prediction, self.request.goal
        return Candidate(
            pool=self.pool.name,
            accelerator=self.pool.accelerator,
            feasible=told.reason_code == Verdict.LOST,
            reason=told.reason,
            reason_code=told.reason_code,
            shortfall=told.shortfall,
            count=offer.count,
            layout=offer.shape.layout,
            prediction=prediction,
            bottleneck=self.answers.bottleneck(offer.shape.layout),
            cost_per_hour=offer.cost_per_hour,
            total_cost=offer.total_cost,
            total_seconds=offer.total_seconds,
            energy_joules=offer.energy_joules,
            lost_seconds=offer.interruptions.lost_seconds if offer.interruptions else None,
            wish=offer.wish,
            startup_seconds=offer.startup_seconds,
            broken_accelerators=broken_accelerators,
            capacity_type=self.pool.capacity_type,
            objective_value=offer.objective(goal),
            own_spread=_own_spread(prediction, goal),
            offers=tuple(each.of_count(goal) for each in offers),
        )

    def _too_small(self, least: int, most: int) -> Candidate:
        told = f"has {plural(most, 'accelerator')}, needs {least:,}"
        found = self.answers.shape(most) if most else None
        if isinstance(found, NoTrainingShape) and found.smallest is not None:
            need = f"{told}, and at {most} {self._memory_clause(found.smallest.memory)}"
            shortfall = max(least / most, _ratio(found.smallest.memory))
            too_large = Exclusion(Verdict.MEMORY_DOES_NOT_FIT, need, shortfall)
            return found.smallest.shown(self._infeasible(most, too_large))
        shortfall = least / most if most else math.inf
        return self._infeasible(most, Exclusion(Verdict.INSUFFICIENT_CAPACITY, told, shortfall))

    def _no_shape(self, count: int, found: TrainingShape | NoTrainingShape) -> Candidate:
        assert isinstance(found, NoTrainingShape), "only called when no count has a shape"
        if found.smallest is None:
            return self._infeasible(count, Exclusion(Verdict.SHAPE_DOES_NOT_FIT, found.problem))
        told = self._memory_clause(found.smallest.memory) + self._where_it_fits(count)
        too_large = Exclusion(Verdict.MEMORY_DOES_NOT_FIT, told, _ratio(found.smallest.memory))
        return found.smallest.shown(self._infeasible(count, too_large))

    def _where_it_fits(self, count: int) -> str:
        """Clause: the next count at which memory is enough, as far as that is looked for."""
        larger = (each for each in counts_between(count, MOST_TRIED, self.pool) if each > count)
        enough = next((each for each in larger if self.answers.has_room_on(each)), None)
        if enough is None:
            return ""
        most = sum(node.accelerators for node in self.pool.nodes)
        there = f", and the pool has {most:,}" if enough > most else ""
        return f"; {enough:,} together would hold it{there}"

    def _memory_clause(self, memory: Memory) -> str:
        return memory_clause(_at_most(memory), self.pool)

    def _infeasible(self, count: int, told: Exclusion) -> Candidate:
        return replace(excluded(self.pool, told), count=count)


def _own_spread(prediction: TrainingPrediction, goal: Goal) -> float:
    """Of the objective: energy is no surer than what the accelerator does in its time."""
    if prediction.own_spread is not None:
        return prediction.own_spread
    seconds = prediction.step_seconds
    if goal is Goal.ENERGY:
        seconds = Interval.around(seconds.mid, max(seconds.spread, prediction.fitted_spread))
    return own_spread(seconds, Phase.TRAINING, prediction.provenance)


def _at_most(memory: Memory) -> Memory:
    """With the need at the upper end of its range, which decides; the rest is reserve."""
    reserve = memory.reserve_bytes + memory.more_bytes
    return replace(memory, reserve_bytes=reserve, more_bytes=0.0)


def _ratio(memory: Memory) -> float:
    return memory.most_bytes / memory.usable_bytes if memory.usable_bytes > 0 else math.inf


def _late(total_seconds: float, deadline: datetime, now: datetime) -> str:
    """Told without the time that is left, or the sentence would change with every look."""
    moment = f"{deadline:%Y-%m-%d %H:%M} {deadline.tzname() or 'UTC'}"
    if deadline <= now:
        return f"would take {duration(total_seconds)}, and the deadline ({moment}) has passed"
    return f"would take {duration(total_seconds)}, longer than until the deadline ({moment})"
