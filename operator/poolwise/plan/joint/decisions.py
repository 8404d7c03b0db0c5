"""The pass told: a decision for each workload, and a price for each pool."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from poolwise.plan.joint.admission import Admission
from poolwise.plan.joint.bids import FREE, Bid, weight_of_all
from poolwise.plan.joint.items import Assignment, Taken
from poolwise.plan.joint.losses import Losses
from poolwise.plan.joint.moves import Move
from poolwise.plan.joint.outcome import Act, Decision, ShadowPrice
from poolwise.plan.joint.problem import Problem, Share, Workload
from poolwise.plan.joint.promotion import Walked
from poolwise.plan.joint.walk import EXTERNALITY, Turn
from poolwise.plan.joint.words import Teller
from poolwise.plan.wording import significant

DIGITS = 2
"""Of a price: it rests on predictions, and should not change while nothing else does."""


class Story:
    """Everything that one pass found."""

    def __init__(
        self,
        problem: Problem,
        shares: Mapping[str, Share],
        admissions: Mapping[str, Admission],
        queue: Walked,
        taken: Assignment,
        offered: Mapping[str, Move],
    ) -> None:
        turns = queue.turns
        self._problem, self._shares = problem, shares
        self._admissions, self._taken, self._moves = admissions, taken, offered
        self._turns = {turn.bid.workload.key: turn for turn in turns}
        self._losses = Losses((turn.bid for turn in turns), problem.rules.currency)
        self.prices = self._priced()
        """One per pool."""
        self._teller = Teller(problem, self._losses, self.prices, queue, taken.taken)

    def decisions(self) -> tuple[Decision, ...]:
        """One per workload, by key."""
        ordered = sorted(self._problem.workloads, key=lambda each: each.key)
        return tuple(self._decision(each) for each in ordered)

    def _decision(self, workload: Workload) -> Decision:
        taken = self._taken.taken.get(workload.key)
        if workload.running is not None:
            return self._running(workload, taken)
        turn = self._turns.get(workload.key)
        if turn is None:
            admission = self._admissions[workload.key]
            return Decision(workload.key, Act.REFUSE, admission.nearest, admission.refusal)
        if taken is None:
            return self._waiting(turn)
        option = taken.choice.option
        reason = self._teller.starts(turn, option)
        return Decision(
            workload.key, Act.START, option, reason, dict(taken.nodes), taken.choice.value,
            because=self._teller.why_not_best(turn, option),
        )  # fmt: skip

    def _priced(self) -> tuple[ShadowPrice, ...]:
        bids = [turn.bid for turn in self._turns.values() if not turn.bid.is_hopeless]
        waiting, worth = weight_of_all(bids), _worth_per_hour(bids)
        found = []
        for pool in self._problem.pools:
            share = self._shares.get(pool.name, FREE)
            delay = significant(EXTERNALITY * waiting * share.of_all, DIGITS)
            reason = self._losses.price(pool.name, delay, delay * worth, len(bids))
            found.append(ShadowPrice(pool.name, delay, delay * worth, reason))
        return tuple(found)

    def _waiting(self, turn: Turn) -> Decision:
        best, key = turn.best, turn.bid.workload.key
        starts = best.starts if self._problem.now < best.starts < math.inf else None
        return Decision(
            key, Act.WAIT, best.offer.option, self._teller.waits(turn, best), starts=starts,
            because=self._teller.why_not_now(turn, best),
        )  # fmt: skip

    def _running(self, workload: Workload, taken: Taken | None) -> Decision:
        running = workload.running
        assert running is not None, "only called for what runs"
        if taken is None:
            reason = self._teller.stays(workload)
            return Decision(workload.key, Act.STAY, running.option, reason, dict(running.nodes))
        reason = self._teller.moves(workload, self._moves[workload.key], taken.choice.option)
        return Decision(
            workload.key, Act.MOVE, taken.choice.option, reason, dict(taken.nodes),
            taken.choice.value,
        )  # fmt: skip


def _worth_per_hour(bids: Iterable[Bid]) -> float:
    """Of an hour of one waiting workload: what it would pay per hour where it pays least."""
    costs = [
        (each.weight, min(offer.option.cost_per_hour for offer in each.offers)) for each in bids
    ]
    weights = math.fsum(weight for weight, _ in costs)
    return math.fsum(weight * cost for weight, cost in costs) / weights if weights else 0.0
