"""What runs and may be moved: only where the gain pays for the restart with a margin.

The gain is that of the cost which pending workloads are compared by (:mod:`.walk`): its own time,
and what its accelerators are worth to those who wait. So a run leaves a scarce pool for one where
it loses little, and a run that would miss its deadline where it is leaves for where it meets it. A
move needs free room; what it gives up is free in the pass after it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from poolwise.plan.joint.bids import Bid, Offer, bid
from poolwise.plan.joint.problem import Option, Rules, Running, Share, Workload
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
    meets_deadline: bool
    """Whether it would miss its deadline by staying."""


def movable(workloads: Iterable[Workload], rules: Rules, now: float) -> Iterator[Workload]:
    """What may be moved now: settled, and allowed to."""
    for each in workloads:
        running = each.running
        if rules.may_move and running is not None and running.is_movable:
            has_end = running.option.seconds is not None
            if has_end and now - running.since >= rules.settle_seconds:
                yield each


def moves(
    workload: Workload, options: Iterable[Option], shares: Mapping[str, Share],
    rules: Rules, now: float, behind_weight: float,
) -> list[Move]:  # fmt: skip
    """Ways to move it that gain enough, the best first."""
    running = workload.running
    assert running is not None, "only what runs is moved"
    elsewhere = [each for each in options if each.pool != running.option.pool]
    # Of the age of its creation: having waited long once does not make a restart cheaper.
    found = bid(workload, (running.option, *elsewhere), shares, workload.created, rules)
    left = math.inf if workload.deadline is None else workload.deadline - now
    ways = _Ways(replace(found, seconds_left=left), running, behind_weight)
    all_moves = (ways.to(each) for each in found.offers[1:])
    return sorted((m for m in all_moves if _pays(m, running, rules)), key=lambda m: -m.gain_seconds)


@dataclass(frozen=True, slots=True)
class _Ways:
    """From where it runs, which is the first offer of its bid."""

    bid: Bid
    running: Running
    behind_weight: float

    def to(self, offer: Offer) -> Move:
        """The restart is lost time, and holds the new accelerators meanwhile."""
        stay, left = self.bid.offers[0], self.bid.seconds_left
        restart_seconds = self.running.restart_seconds
        is_late, is_late_there = stay.seconds > left, restart_seconds + offer.seconds > left
        # Late in both places, the deadline tells them not apart.
        terms = replace(self.bid, seconds_left=math.inf) if is_late and is_late_there else self.bid
        lost = restart_seconds / offer.seconds if offer.seconds else 0.0
        loaded = replace(offer, load_seconds=offer.load_seconds * (1.0 + lost))
        cost = cost_seconds(terms, stay, 0.0, self.behind_weight)
        there = cost_seconds(terms, loaded, restart_seconds, self.behind_weight)
        return Move(terms, offer, cost - there, cost, is_late and not is_late_there)


def _pays(move: Move, running: Running, rules: Rules) -> bool:
    """The gain is net of one restart already: the margin asks for more."""
    more = (rules.move_margin - 1.0) * running.restart_seconds * move.bid.weight
    return move.gain_seconds > max(more, LEAST_GAIN * move.stay_seconds)
