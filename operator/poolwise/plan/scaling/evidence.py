"""Who was late at which load, replica by replica."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from poolwise.model.serving.capacity import KV_CACHE
from poolwise.plan.scaling import learning
from poolwise.plan.scaling.cadence import steps
from poolwise.plan.scaling.capability import Capability
from poolwise.plan.scaling.felt import is_settled
from poolwise.plan.scaling.fragility import LOG_RATIOS, Evidence, Lateness
from poolwise.plan.scaling.grid import Vector, spread
from poolwise.plan.scaling.intake import Intake
from poolwise.plan.scaling.lone import Lone, alone_share
from poolwise.plan.scaling.memory import Felt, Memory
from poolwise.plan.scaling.service import Service
from poolwise.plan.scaling.swings import swing_of, usable_share
from poolwise.plan.scaling.told import Told

STEP_WEIGHT = 25.0
"""Requests that the usual step between two looks counts as: late ones come together, since one
burst or one full cache makes them, so that hundreds in one step are no hundred independent ones."""
OVER_SHARE = 0.1
"""Of late requests, from which a replica is over the edge: how far tells nothing of where it is,
and one overload fills many steps."""
FEW = 25.0
"""Requests of which one that is late is no overload."""


@dataclass(frozen=True, slots=True)
class Lessons:
    """Of one look."""

    evidence: Evidence
    late: float
    """Requests, in units of the strictest target's allowance."""
    count: float
    lone: Lone
    """With these."""
    alone_share: float
    """Of requests, those that are late even alone."""


def lessons(
    service: Service,
    memory: Memory,
    taken: Intake,
    felt: Mapping[str, Felt],
    able: Mapping[str, Capability],
) -> Lessons:
    """Of all replicas that are warm; those who are late even alone tell nothing of load."""
    found = [
        (_teaching(felt[name], each, able[each.pool]), late)
        for name, each in taken.by_replica.items()
        if name in felt and each.is_warm
        for late in learning.lateness(service, each.delta, able[each.pool])
        if late.count
    ]
    whole = [late for _, late in found if late.relative_strength == 1.0]
    late, count = math.fsum(each.late for each in whole), math.fsum(each.count for each in whole)
    first = able[service.first.name]
    lone = _lone(service, memory, taken, first)
    alone = alone_share(service, first, memory.mix_of(service), lone)
    of_load = lone.of_load(alone)
    found = [(load, replace(each, late=of_load * each.late)) for load, each in found]
    looks = steps(taken.seconds)
    usual = memory.usual_arrivals or taken.arrivals / looks
    scale = STEP_WEIGHT / max(usual, count / looks / 4.0, STEP_WEIGHT)
    usable = usable_share(_borne(taken, felt), swing_of(first))
    return Lessons(
        evidence(found, scale, usable, _rising(taken, felt, first)), late, count, lone, alone
    )


def _lone(service: Service, memory: Memory, taken: Intake, able: Capability) -> Lone:
    """With what came since."""
    if taken.warm is None:
        return memory.lone
    helped = able.helped(service.targets)
    late, count = learning.late_requests(service, helped, taken.warm)
    return memory.lone.after(late, count, taken.warm.prompt_lengths_tokens, taken.seconds)


def _borne(taken: Intake, felt: Mapping[str, Felt]) -> float:
    """By all replicas together, in full ones."""
    return math.fsum(felt[name].mean for name in taken.by_replica if name in felt)


def _rising(taken: Intake, felt: Mapping[str, Felt], able: Capability) -> float:
    """Of warm replicas, where it is the load of the moment that delays.

    Gaps between tokens feel what comes at the moment, and a cache that is full holds up whoever
    comes next, however full it was before; averages tell of either late. What a sudden rise delays
    would be put down to the load before it, and replicas taken for weak. Prompts that wait for each
    other are of what came before.
    """
    warm = (name for name, each in taken.by_replica.items() if each.is_warm)
    loads = [felt[name] for name in warm if name in felt]
    if able.limiting == KV_CACHE:
        return rise(loads)
    return rise(loads, 1.0 / math.sqrt(max(taken.arrivals, 1.0))) if able.is_of_gaps else 1.0


def _teaching(load: Felt, told: Told, able: Capability) -> Felt:
    """While a replica still fills, its requests are in time at any load: at most it is full."""
    return load if is_settled(told, able) else replace(load, mean=min(load.mean, 1.0))


def rise(loads: Sequence[Felt], by_chance: float = 0.0) -> float:
    """Times the recent load that all replicas together bear now.

    :param by_chance: share by which the load of now may be off: that of a count of arrivals is;
        how full a cache is, is told.
    """
    now, recent = math.fsum(each.now for each in loads), math.fsum(each.recent for each in loads)
    return max(now * (1.0 - by_chance) / recent, 1.0) if recent > 0.0 else 1.0


def evidence(
    found: Sequence[tuple[Felt, Lateness]],
    scale: float,
    usable_share: float = 1.0,
    rising: float = 1.0,
) -> Evidence:
    """Each late request at the worst load that its replica bore, the one of a rise included, and
    each other one at the mean.

    :param scale: what a request counts as.
    :param usable_share: of the usual fleet's edge, what this one has (:mod:`.swings`).
    :param rising: of :func:`rise`.
    """
    late, timely = list[tuple[float, float]](), list[tuple[float, float]]()
    for load, told in found:
        over = told.late / (OVER_SHARE * max(told.count, FEW))
        weight = scale * told.weight / max(over, 1.0)
        edge = told.relative_strength * usable_share
        late.append((max(load.worst, rising * load.recent) / edge, weight * told.late))
        timely.append((load.mean / edge, weight * (told.count - told.late)))
    return Evidence(_by_ratio(late), _by_ratio(timely))


def _by_ratio(found: Sequence[tuple[float, float]]) -> Vector:
    """Weights over :data:`LOG_RATIOS`, of ratios with theirs."""
    ratios, weights = np.array(found, float).reshape(-1, 2).T
    return spread(np.log(np.maximum(ratios, 1e-9)), np.maximum(weights, 0.0), LOG_RATIOS)
