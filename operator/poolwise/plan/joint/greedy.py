"""An assignment at once: pairs of item and choice in some order, each taken where it has room."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from poolwise.plan.joint.items import Assignment, Choice, Floor, Item, Taken

Pair = tuple[Item, Choice]


def greedy(items: Sequence[Item], floor: Floor) -> Assignment:
    """The best of a few orders: by value per accelerator, by value, by both."""
    pairs = [(item, choice) for item in items for choice in item.choices if choice.value > 0]
    orders = (_per_accelerator, _by_value, _per_root)
    answers = [packed(sorted(pairs, key=order), floor) for order in orders]
    return max(answers, key=lambda answer: answer.objective)


def packed(pairs: Iterable[Pair], floor: Floor) -> Assignment:
    """Every pair in turn that still has room."""
    rooms, left = floor.rooms(), dict(floor.limits)
    taken: dict[str, Taken] = {}
    for item, choice in pairs:
        wanted = choice.option.counted
        if item.key in taken or left.get(item.namespace, wanted) < wanted:
            continue
        nodes = rooms.fit(choice.option, choice.until)
        if nodes is None:
            continue
        rooms.take(choice.option, nodes)
        taken[item.key] = Taken(choice, nodes)
        if item.namespace in left:
            left[item.namespace] -= wanted
    return Assignment(taken)


def _per_accelerator(pair: Pair) -> tuple[float, str, str]:
    return _order(pair, pair[1].value / pair[1].option.accelerators)


def _by_value(pair: Pair) -> tuple[float, str, str]:
    return _order(pair, pair[1].value)


def _per_root(pair: Pair) -> tuple[float, str, str]:
    return _order(pair, pair[1].value / math.sqrt(pair[1].option.accelerators))


def _order(pair: Pair, worth: float) -> tuple[float, str, str]:
    return -worth, pair[0].key, pair[1].option.pool
