"""Of a service that is spread over several pools: what it holds on each, and what all of it takes.

Cost and energy of a plan are of the whole workload (api.md); the rest of its story is of the first
pool. The parts are priced at what their pools cost now, and an accelerator of theirs takes as much
power as one of the first pool, as the meter counts them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from poolwise.plan.decision import Candidate, Outcome, Plan
from poolwise.plan.pool import Pool
from poolwise.plan.reading import Told
from poolwise.plan.records.hourly import comparable_cost, joules_per_hour
from poolwise.plan.rounding import present, rounded

FIELD = "further"


def with_further(
    told: Told, outcome: Outcome, pool: Pool | None, pools: Mapping[str, Pool]
) -> Mapping[str, Any]:
    """A story with the parts on further pools, and the cost and energy of all; as it is where there
    are none.

    ``pool`` is the first one. Nothing is summed up where a part of the sum is not known.
    """
    if not isinstance(outcome, Plan) or outcome.chosen is None or told.get("pool") is None:
        return told
    parts = [each.chosen for each in (*outcome.parts, *outcome.parts_asked) if each.chosen]
    if not parts and FIELD not in told:
        return told
    costs = [_cost(outcome.chosen, pool), *(_cost(each, pools.get(each.pool)) for each in parts)]
    energies = [joules_per_hour(each, told) for each in (outcome.chosen, *parts)]
    shown = [_part(each, cost) for each, cost in zip(parts, costs[1:], strict=True)]
    sums = {"costPerHour": rounded(total(costs)), "energyJoules": rounded(total(energies))}
    return spread(told, shown, sums)


def spread(
    told: Told, parts: Sequence[Mapping[str, Any]], sums: Mapping[str, float | None]
) -> dict[str, Any]:
    """A story with ``parts`` on further pools, and sums over all pools instead of the first one's.

    A sum that is not known is left out: the first pool's alone would pass for it.
    """
    own = {name: value for name, value in told.items() if name not in {FIELD, *sums}}
    return {**own, **present(dict(sums)), **({FIELD: list(parts)} if parts else {})}


def total(costs: Sequence[float | None]) -> float | None:
    """None where one is not known."""
    known = [cost for cost in costs if cost is not None]
    return math.fsum(known) if len(known) == len(costs) else None


def _part(chosen: Candidate, cost: float | None) -> dict[str, Any]:
    found = {
        "pool": chosen.pool,
        "accelerator": chosen.accelerator,
        "count": chosen.count,
        "replicas": chosen.replicas,
        "costPerHour": rounded(cost),
    }
    return present(found)


def _cost(chosen: Candidate, pool: Pool | None) -> float | None:
    return None if pool is None else comparable_cost(pool, chosen)
