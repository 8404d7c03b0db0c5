"""Replicas that have been starting for far longer than a start may take.

They are no capacity on its way: whoever waits for them misses its targets. What is missing is made
up for by others, as far as there may be more, while one replica at least is ready: where none is,
others would only fail alike.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from poolwise.plan.live.mismatch.clue import Clue, Mismatch
from poolwise.plan.live.seen import not_ready_since, replica_seen
from poolwise.plan.observed import Object
from poolwise.plan.scaling.seen import Phase
from poolwise.plan.wording import duration, plural


@dataclass(frozen=True, slots=True)
class Overdue:
    """Who does not start."""

    names: frozenset[str] = frozenset()
    longest_seconds: float = 0.0
    limit_seconds: float = 0.0
    missing: int = 0
    """Of the replicas that there should be, those that others make up for."""


def overdue(
    pods: Iterable[Object],
    replicas: int,
    limit_seconds: float,
    now_seconds: float,
    is_proven: bool = False,
) -> Overdue:
    """Pods of a service on one pool that have not been ready for longer than the limit.

    :param replicas: that there should be: a pod beside them (of an update) is not missing.
    :param is_proven: whether others of the service are ready on another pool.
    """
    late, others, ready = dict[str, float](), 0, 0
    for pod in pods:
        seen = replica_seen(pod, "")
        age_seconds = now_seconds - not_ready_since(pod)
        if seen.phase is Phase.STARTING and age_seconds > limit_seconds:
            late[seen.name] = age_seconds
        elif seen.phase is not Phase.DRAINING:
            others += 1
            ready += seen.phase is Phase.READY
    missing = min(len(late), max(replicas - others, 0)) if ready or is_proven else 0
    return Overdue(frozenset(late), max(late.values(), default=0.0), limit_seconds, missing)


def together(found: Iterable[Overdue]) -> Overdue:
    """Of a service on several pools: the limit is that of who is longest late."""
    every = list(found)
    longest = max(every, key=lambda each: each.longest_seconds, default=Overdue())
    names = frozenset[str]().union(*(each.names for each in every))
    missing = sum(each.missing for each in every)
    return Overdue(names, longest.longest_seconds, longest.limit_seconds, missing)


def start_overdue(found: Overdue) -> Clue:
    """Told while there are such replicas."""
    first, *others = sorted(found.names) or [""]
    more = f" and {plural(len(others), 'more replica')}" if others else ""
    made_up = f"; {plural(found.missing, 'other')} asked for instead" if found.missing else ""
    told = (
        f"{first}{more} did not become ready within {duration(found.limit_seconds)} (not "
        f"counted as capacity{made_up}): see its events and log"
    )
    return Clue(Mismatch.START_OVERDUE, bool(found.names), not found.names, told)
