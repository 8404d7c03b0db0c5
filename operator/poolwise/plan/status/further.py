"""Of a service that is spread over several pools: what it holds on each, and what all of it costs.

``costPerHour`` of a plan is of the whole workload (api.md); the rest of its story is of the first
pool. The parts are priced at what their pools cost now, as the meter prices them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from poolwise.plan.decision import Candidate, Outcome, Plan
from poolwise.plan.pool import Pool
from poolwise.plan.status.accrual import nodes_held
from poolwise.plan.status.figures import Told
from poolwise.plan.status.rounding import present, rounded

FIELD = "further"


def with_further(
    told: Told, outcome: Outcome, pool: Pool | None, pools: Mapping[str, Pool]
) -> Mapping[str, Any]:
    """A story with the parts on further pools, and the cost of all; as it is where there are none.

    ``pool`` is the first one. Nothing is summed up where a price is not known.
    """
    if not isinstance(outcome, Plan) or outcome.chosen is None or told.get("pool") is None:
        return told
    parts = [each.chosen for each in (*outcome.parts, *outcome.parts_asked) if each.chosen]
    if not parts and FIELD not in told:
        return told
    without = {name: value for name, value in told.items() if name not in (FIELD, "costPerHour")}
    costs = [_cost(outcome.chosen, pool), *(_cost(each, pools.get(each.pool)) for each in parts)]
    whole = present({"costPerHour": rounded(total(costs))})
    shown = [_part(each, cost) for each, cost in zip(parts, costs[1:], strict=True)]
    return {**without, **whole, **({FIELD: shown} if shown else {})}


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
    if pool is None or pool.price is None or pool.price_problem is not None:
        return None
    return pool.price.per_node_hour * nodes_held(pool, chosen)
