"""Two that start in each other's better pool exchange them.

The queue serves one after the other, so that the first, who may be indifferent, takes the pool that
the second would need most. The integer programme sees that by itself; in a pass without it this
does.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations

from poolwise.plan.joint.items import Assignment, Choice, Floor, Item, Taken
from poolwise.plan.joint.rooms import Rooms

MOST_STARTS = 32
"""More starts in one pass have too many pairs; the optimiser is there for them."""
LEAST_GAIN = 1e-9


def exchanged(start: Assignment, items: Iterable[Item], floor: Floor) -> Assignment:
    """The assignment once no two gain by an exchange of pools."""
    choices = {item.key: item.choices for item in items}
    taken = dict(start.taken)
    rooms = floor.rooms()
    for each in taken.values():
        rooms.take(each.choice.option, each.nodes)
    rounds = MOST_STARTS if len(taken) <= MOST_STARTS else 0
    for _ in range(rounds):
        better = _first_exchange(taken, choices, rooms)
        if better is None:
            break
        taken |= better
    objective = math.fsum(each.choice.value for each in taken.values())
    return Assignment(taken, objective, start.solver)


def _first_exchange(
    taken: Mapping[str, Taken], choices: Mapping[str, tuple[Choice, ...]], rooms: Rooms
) -> dict[str, Taken] | None:
    """The first pair that gains, with its new nodes; the rooms are changed by it."""
    for one, other in combinations(sorted(taken), 2):
        for mine, theirs in _better(taken[one], taken[other], choices[one], choices[other]):
            found = _placed((taken[one], taken[other]), (mine, theirs), rooms)
            if found is not None:
                return {one: found[0], other: found[1]}
    return None


def _better(
    one: Taken, other: Taken, mine: Iterable[Choice], theirs: Iterable[Choice]
) -> Iterator[tuple[Choice, Choice]]:
    """Pairs of choices in each other's pool that are worth more together."""
    here, there = one.choice.option.pool, other.choice.option.pool
    if here == there:
        return
    before = one.choice.value + other.choice.value
    back = [each for each in theirs if each.option.pool == here]
    for each in mine:
        if each.option.pool == there:
            for answer in back:
                if each.value + answer.value > before * (1.0 + LEAST_GAIN):
                    yield each, answer


def _placed(
    before: tuple[Taken, Taken], after: tuple[Choice, Choice], rooms: Rooms
) -> list[Taken] | None:
    """The pair at its new choices; None, and nothing changed, where one has no room."""
    for each in before:
        rooms.give_back(each.choice.option, each.nodes)
    found: list[Taken] = []
    for choice in after:
        nodes = rooms.fit(choice.option, choice.until)
        if nodes is None:
            break
        rooms.take(choice.option, nodes)
        found.append(Taken(choice, nodes))
    if len(found) == len(after):
        return found
    for each in found:
        rooms.give_back(each.choice.option, each.nodes)
    for each in before:
        rooms.take(each.choice.option, each.nodes)
    return None
