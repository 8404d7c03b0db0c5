"""Counts of accelerators that a run may take in one pool, and which of them is best."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from poolwise.model.prediction import Interval
from poolwise.plan.candidates.supply import Interruptions
from poolwise.plan.candidates.training.divisions import divisors
from poolwise.plan.candidates.training.layouts import TrainingShape
from poolwise.plan.closeness import ANYWHERE, Wish
from poolwise.plan.decision import CountOffer
from poolwise.plan.ledger.capacity import Gang
from poolwise.plan.limits import as_cheap_as
from poolwise.plan.pool import Pool
from poolwise.plan.requests.request import Goal

STEPS_PER_DOUBLING = 4
"""Of numbers of nodes that are tried: 1 to 8, then 10, 12, 14, 16, 20, ..."""


@dataclass(frozen=True, slots=True)
class TrainingOffer:
    """One count on one pool with what the whole run would take."""

    count: int
    gang: Gang
    shape: TrainingShape
    total_seconds: float
    cost_per_hour: float | None
    energy_joules: float
    wish: Wish = ANYWHERE
    startup_seconds: float = 0.0
    """Until its nodes are there; they are paid for while they start."""
    interruptions: Interruptions | None = None
    """What spot nodes do to it; its total counts what is lost."""

    @property
    def elapsed_seconds(self) -> float:
        """Of the whole run, from now."""
        return self.startup_seconds + self.total_seconds

    @property
    def total_cost(self) -> float | None:
        """Of the whole run."""
        if self.cost_per_hour is None:
            return None
        return self.cost_per_hour * self.elapsed_seconds / 3600

    def objective(self, goal: Goal) -> float | None:
        """What the goal minimises."""
        if goal is Goal.TIME:
            return self.elapsed_seconds
        return self.total_cost if goal is Goal.COST else self.energy_joules

    def of_count(self, goal: Goal) -> CountOffer:
        """The offer as others see it."""
        step = self.shape.prediction.step_seconds
        steps = self.total_seconds / step.mid if step.mid else 0.0
        wait = self.startup_seconds
        seconds = Interval(self.elapsed_seconds, wait + step.low * steps, wait + step.high * steps)
        return CountOffer(
            self.count,
            self.shape.layout,
            seconds,
            self.cost_per_hour,
            self.objective(goal),
            self.wish,
        )


def counts_between(least: int, most: int, pool: Pool) -> Iterable[int]:
    """Counts worth a search: the ends, parts of a node, and whole nodes in steps of a quarter or
    less, so that a pool with a node more than divides well still offers what one less would; of
    nodes that run together or not at all only whole slices."""
    whole = pool.slice_accelerators
    unit = max(pool.accelerators_per_node, whole)
    least, most = pool.in_whole_slices(least), most // whole * whole
    parts = [d for d in divisors(unit) if least < d < most and d % whole == 0]
    wholes, count, step = [], 1, 1
    while count * unit < most:
        wholes.append(count * unit)
        count += step
        if count == STEPS_PER_DOUBLING * 2 * step:
            step *= 2
    return sorted({least, most, *parts, *(size for size in wholes if size > least)})


def preferred(
    offers: Sequence[TrainingOffer],
    every: Sequence[TrainingOffer],
    goal: Goal,
    marginal_efficiency: float,
) -> TrainingOffer:
    """The best of at least one: of all on Time, else of the cheapest, the fastest that yields.

    Where a pool is free all of them are the cheapest.

    :param every: those too that would be too late or have no room: a deadline that asks for more
        accelerators makes none of them as cheap that is not without it.
    """
    if goal is Goal.TIME:
        return _grown(offers, marginal_efficiency)
    known = [(value, each) for each in offers if (value := each.objective(goal)) is not None]
    if not known:
        return offers[0]
    least = min(value for each in every if (value := each.objective(goal)) is not None)
    bound = max(as_cheap_as(least), min(value for value, _ in known))
    return _grown([each for value, each in known if value <= bound], marginal_efficiency)


def _grown(offers: Sequence[TrainingOffer], marginal_efficiency: float) -> TrainingOffer:
    """The fastest count whose last accelerators still yield their share.

    The share is of what one accelerator of the smallest count yields; growth that yields less is
    skipped, and a later count must pay for all accelerators since the last that was taken.
    """
    taken = first = offers[0]
    alone = 1 / first.elapsed_seconds / first.count if first.elapsed_seconds else 0.0
    for offer in offers[1:]:
        if not (taken.elapsed_seconds and offer.elapsed_seconds):
            continue
        gained = 1 / offer.elapsed_seconds - 1 / taken.elapsed_seconds
        if gained >= marginal_efficiency * alone * (offer.count - taken.count):
            taken = offer
    return taken
