"""The fleet: what the pools are good at, what is free, what it costs, and who runs where."""

from __future__ import annotations

from observability.fleet_workloads import WORKLOADS
from observability.frame import Frame, Section
from observability.panels import (
    BLUE,
    GREEN,
    RED,
    YELLOW,
    About,
    Column,
    bars,
    figure,
    grid,
    series,
    value_of,
)
from observability.query import Query, gauge

ALL = gauge('pool_accelerators{state="all"}', "pool")
FREE = gauge('pool_accelerators{state="free"}', "pool")
USABLE = gauge('pool_nodes{state="usable"}', "pool")
UNUSABLE = gauge('pool_nodes{state="unusable"}', "pool")
PRICE = gauge("pool_price_per_hour", "pool", "currency")
COST = gauge("cost_per_hour", "kind", "pool")
STALLED = gauge('workload_condition{condition="Stalled"}', "kind", "namespace", "name")
GOOD_WHEN_FALSE = "HardwareEstimated|PriceEstimated"
PER_HOUR = "suffix:/h"

_FIGURES = Section(
    "Now",
    (
        figure(
            About(
                "Pools",
                "AcceleratorPools that Poolwise knows, found from node labels or declared. "
                "None: see the conditions of the pools below, and the operator's dashboard.",
                "none",
                width=4,
                height=4,
                base=BLUE,
            ),
            Query(f"count({gauge('pool_info', 'pool')}) or vector(0)"),
        ),
        figure(
            About(
                "Accelerators",
                "Accelerators of usable nodes, all pools together. Fewer than you own: "
                "see the unusable nodes below.",
                "none",
                width=4,
                height=4,
                base=BLUE,
            ),
            Query(f"sum({ALL}) or vector(0)"),
        ),
        figure(
            About(
                "Free",
                "Accelerators that nothing holds. None: new work waits until some frees.",
                "none",
                width=4,
                height=4,
                limits=((1, GREEN),),
                base=YELLOW,
            ),
            Query(f"sum({FREE}) or vector(0)"),
        ),
        figure(
            About(
                "Placed share",
                "Part of all accelerators that workloads hold. Low for long: the fleet is larger "
                "than its work; see what idle accelerators cost below.",
                "percentunit",
                width=4,
                height=4,
                base=BLUE,
            ),
            Query(f"1 - sum({FREE}) / sum({ALL})"),
        ),
        figure(
            About(
                "Cost per hour",
                "Predicted cost of all placed workloads, in the currency of the operator's "
                "setting. Per pool: see below.",
                PER_HOUR,
                width=4,
                height=4,
                base=BLUE,
            ),
            Query(f"sum({COST}) or vector(0)"),
        ),
        figure(
            About(
                "Stalled workloads",
                "Workloads that will not go on until somebody changes something. The table of "
                "workloads names the reason, and docs/conditions.md what to do.",
                "none",
                width=4,
                height=4,
                limits=((1, RED),),
            ),
            Query(f"sum({STALLED}) or vector(0)"),
        ),
    ),
)

_POOLS = Section(
    "Pools",
    (
        grid(
            About(
                "Pools",
                "Every pool with what one of its accelerators can do and what one node costs. The "
                "role follows from links and memory bandwidth; no placement depends on it.",
                "none",
                width=24,
                height=9,
            ),
            (
                Query(gauge("pool_info", "pool", "accelerator", "role")),
                Query(USABLE),
                Query(UNUSABLE),
                Query(ALL),
                Query(FREE),
                Query(gauge("pool_memory_bytes", "pool")),
                Query(gauge("pool_memory_bandwidth_bytes_per_second", "pool")),
                Query(PRICE),
                Query(gauge('pool_condition{condition="Ready"}', "pool")),
            ),
            {
                "pool": Column("Pool"),
                "accelerator": Column("Accelerator"),
                "role": Column("Role"),
                value_of(0): None,
                value_of(1): Column("Usable nodes"),
                value_of(2): Column("Unusable nodes"),
                value_of(3): Column("Accelerators"),
                value_of(4): Column("Free"),
                value_of(5): Column("Memory", "bytes"),
                value_of(6): Column("Memory bandwidth", "Bps"),
                value_of(7): Column("Price of a node", PER_HOUR),
                "currency": Column("Currency"),
                value_of(8): Column("Ready", "", {"1": ("yes", GREEN), "0": ("no", RED)}),
            },
        ),
        bars(
            About(
                "Ridge points",
                "Arithmetic intensity from which a pool is bound by compute and no longer by "
                "memory bandwidth. Work of low intensity (serving) belongs to pools with short "
                "bars, work of high intensity (training) may use the long ones.",
                "suffix: FLOP/B",
                width=12,
                height=9,
                base=BLUE,
            ),
            Query(
                gauge("pool_ridge_flops_per_byte", "pool", "precision"), "{{pool}} {{precision}}"
            ),
        ),
        grid(
            About(
                "Conditions that need a look",
                "Conditions of pools that are not as they should be; empty is good. "
                "docs/conditions.md says what to do about each one.",
                "none",
                width=12,
                height=9,
            ),
            (
                Query(
                    gauge(f'pool_condition{{condition!~"{GOOD_WHEN_FALSE}"}}', "pool", "condition")
                    + " == 0 or "
                    + gauge(
                        f'pool_condition{{condition=~"{GOOD_WHEN_FALSE}"}}', "pool", "condition"
                    )
                    + " == 1"
                ),
            ),
            {
                "pool": Column("Pool"),
                "condition": Column("Condition"),
                value_of(0): Column("Is", "", {"1": ("True", YELLOW), "0": ("False", RED)}),
            },
        ),
    ),
)

_CAPACITY = Section(
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

_COST = Section(
    "Cost",
    (
        series(
            About(
                "Cost per hour by pool and kind",
                "Predicted cost of what is placed, at the pools' prices. A step up follows a "
                "decision: see the workloads below.",
                PER_HOUR,
            ),
            Query(COST, "{{pool}} {{kind}}"),
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
                "suffix: tokens/s",
            ),
            Query(gauge("predicted_tokens_per_second", "kind", "pool"), "{{pool}} {{kind}}"),
            stacked=True,
        ),
    ),
)

FLEET = Frame(
    "fleet",
    "Poolwise / Fleet",
    "Pools of accelerators, their ridge points, what is free, what it costs, and who runs where.",
    (_FIGURES, _POOLS, _CAPACITY, _COST, WORKLOADS),
)
