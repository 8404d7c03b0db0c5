"""Who waits goes first in its tier where all lose clearly less by it.

The queue serves the shortest by weight first, which is best as long as what starts fills the pools.
Gangs come in sizes: of 24 accelerators two runs of 8 leave 8 idle beside a gang of 16 that waits
for both, and one of them beside the gang leaves none. So the queue is walked once more with the
gang first, and that is how it goes where the outlook (:mod:`.outlook`) is clearly better.

Two kinds of its tier lose nothing by it, and tiers before are served before. Who has waited longer:
whose waiting counts for more by the outlook's own measure, five hours where weights double in a
week; so one is passed over by few, and in the end by nobody. And who is far shorter: the outlook
knows those who wait, and a long run that starts early is in the way of those who come meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from poolwise.plan.joint.bids import LEVEL, Bid, Tier
from poolwise.plan.joint.outlook import CLEAR_GAIN, Outlook, outlook_of
from poolwise.plan.joint.rooms import Hold, Rooms
from poolwise.plan.joint.walk import Turn, Walk, cost_seconds
from poolwise.plan.wording import percent, plural

MOST_TRIED = 4
"""In one pass, the oldest first: each takes one more walk through the queue."""
MOST_TIMES = 2.0
"""As long by weight as one that pays for it. Without a limit, two starts of runs of 500 h before
such of 20 h made one of ten replays of Gavel's mix at a load of 0.95 take 13 % longer."""
MOST_TURNS = 400
"""In all these walks: where hundreds wait, one start is next to nothing of the delay of all."""


@dataclass(frozen=True, slots=True)
class Promotion:
    """One that goes first in its tier."""

    key: str
    passed: tuple[str, ...]
    """Who would have started, and waits for it."""
    before: Outlook
    after: Outlook

    @property
    def reason(self) -> str:
        """Clause: what all gain by it."""
        found = self.before.lost - self.after.lost
        if found > 0:
            return f"so that {plural(found, 'workload')} more can start at all"
        gain = 1.0 - self.after.delay_seconds / self.before.delay_seconds
        return f"which costs all together {percent(gain)} less time"


@dataclass(frozen=True, slots=True)
class Walked:
    """The queue once everybody had a turn."""

    bids: Sequence[Bid]
    turns: Sequence[Turn]
    holds: Mapping[str, tuple[Hold, ...]]
    """By pool: what is kept for gangs that wait."""
    promotions: tuple[Promotion, ...] = ()

    @staticmethod
    def by(walk: Walk, bids: Sequence[Bid]) -> Walked:
        """Uses up the walk."""
        turns = walk.turns(bids)
        return Walked(bids, turns, {pool: tuple(each) for pool, each in walk.holds.items()})

    def starts(self, key: str) -> bool:
        """Whether a workload starts now."""
        return any(each.bid.workload.key == key and each.starting for each in self.turns)


def promoted(queue: Walked, walk: Callable[[], Walk], rooms: Rooms) -> Walked:
    """The queue once nobody of those that are tried should go first any more.

    :param walk: makes a fresh one.
    :param rooms: what is free before anybody starts.
    """
    for key in _tried(queue.turns, rooms):
        if not queue.starts(key):
            queue = _with_first(key, queue, walk())
    return queue


def _with_first(key: str, queue: Walked, walk: Walk) -> Walked:
    """The queue with this one first in its tier where that is better; else as it was."""
    after = Walked.by(walk, [_first(each, key) for each in queue.bids])
    found = _judged(key, queue.turns, after.turns, walk.now)
    return replace(after, promotions=(*queue.promotions, found)) if found else queue


def _first(bid: Bid, key: str) -> Bid:
    return replace(bid, is_promoted=True) if bid.workload.key == key else bid


def _tried(turns: Sequence[Turn], rooms: Rooms) -> list[str]:
    """Who waits behind one of its tier that starts and may pay for it, and has room now."""
    most = min(MOST_TRIED, MOST_TURNS // len(turns)) if turns else 0
    if not most:
        return []
    starting: dict[Tier, list[Bid]] = {}
    found: list[Bid] = []
    for turn in turns:
        bid = turn.bid
        if turn.starting is not None:
            starting.setdefault(bid.tier, []).append(bid)
        elif not all(_keeps(each, bid) for each in starting.get(bid.tier, ())):
            found += [bid] if _has_room(bid, rooms) else []
    found.sort(key=lambda bid: (bid.tier, bid.workload.created, bid.workload.key))
    return [bid.workload.key for bid in found[:most]]


def _has_room(bid: Bid, rooms: Rooms) -> bool:
    options = (each.option for each in bid.offers if not each.option.is_blocked)
    return any(rooms.fit(option) is not None for option in options)


def _judged(
    key: str, before: Sequence[Turn], after: Sequence[Turn], now: float
) -> Promotion | None:
    """What it means that this one goes first; None where it should not."""
    was, turns = _by_key(before), _by_key(after)
    mine = turns[key]
    if mine.starting is None or any(_losses(mine.bid, was, turns, now)):
        return None
    outlooks = outlook_of(before, now), outlook_of(after, now)
    if not outlooks[1].is_clearly_less(outlooks[0]):
        return None
    passed = (each for each, turn in was.items() if turn.starting and not turns[each].starting)
    return Promotion(key, tuple(passed), *outlooks)


def _losses(
    bid: Bid, was: Mapping[str, Turn], turns: Mapping[str, Turn], now: float
) -> Iterator[bool]:
    """Of each of its tier that keeps its place: whether it would start later or be slower."""
    for key, turn in was.items():
        if turn.bid.tier == bid.tier and _keeps(turn.bid, bid):
            most = _own_seconds(turn, now) * (1.0 + LEVEL)
            yield _own_seconds(turns[key], now) > most


def _keeps(bid: Bid, before: Bid) -> bool:
    """Whether it must not pay for one that would go before: it waits longer, or is far shorter."""
    has_waited_longer = bid.weight > before.weight * (1.0 + CLEAR_GAIN)
    return has_waited_longer or MOST_TIMES * bid.per_weight < before.per_weight


def _own_seconds(turn: Turn, now: float) -> float:
    return cost_seconds(turn.bid, turn.best.offer, turn.best.starts - now, 0.0)


def _by_key(turns: Sequence[Turn]) -> dict[str, Turn]:
    return {turn.bid.workload.key: turn for turn in turns}
