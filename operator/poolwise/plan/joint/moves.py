"""What runs and may be moved: only where the gain pays for the restart with a margin.

The gain is that of the cost which pending workloads are compared by (:mod:`.walk`): its own time,
and what its accelerators are worth to those who wait. So a run leaves a scarce pool for one where
it loses little. A move needs free room; what it gives up is free in the pass after it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from poolwise.plan.joint.bids import Bid, Offer, bid
from poolwise.plan.joint.problem import Option, Rules, Running, Workload
from poolwise.plan.joint.walk import cost_seconds

LEAST_GAIN = 0.05
"""Of what is left; so small a difference is within the error of any prediction."""


@dataclass(frozen=True, slots=True)
class Move:
    """One way to move a workload, worth its restart."""

    bid: Bid
    offer: Offer
    gain_seconds: float
    """Of the delay of all, the restart subtracted, by weight."""
    stay_seconds: float
    """What staying costs, by weight."""


def movable(workloads: Iterable[Workload], rules: Rules, now: float) -> Iterator[Workload]:
    """What may be moved now: settled, and allowed to."""
    for each in workloads:
        running = each.running
        if rules.may_move and running is not None and running.is_movable:
            has_end = running.option.seconds is not None
            if has_end and now - running.since >= rules.settle_seconds:
                yield each


def moves(
    workload: Workload, options: Iterable[Option], shares: Mapping[str, float],
    rules: Rules, now: float, behind_weight: float,
) -> list[Move]:  # fmt: skip
    """Ways to move it that gain enough, the best first."""
    running = workload.running
    assert running is not None, "only what runs is moved"
    elsewhere = [each for each in options if each.pool != running.option.pool]
    found = bid(workload, (running.option, *elsewhere), shares, workload.created, rules)
    stay, *others = found.offers
    cost = cost_seconds(found, stay, 0.0, behind_weight)
    all_moves = (
        Move(found, each, cost - _cost(found, each, running, behind_weight), cost)
        for each in others
    )
    return sorted((m for m in all_moves if _pays(m, running, rules)), key=lambda m: -m.gain_seconds)


def _cost(found: Bid, offer: Offer, running: Running, behind_weight: float) -> float:
    """The restart is lost time, and holds the new accelerators meanwhile."""
    lost = running.restart_seconds / offer.seconds if offer.seconds else 0.0
    loaded = replace(offer, load_seconds=offer.load_seconds * (1.0 + lost))
    return cost_seconds(found, loaded, running.restart_seconds, behind_weight)


def _pays(move: Move, running: Running, rules: Rules) -> bool:
    """The gain is net of one restart already: the margin asks for more."""
    more = (rules.move_margin - 1.0) * running.restart_seconds * move.bid.weight
    return move.gain_seconds > max(more, LEAST_GAIN * move.stay_seconds)
