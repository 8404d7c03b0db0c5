"""What a pool's time is worth beside another's: duals of the relaxed assignment of all work.

All work that waits or may be moved is spread over the pools, in fractions, so that the last
pool to finish finishes as early as possible::

    min t   with   sum_o x_io = 1 for each workload i,   sum_io a_o T_o x_io <= m_p t per pool p

``m_p`` is what comes free in time: what services and pods of others hold is nobody's to share out.
The dual of pool ``p`` is its share ``y_p`` (sum of m_p y_p = 1): one accelerator-second there takes
``y_p`` seconds of the whole cluster's time. A workload that uses least of it goes where it loses
least against the others: that is comparative advantage. (The static planning problem of networks
of queues, Harrison 2000; ties and unused pools have a share of 0.)
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from poolwise.plan.joint.problem import Option, PoolState, Workload, run_seconds
from poolwise.plan.joint.programme import Programme

LOG_STEPS = 8
"""Workloads whose times differ in proportion by less than a step are one type: steps per e-fold."""

Type = tuple[tuple[str, int], ...]
"""Pools with the accelerator-seconds there, in steps over the least."""


def shares(
    workloads: Iterable[tuple[Workload, Sequence[Option]]], capacity: Mapping[str, int]
) -> dict[str, float]:
    """``y`` by pool, of the accelerators that can be had there; even shares where there is no work
    to tell."""
    capacity = {name: count for name, count in capacity.items() if count > 0}
    types = _types([each for each in options if each.pool in capacity] for _, options in workloads)
    even = {name: 1.0 / sum(capacity.values()) for name in capacity}
    found = _duals(types, capacity) if types else {}
    return found or even


def capacity(pools: Iterable[PoolState], workloads: Iterable[Workload]) -> dict[str, int]:
    """Accelerators by pool that are free, or will be when a run ends."""
    found = {pool.name: sum(max(node.free, 0) for node in pool.nodes) for pool in pools}
    for each in workloads:
        option = each.running.option if each.running else None
        if option is not None and option.seconds is not None and option.pool in found:
            found[option.pool] += option.accelerators
    return found


def _types(all_options: Iterable[Sequence[Option]]) -> dict[Type, float]:
    """Work by type: run times relative to the shortest, and the sum of the shortest."""
    found: dict[Type, list[float]] = {}
    for options in all_options:
        least = min((_area(option) for option in options), default=0.0)
        if least > 0:
            key = tuple(sorted({(each.pool, _step(_area(each) / least)) for each in options}))
            found.setdefault(key, []).append(least)
    return {key: math.fsum(found[key]) for key in sorted(found)}  # in whatever order they came


def _duals(types: Mapping[Type, float], capacity: Mapping[str, int]) -> dict[str, float]:
    programme = Programme()
    scale = sum(types.values()) / sum(capacity.values())
    rows = {name: programme.row(most=0.0) for name in capacity}
    programme.column(-1.0, {rows[name]: -count for name, count in capacity.items()})
    for kind, work in types.items():
        whole = programme.row(1.0, 1.0)
        for pool, step in kind:
            needed = work * math.exp(step / LOG_STEPS) / scale
            programme.column(0.0, {whole: 1.0, rows[pool]: needed})
    duals = programme.relaxed().duals
    return {name: max(duals[row], 0.0) for name, row in rows.items()} if duals else {}


def _area(option: Option) -> float:
    return option.accelerators * run_seconds(option)


def _step(ratio: float) -> int:
    return round(LOG_STEPS * math.log(ratio))
