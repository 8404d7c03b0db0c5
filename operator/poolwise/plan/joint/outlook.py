"""What an assignment means for everybody: the queue is walked once more behind its starts.

The optimiser maximises what starts now; whoever it leaves out waits for what it has taken. So its
answer counts only where the delay of all, those who wait included, is less by it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from poolwise.plan.joint.bids import Bid, Offer, weight_of_all
from poolwise.plan.joint.items import Taken
from poolwise.plan.joint.moves import Move
from poolwise.plan.joint.walk import Turn, Walk, cost_seconds

CLEAR_GAIN = 0.02
"""Of the delay of all. In replays of Gavel's mix nine in ten differences are below 1 %, either way,
and the queue's own answer ages better: it serves the shortest first."""


class Outlook(NamedTuple):
    """Less is better, the first first."""

    lost: int
    """Workloads of which nobody can tell when they start."""
    delay_seconds: float
    """Of all others, by weight; the load that they put on those who come later included."""

    def is_clearly_less(self, than: Outlook) -> bool:
        """Whether it is less by more than what predictions of a queue are good for."""
        if self.lost != than.lost:
            return self.lost < than.lost
        return self.delay_seconds < (1.0 - CLEAR_GAIN) * than.delay_seconds


def outlook(
    bids: Iterable[Bid], taken: Mapping[str, Taken], moves: Mapping[str, Move], walk: Walk
) -> Outlook:
    """When everybody starts once these have; ``walk`` is a fresh one, and used up by this."""
    known = list(bids)
    all_weight = weight_of_all(known)
    starting = [
        (each, each.offer_of(taken[each.workload.key].choice.option))
        for each in known
        if each.workload.key in taken
    ]
    for each, offer in starting:
        nodes = taken[each.workload.key].nodes
        walk.start(offer.option, nodes, offer.holds_for, each.workload.namespace)
    moved = [move for key, move in moves.items() if key in taken]
    for move in moved:
        walk.start(move.offer.option, taken[move.bid.workload.key].nodes, move.offer.holds_for, "")
    waiting = [each for each in known if each.workload.key not in taken]
    found = _summed(
        *(_delay_seconds(each, offer, 0.0, all_weight) for each, offer in starting),
        *(_turn_seconds(turn, walk.now, all_weight) for turn in walk.turns(waiting)),
    )
    gained = math.fsum(move.gain_seconds for move in moved)
    return found._replace(delay_seconds=found.delay_seconds - gained)


def outlook_of(turns: Sequence[Turn], now: float) -> Outlook:
    """When everybody starts as the queue was walked."""
    all_weight = weight_of_all(turn.bid for turn in turns)
    return _summed(*(_turn_seconds(turn, now, all_weight) for turn in turns))


def _summed(*delays_seconds: float) -> Outlook:
    told = [each for each in delays_seconds if math.isfinite(each)]
    return Outlook(len(delays_seconds) - len(told), math.fsum(told))


def _turn_seconds(turn: Turn, now: float, all_weight: float) -> float:
    best = turn.best
    return _delay_seconds(turn.bid, best.offer, best.starts - now, all_weight)


def _delay_seconds(bid: Bid, offer: Offer, wait_seconds: float, all_weight: float) -> float:
    return cost_seconds(bid, offer, wait_seconds, all_weight - bid.weight)
