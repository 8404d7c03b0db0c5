"""What starts takes the best that has room, once nobody is left waiting.

Prices keep scarce pools for those who need them, and count what others would wait. Where all start
at once nobody waits, and a pool that still has room was not scarce after all: the prices are those
of a relaxation that shares work out in fractions, and of a queue that was not there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import itemgetter

from poolwise.plan.joint.bids import LEVEL, Bid, Offer
from poolwise.plan.joint.items import Assignment, Choice, Floor, Taken
from poolwise.plan.joint.rooms import Rooms
from poolwise.plan.joint.starts import Starts
from poolwise.plan.joint.walk import cost_seconds

MOST_ROUNDS = 4
"""Who leaves a pool makes room for another; most is done in the first round."""
LEAST_GAIN = 1e-9


def all_start(answer: Assignment, bids: Iterable[Bid]) -> bool:
    """Whether nobody is left waiting."""
    return all(each.workload.key in answer.taken for each in bids)


def settled(answer: Assignment, bids: Sequence[Bid], floor: Floor) -> Assignment:
    """The answer once nobody finds a better start with room; only for where all start."""
    by_key = {each.workload.key: each for each in bids}
    starts = Starts.of(answer, by_key, Rooms(floor.pools), floor)
    for _ in range(MOST_ROUNDS):
        moved = [_moved(bid, starts) for bid in _by_loss(bids, starts.taken)]
        if not any(moved):
            break
    return starts.answer(answer.solver)


def lacking(answer: Assignment, bids: Iterable[Bid]) -> set[str]:
    """Pools that somebody would rather have and that have no room for it: these are scarce. Who is
    level loses nothing."""
    return {
        offer.option.pool
        for bid in bids
        for offer in _better(bid, answer.taken[bid.workload.key], LEVEL)
    }


def _moved(bid: Bid, starts: Starts) -> bool:
    """Whether it was given a better start."""
    before = starts.give_back(bid.workload.key)
    after = _best(bid, before, starts) or before
    starts.take(bid.workload.key, after)
    return after is not before


def _best(bid: Bid, before: Taken, starts: Starts) -> Taken | None:
    """The best start that has room and is better than the one before."""
    for offer in _better(bid, before, LEAST_GAIN):
        choice = Choice(offer.option, bid.weight**2 / _cost_seconds(bid, offer))
        found = None if offer.option.is_blocked else starts.fit(bid.workload.key, choice)
        if found is not None:
            return found
    return None


def _better(bid: Bid, before: Taken, gain: float) -> Iterator[Offer]:
    """Offers that cost the workload itself less by such a share, the best first."""
    least = _cost_seconds(bid, bid.offer_of(before.choice.option)) * (1.0 - gain)
    offers = [(_cost_seconds(bid, each), each) for each in bid.offers]
    better = [each for each in offers if 0.0 < each[0] < least]
    for _, offer in sorted(better, key=lambda each: (each[0], each[1].option.pool)):
        yield offer


def _by_loss(bids: Iterable[Bid], taken: Mapping[str, Taken]) -> list[Bid]:
    """Who loses anything where it is: by priority, then who loses most."""
    losing = []
    for bid in bids:
        least = min(_cost_seconds(bid, each) for each in bid.offers)
        mine = _cost_seconds(bid, bid.offer_of(taken[bid.workload.key].choice.option))
        if 0.0 < least < mine:
            losing.append((-bid.workload.priority, -mine / least, bid.workload.key, bid))
    return [bid for *_, bid in sorted(losing, key=itemgetter(0, 1, 2))]


def _cost_seconds(bid: Bid, offer: Offer) -> float:
    """Its own alone: nobody waits for it."""
    return cost_seconds(bid, offer, 0.0, 0.0)
