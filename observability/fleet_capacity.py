"""Capacity and cost of the fleet over time."""

from __future__ import annotations

from observability.frame import Section
from observability.panels import YELLOW, About, series
from observability.query import Query, gauge

ALL = gauge('pool_accelerators{state="all"}', "pool")
FREE = gauge('pool_accelerators{state="free"}', "pool")
USABLE = gauge('pool_nodes{state="usable"}', "pool")
UNUSABLE = gauge('pool_nodes{state="unusable"}', "pool")
PRICE = gauge("pool_price_per_hour", "pool", "currency")
COST_PER_HOUR = gauge("cost_per_hour", "kind", "pool")
PER_HOUR = "suffix:/h"
"""In the currency of the operator's setting."""

CAPACITY = Section(
    "Capacity over time",
    (
        series(
            About(
                "Free accelerators",
                "Accelerators that nothing holds, per pool. At zero, work for that pool waits or "
                "goes where it is dearer or slower: add nodes, or relax what the workloads ask.",
                "none",
            ),
            Query(FREE, "{{pool}}"),
        ),
        series(
            About(
                "Placed share",
                "Part of a pool's accelerators that workloads hold. Low for long: give nodes "
                "back, or allow more workloads to use the pool.",
                "percentunit",
            ),
            Query(f"1 - {FREE} / ({ALL} > 0)", "{{pool}}"),
        ),
        series(
            About(
                "Unusable nodes",
                "Nodes that are cordoned, not ready, tainted or being deleted. They run what they "
                "have and take nothing new: kubectl describe node tells why.",
                "none",
                limits=((1, YELLOW),),
            ),
            Query(UNUSABLE, "{{pool}}"),
        ),
    ),
)

COST = Section(
    "Cost",
    (
        series(
            About(
                "Cost per hour by pool and kind",
                "Predicted cost of what is placed, at the pools' prices. A step up follows a "
                "decision: see the workloads below.",
                PER_HOUR,
            ),
            Query(COST_PER_HOUR, "{{pool}} {{kind}}"),
            stacked=True,
        ),
        series(
            About(
                "Cost of idle accelerators",
                "Price of usable nodes times the share of their accelerators that is free. High "
                "for long: give nodes back.",
                PER_HOUR,
            ),
            Query(
                f"{PRICE} * on (pool) group_left () ({USABLE} * ({FREE} / ({ALL} > 0)))",
                "{{pool}} ({{currency}})",
            ),
            stacked=True,
        ),
        series(
            About(
                "Predicted tokens per second",
                "Of all placed workloads, by pool and kind. Divide by the cost beside it to "
                "compare pools.",
                "si:tokens/s",
            ),
            Query(gauge("predicted_tokens_per_second", "kind", "pool"), "{{pool}} {{kind}}"),
            stacked=True,
        ),
        series(
            About(
                "Idle nodes",
                "Usable nodes whose accelerators nobody holds; status.idleNodes of the pool names "
                "them with the time since when. High for long: let an autoscaler release them.",
                "none",
                width=12,
            ),
            Query(gauge("pool_idle_nodes", "pool"), "{{pool}}"),
        ),
        series(
            About(
                "Cost of idle nodes",
                "Price of the nodes that hold nothing at all. What accelerators cost that are "
                "free beside used ones is in the panel before.",
                PER_HOUR,
                width=12,
            ),
            Query(gauge("pool_idle_cost_per_hour", "pool", "currency"), "{{pool}} ({{currency}})"),
            stacked=True,
        ),
    ),
)
