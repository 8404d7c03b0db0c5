"""``scaling.maxReplicas`` over all pools of a service: beyond it the dearest replicas go first.

Replicas that nobody can look at are kept, but never more of them than the user allows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from poolwise.plan.candidates.situation import Situation
from poolwise.plan.decision import Plan
from poolwise.plan.records.hourly import cost_per_hour


def within(
    further: Mapping[str, int], costs_per_hour: Mapping[str, float], most: int
) -> dict[str, int]:
    """Replicas on further pools, by name, of which there may be so many together.

    :param costs_per_hour: of one on each.
    """
    kept, over = dict(further), sum(further.values()) - max(most, 0)
    for pool in sorted(further, key=lambda name: (-costs_per_hour.get(name, 0.0), name)):
        leave = min(kept[pool], max(over, 0))
        kept[pool], over = kept[pool] - leave, over - leave
    return kept


def allowed(
    plan: Plan, parts: Mapping[str, Plan], most: int, situation: Situation
) -> dict[str, int]:
    """Of the replicas on further pools those that ``maxReplicas`` leaves room for.

    :param parts: what runs there, by pool.
    """
    counts = {pool: part.replicas for pool, part in parts.items()}
    costs = {pool: cost_of_one(part, situation) for pool, part in parts.items()}
    return within(counts, costs, most - plan.replicas)


def cost_of_one(plan: Plan, situation: Situation) -> float:
    """An hour of a replica on one pool; 0 where nobody knows."""
    pool = situation.ledger.pool(plan.chosen.pool) if plan.chosen else None
    if plan.chosen is None or pool is None:
        return 0.0
    return cost_per_hour(pool, replace(plan.chosen, replicas=1)) or 0.0
