"""Two that start in each other's better pool exchange them.

The queue serves one after the other, so that the first, who may be indifferent, takes the pool that
the second would need most. The integer programme sees that by itself; in a pass without it this
does. Who is of a tier before the other's loses nothing by it: tiers are strict. What an exchange
leaves free goes to who waits for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations

from poolwise.plan.joint.bids import LEVEL, Bid
from poolwise.plan.joint.items import Assignment, Choice, Floor, Item, Taken
from poolwise.plan.joint.starts import Starts

MOST_STARTS = 32
"""More starts in one pass have too many pairs; the optimiser is there for them."""
LEAST_GAIN = 1e-9
Choices = Mapping[str, tuple[Choice, ...]]
"""By workload."""


def exchanged(
    start: Assignment, items: Sequence[Item], bids: Mapping[str, Bid], floor: Floor
) -> Assignment:
    """The assignment once no two gain by an exchange of pools.

    :param items: in the order of the queue.
    :param bids: of all who start or wait, by workload.
    """
    choices = {item.key: item.choices for item in items}
    starts = Starts.of(start, bids, floor.rooms(), floor)
    if len(starts.taken) > MOST_STARTS or not _exchange(starts, choices):
        return start
    for _ in range(MOST_STARTS - 1):
        if not _exchange(starts, choices):
            break
    _fill(starts, items)
    return starts.answer(start.solver)


def _exchange(starts: Starts, choices: Choices) -> bool:
    """Makes the first exchange that gains; whether there was one."""
    for one, other in combinations(sorted(starts.taken), 2):
        for mine, theirs in _better(starts, one, other, choices):
            if _placed(starts, {one: mine, other: theirs}):
                return True
    return False


def _better(
    starts: Starts, one: str, other: str, choices: Choices
) -> Iterator[tuple[Choice, Choice]]:
    """Pairs of choices in each other's pool that are worth more together."""
    mine, theirs = starts.taken[one], starts.taken[other]
    here, there = mine.choice.option.pool, theirs.choice.option.pool
    if here == there:
        return
    before = mine.choice.value + theirs.choice.value
    back = _unharmed(starts, other, one, (c for c in choices[other] if c.option.pool == here))
    to = _unharmed(starts, one, other, (c for c in choices[one] if c.option.pool == there))
    for each in to:
        for answer in back:
            if each.value + answer.value > before * (1.0 + LEAST_GAIN):
                yield each, answer


def _unharmed(starts: Starts, key: str, other: str, choices: Iterable[Choice]) -> list[Choice]:
    """Those that harm nobody who is of a tier before the other's: worth no less, the delay of all
    counted, or no worse for itself."""
    bid, before = starts.bids[key], starts.taken[key].choice
    if bid.tier >= starts.bids[other].tier:
        return list(choices)
    most = bid.offer_of(before.option).lateness_seconds * (1.0 + LEVEL)
    return [
        each
        for each in choices
        if each.value >= before.value or bid.offer_of(each.option).lateness_seconds <= most
    ]


def _placed(starts: Starts, pair: Mapping[str, Choice]) -> bool:
    """Whether the pair has room at its new choices; nothing is changed where one has none."""
    before = {key: starts.give_back(key) for key in pair}
    for key, choice in pair.items():
        found = starts.fit(key, choice)
        if found is None:
            _restore(starts, before)
            return False
        starts.take(key, found)
    return True


def _restore(starts: Starts, before: Mapping[str, Taken]) -> None:
    for key in before.keys() & starts.taken.keys():
        starts.give_back(key)
    for key, each in before.items():
        starts.take(key, each)


def _fill(starts: Starts, items: Iterable[Item]) -> None:
    """Who waits in the order of the queue takes the best start that there is room for now."""
    for item in items:
        for choice in sorted(item.choices, key=_most_value_first):
            if item.key in starts.taken or choice.value <= 0:
                break
            found = starts.fit(item.key, choice)
            if found is not None:
                starts.take(item.key, found)


def _most_value_first(choice: Choice) -> tuple[float, str, int]:
    return -choice.value, choice.option.pool, choice.option.accelerators
