"""What the queue found, as items of the assignment: options that may start now, and their worth.

Worth is completions per second, the delay of others counted as its own (:meth:`Turn.value`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from poolwise.plan.joint.items import Assignment, Choice, Floor, Item, Taken
from poolwise.plan.joint.moves import Move
from poolwise.plan.joint.walk import Chance, Turn, cost_seconds


def item_of(turn: Turn, now: float, all_weight: float) -> Item:
    """What it may start as now without losing to a wait for something better.

    What it is worth counts the delay of all others, whatever their order: who has nobody behind
    him must not look the cheapest.
    """
    others = all_weight - turn.bid.weight
    waited = _worth_of_waiting(turn, others)
    workload = turn.bid.workload
    later = min((c.cost_seconds for c in turn.chances if c.nodes is None), default=math.inf)
    choices = tuple(
        Choice(
            chance.offer.option,
            turn.value(_at_once(turn, chance, others)) - waited,
            now + chance.offer.ends_within,
        )
        for chance in turn.chances
        if not chance.offer.option.is_blocked
        and not chance.is_spared
        and _at_once(turn, chance, turn.behind_weight).cost_seconds <= later
    )
    return Item(workload.key, workload.namespace, choices)


def _worth_of_waiting(turn: Turn, others_weight: float) -> float:
    """What a workload has anyway that the walk lets wait: a start is worth what it adds."""
    best = turn.best
    if best.nodes is not None or not math.isfinite(best.starts):
        return 0.0
    wait = best.cost_seconds - _at_once(turn, best, turn.behind_weight).cost_seconds
    at_once = _at_once(turn, best, others_weight)
    return turn.value(replace(at_once, cost_seconds=at_once.cost_seconds + wait))


def _at_once(turn: Turn, chance: Chance, others_weight: float) -> Chance:
    """The chance as it would be if it had room now."""
    cost = cost_seconds(turn.bid, chance.offer, 0.0, others_weight)
    return Chance(chance.offer, chance.starts, cost, chance.nodes)


def started(turns: Iterable[Turn], choices: Mapping[str, Sequence[Choice]]) -> Assignment:
    """What the walk starts, in terms of the items' own choices."""
    taken: dict[str, Taken] = {}
    for turn in turns:
        chance, key = turn.starting, turn.bid.workload.key
        if chance is not None:
            assert chance.nodes is not None, "what starts has nodes"
            option = chance.offer.option
            known = [each for each in choices.get(key, ()) if each.option is option]
            choice = known[0] if known else Choice(option, turn.value(chance))
            taken[key] = Taken(choice, chance.nodes)
    return Assignment(taken)


def moving_item(ways: Sequence[Move]) -> Item:
    """Worth what it adds to going on as it is; its namespace holds no more than before."""
    workload, weight = ways[0].bid.workload, ways[0].bid.weight
    choices = tuple(
        Choice(
            each.offer.option,
            weight**2 / (each.stay_seconds - each.gain_seconds) - weight**2 / each.stay_seconds,
        )
        for each in ways
    )
    return Item(workload.key, "", choices)


def with_moves(start: Assignment, moving: Sequence[Item], floor: Floor) -> Assignment:
    """The moves that find room beside what starts."""
    if not moving:
        return start
    rooms, taken = floor.rooms(), dict(start.taken)
    for each in taken.values():
        rooms.take(each.choice.option, each.nodes)
    for item in moving:
        for choice in item.choices:
            nodes = rooms.fit(choice.option) if item.key not in taken else None
            if nodes is not None:
                rooms.take(choice.option, nodes)
                taken[item.key] = Taken(choice, nodes)
    return Assignment(taken)
