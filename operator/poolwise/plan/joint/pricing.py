"""What a pool's time is worth beside another's: duals of the relaxed assignment of all work.

All work that waits or may be moved is spread over the pools, in fractions, so that as much of it as
possible is done per second::

    max r   with   sum_o x_io = r for each run i,   sum_o x_so = 1 for each service s,
                   sum_io a_o T_o x_io + sum_so a_o x_so <= m_p per pool p

``m_p`` is what comes free in time: what services and pods of others hold is nobody's to share out,
and what a service takes is gone for good: it is no work that ends. The dual of pool ``p`` over
``r`` is its share ``y_p``: one accelerator-second there takes ``y_p`` seconds of the time in which
all is done. A workload that uses least of it goes where it loses least against the others: that is
comparative advantage. (The static planning problem of networks of queues, Harrison 2000.)

The programme sees the most loaded pools alone: whoever could run elsewhere does, in its answer, and
so all other pools have a dual of 0. They are a level of their own: who runs nowhere else waits for
nothing else. What is left, of work and of pools, is spread in the same way, level by level
(lexicographic max-min), and what a level costs is delay of those alone who belong to it.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from poolwise.plan.joint.problem import Option, PoolState, Workload, run_seconds
from poolwise.plan.joint.programme import Programme

LOG_STEPS = 8
"""Workloads whose times differ in proportion by less than a step are one kind: steps per e-fold."""
LEAST_DUAL = 1e-9
"""Relative; less is none."""
LEAST_LEFT = 0.01
"""Of pools that services fill: so much counts as left for runs, so that shares stay numbers."""


@dataclass(frozen=True, slots=True)
class Level:
    """Pools that share one load, and who can run on no pool with less."""

    shares: Mapping[str, float]
    """By pool: seconds of the time in which the level's work is done, per accelerator-second."""
    keys: frozenset[str]
    """Of workloads."""
    seconds: float
    """In which the level's work is done; infinite where services fill it."""


@dataclass(frozen=True, slots=True)
class _Kind:
    """Workloads that lose alike."""

    is_endless: bool
    needed: Mapping[str, float]
    """By pool: accelerator-seconds of all of them there; of services accelerators."""
    keys: tuple[str, ...]

    def outside(self, pools: Container[str]) -> _Kind:
        """Where it can go beside these pools."""
        left = {name: needed for name, needed in self.needed.items() if name not in pools}
        return replace(self, needed=left)


@dataclass(frozen=True, slots=True)
class _Spread:
    """Work spread over pools."""

    rate: float
    """How much of it is done per second; of services how many times all of them have room."""
    shares: Mapping[str, float]
    """Of the pools that limit it."""
    seconds: float = math.inf
    """In which all of it is done; services never are."""


def levels(
    workloads: Iterable[tuple[Workload, Sequence[Option]]], capacity: Mapping[str, int]
) -> tuple[Level, ...]:
    """Pools by load, the most loaded first; none of pools that nothing fills."""
    pools = {name: count for name, count in capacity.items() if count > 0}
    kinds, found = _kinds(workloads, pools), list[Level]()
    while shares := (spread := _scarcest(kinds, pools)).shares:
        bound = (each.keys for each in kinds if each.needed.keys() <= shares.keys())
        found.append(Level(shares, frozenset(chain.from_iterable(bound)), spread.seconds))
        kinds = [each.outside(shares) for each in kinds if each.needed.keys() - shares.keys()]
        pools = {name: count for name, count in pools.items() if name not in shares}
    return tuple(found)


def capacity(pools: Iterable[PoolState], workloads: Iterable[Workload]) -> dict[str, int]:
    """Accelerators by pool that are free, or will be when a run ends."""
    found = {pool.name: sum(max(node.free, 0) for node in pool.nodes) for pool in pools}
    for each in workloads:
        option = each.running.option if each.running else None
        if option is not None and option.seconds is not None and option.pool in found:
            found[option.pool] += option.accelerators
    return found


def _kinds(
    workloads: Iterable[tuple[Workload, Sequence[Option]]], pools: Mapping[str, int]
) -> list[_Kind]:
    """Work by kind: what it needs relative to the least, and the sum of the least."""
    found: dict[tuple[bool, tuple[tuple[str, int], ...]], list[tuple[str, float]]] = {}
    for workload, options in workloads:
        known = [each for each in options if each.pool in pools]
        least = min(map(_needed, known), default=0.0)
        if least > 0:
            steps = tuple(sorted({(each.pool, _step(_needed(each) / least)) for each in known}))
            kind = known[0].seconds is None, steps
            found.setdefault(kind, []).append((workload.key, least))
    return [_kind(*kind, found[kind]) for kind in sorted(found)]  # in whatever order they came


def _kind(
    is_endless: bool, steps: Iterable[tuple[str, int]], members: Iterable[tuple[str, float]]
) -> _Kind:
    keys, least = zip(*sorted(members), strict=True)
    most_first = sorted(steps, key=lambda each: -each[1])
    needed = {pool: math.fsum(least) * math.exp(step / LOG_STEPS) for pool, step in most_first}
    return _Kind(is_endless, needed, keys)


def _scarcest(kinds: Sequence[_Kind], capacity: Mapping[str, int]) -> _Spread:
    """Over the pools that limit most; of no pools where nothing is limited."""
    services = [each for each in kinds if each.is_endless]
    runs = [each for each in kinds if not each.is_endless]
    served = _spread(services, (), capacity)
    if served.rate <= 1.0 + LEAST_DUAL:
        return served
    done = _spread(runs, services, capacity)
    return replace(done, seconds=1.0 / done.rate if done.rate > 0 else math.inf)


def _spread(
    growing: Sequence[_Kind], given: Sequence[_Kind], capacity: Mapping[str, int]
) -> _Spread:
    """As much of what grows as there is room for beside what is given, which has room."""
    if not growing:
        return _Spread(math.inf, {})
    programme = Programme()
    scale = sum(min(each.needed.values()) for each in growing) / sum(capacity.values())
    rows = {name: programme.row(most=count) for name, count in capacity.items()}
    wholes = {each: programme.row(0.0, 0.0) for each in range(len(growing))}
    programme.column(1.0, dict.fromkeys(wholes.values(), -1.0))
    for at, kind in enumerate(growing):
        for pool, needed in kind.needed.items():
            programme.column(0.0, {wholes[at]: 1.0, rows[pool]: needed / scale})
    for kind in given:
        whole = programme.row(1.0, 1.0)
        for pool, needed in kind.needed.items():
            programme.column(0.0, {whole: 1.0, rows[pool]: needed})
    found = programme.relaxed()
    duals = {name: found.duals[row] for name, row in rows.items()} if found.duals else {}
    return _Spread(found.objective / scale, _shares(duals, capacity, found.objective))


def _shares(
    duals: Mapping[str, float], capacity: Mapping[str, int], rate: float
) -> dict[str, float]:
    least = LEAST_DUAL * max(duals.values(), default=0.0)
    limiting = {name: dual for name, dual in duals.items() if dual > least}
    worth = math.fsum(dual * capacity[name] for name, dual in limiting.items())
    return {name: dual / max(rate, LEAST_LEFT * worth) for name, dual in limiting.items()}


def _needed(option: Option) -> float:
    """For as long as it lasts; of a service at any time."""
    return option.accelerators * (1.0 if option.seconds is None else run_seconds(option))


def _step(ratio: float) -> int:
    return round(LOG_STEPS * math.log(ratio))
