"""Sentences of the joint planner: what decided, with its numbers."""

from __future__ import annotations

import math
from collections.abc import Container, Iterable

from poolwise.plan.joint.bids import LEVEL, Offer
from poolwise.plan.joint.losses import Losses
from poolwise.plan.joint.moves import Move
from poolwise.plan.joint.outcome import ShadowPrice
from poolwise.plan.joint.problem import Option, Problem, Workload
from poolwise.plan.joint.promotion import Walked
from poolwise.plan.joint.walk import Chance, Turn
from poolwise.plan.wording import are_free, duration, money, percent, plural

MOST_NAMED = 3
"""Of those who are passed over."""
ENDLESS = ", where the wait is of unknown length"


class Teller:
    """Tells one pass."""

    def __init__(
        self,
        problem: Problem,
        losses: Losses,
        prices: Iterable[ShadowPrice],
        queue: Walked,
        started: Container[str],
    ) -> None:
        self._problem, self._losses = problem, losses
        self._prices = {price.pool: price for price in prices}
        self._holds = queue.holds
        self._promotions = [each for each in queue.promotions if each.key in started]
        self._started = started
        self._places = {turn.bid.workload.key: place for place, turn in enumerate(queue.turns)}
        self._pools = {pool.name: pool for pool in problem.pools}
        self._holders = _largest_holders(problem.workloads)

    def starts(self, turn: Turn, option: Option) -> str:
        """Why here."""
        mine = turn.bid.offer_of(option)
        told = f"starts on {where(option)}{self._run(mine)}"
        because = self.why_not_best(turn, option)
        told += f": {because}" if because else self._second(turn, mine)
        return told + self._first(turn.bid.workload.key)

    def why_not_best(self, turn: Turn, option: Option) -> str:
        """Clause: what it loses on this option, and who needs the better one more."""
        best = turn.bid.best
        if best.option.pool == option.pool:
            return ""
        return self._left(turn, turn.bid.offer_of(option), best)

    def why_not_now(self, turn: Turn, chance: Chance) -> str:
        """Clause: why a workload waits though something is free; nothing where nothing is."""
        if chance.nodes is not None:
            return ""  # others took it in the end
        if chance.is_beyond_share:
            return f"namespace {turn.bid.workload.namespace} holds all of its share"
        for each in self._promotions:
            if turn.bid.workload.key in each.passed:
                return f"{each.key} goes first, {each.reason}"
        return self._spurned(turn, chance).removeprefix("; ") or self._kept(turn, chance)

    def _first(self, key: str) -> str:
        """Before whom it goes out of turn, and what that is worth."""
        for each in self._promotions:
            passed = [other for other in each.passed if other not in self._started]
            if each.key == key and passed:
                return f"; goes before {', '.join(passed[:MOST_NAMED])}, {each.reason}"
        return ""

    def _kept(self, turn: Turn, chance: Chance) -> str:
        """For whom the room is that it would need: gangs that had their turn before it."""
        option, mine = chance.offer.option, self._places[turn.bid.workload.key]
        holders = {each.key for each in self._holds.get(option.pool, ())}
        others = sorted(key for key in holders if self._places.get(key, mine) < mine)
        free = sum(max(node.free, 0) for node in self._pools[option.pool].nodes)
        if not others or free < option.accelerators:
            return ""
        return f"what is free is kept for {', '.join(others)}, which came first"

    def waits(self, turn: Turn, chance: Chance) -> str:
        """For what, until when, and behind whom."""
        option = chance.offer.option
        if chance.is_beyond_share:
            name = turn.bid.workload.namespace
            return f"waits for {where(option)}: namespace {name} holds all of its share"
        told = f"waits for {where(option)}: {self._missing(option)}{self._when(chance)}"
        if turn.ahead:
            told += f"; {plural(turn.ahead, 'workload')} ahead of it"
        return told + self._blocker(option) + self._spurned(turn, chance)

    def stays(self, workload: Workload) -> str:
        """What runs."""
        running = workload.running
        assert running is not None, "only what runs stays"
        ends = running.option.seconds
        until = f", ends in about {duration(ends.mid)}" if ends is not None else ""
        return f"runs on {where(running.option)}{until}"

    def moves(self, workload: Workload, move: Move, option: Option) -> str:
        """From where to where, and why it pays."""
        running = workload.running
        assert running is not None, "only what runs moves"
        restart = f"the {duration(running.restart_seconds)} that the restart loses"
        told = f"moves from {where(running.option)} to {where(option)}: "
        if move.meets_deadline:
            left, stay = move.bid.seconds_left, move.bid.offers[0]
            early_seconds = left - running.restart_seconds - move.offer.seconds
            told += f"on {stay.option.pool} it would miss its deadline by"
            told += f" {duration(stay.seconds - left)}, on {option.pool} it ends"
            told += f" {duration(early_seconds)} before it, {restart} included"
        else:
            gain = duration(move.gain_seconds / move.bid.weight)
            told += f"gains {gain} of its own and others' time beyond {restart}"
        return told + self._price(running.option.pool)

    def _run(self, offer: Offer) -> str:
        seconds = offer.option.seconds
        return f" for {duration(seconds.mid)}" if seconds is not None else ""

    def _second(self, turn: Turn, mine: Offer) -> str:
        loss = self._losses.of(mine.option.pool, turn.bid.workload.key)
        if loss is None:
            return ", the only pool for it"
        return f", where it loses least: {percent(max(loss.share, 0.0))} more on {loss.elsewhere}"

    def _left(self, turn: Turn, mine: Offer, best: Offer) -> str:
        """Why not where it would be best."""
        slower = mine.lateness_seconds / best.lateness_seconds - 1.0 if best.lateness_seconds else 0
        pool = best.option.pool
        chance = next(each for each in turn.chances if each.offer is best)
        is_level = slower < LEVEL
        told = f"level with {pool}" if is_level else f"loses {percent(slower)} against {pool}"
        wait = chance.starts - self._problem.now
        if chance.nodes is None and wait > 0:
            is_told = math.isfinite(wait)
            told += f", where it would wait about {duration(wait)}" if is_told else ENDLESS
        rival = self._losses.rival(pool, turn.bid.workload.key)
        if rival is not None and rival.share > slower:
            told += f"; {rival.key} would lose {percent(rival.share)} away from it"
        return told + self._price(pool)

    def _price(self, pool: str) -> str:
        price = self._prices.get(pool)
        if price is None or not price.delay:
            return ""
        if price.per_hour:
            worth = money(price.per_hour, self._problem.rules.currency)
            return f" ({pool} is scarce: {worth} per accelerator-hour)"
        delay = duration(price.delay * 3600)
        return f" ({pool} is scarce: an hour of it delays others by about {delay})"

    def _missing(self, option: Option) -> str:
        nodes = self._pools[option.pool].nodes
        size = option.accelerators_per_pod
        free = sum(max(node.free, 0) for node in nodes)
        if free < option.accelerators:
            return f"{free} free, needs {option.accelerators}"
        fitting = sum(1 for node in nodes if node.free >= size)
        within = f" in one {option.level}" if option.level else ""
        return (
            f"{are_free(free)}, but it needs {plural(option.pods, 'pod')} of {size}{within}, and"
            f" {plural(fitting, 'node')} would take one, minus what this pass gives to others"
        )

    def _when(self, chance: Chance) -> str:
        wait = chance.starts - self._problem.now
        if not 0 < wait < math.inf:
            return ", and it is not known when more will be free" if wait else ""
        return f", may start in about {duration(wait)}"

    def _blocker(self, option: Option) -> str:
        """Who holds most of the pool."""
        holder = self._holders.get(option.pool)
        if holder is None or holder.running is None:
            return ""
        held, ends = holder.running.option.accelerators, holder.running.option.seconds
        until = f", ends in about {duration(ends.mid)}" if ends is not None else ", has no end"
        return f"; largest holder: {holder.key} ({held}{until})"

    def _spurned(self, turn: Turn, chance: Chance) -> str:
        """What it might start on now and does not, since the wait is worth it."""
        now = [each for each in turn.chances if each.nodes is not None]
        mine = chance.offer
        if not now or not mine.lateness_seconds:
            return ""
        other = min(now, key=lambda each: each.cost_seconds).offer
        more = other.lateness_seconds / mine.lateness_seconds - 1.0
        what = f"{other.option.pool} is free"
        if other.option.pool == mine.option.pool:
            what = are_free(other.option.accelerators)
        if more <= 0:
            return f"; {what}, but worth more to others"
        return f"; {what}, but would take {percent(more)} longer"


def _largest_holders(workloads: Iterable[Workload]) -> dict[str, Workload]:
    """By pool: who runs there on most accelerators."""
    held = [(each.running.option, each) for each in workloads if each.running is not None]
    held.sort(key=lambda pair: (pair[0].accelerators, pair[1].key))
    return {option.pool: each for option, each in held}


def where(option: Option) -> str:
    """``8 of h100 (dp2 tp4)``."""
    shape = f" ({option.shape})" if option.shape else ""
    return f"{option.accelerators} of {option.pool}{shape}"
