"""The fleet: what the pools are good at, what is free, what it costs, and who runs where."""

from __future__ import annotations

from observability.fleet_capacity import (
    ALL,
    CAPACITY,
    COST,
    COST_PER_HOUR,
    FREE,
    PER_HOUR,
    PRICE,
    UNUSABLE,
    USABLE,
)
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
    tile,
    value_of,
)
from observability.query import Query, gauge

STALLED = gauge('workload_condition{condition="Stalled"}', "kind", "namespace", "name")
GOOD_WHEN_FALSE = "HardwareEstimated|PriceEstimated"

_FIGURES = Section(
    "Now",
    (
        figure(
            tile(
                "Pools",
                "AcceleratorPools that Poolwise knows, found from node labels or declared. "
                "None: see the conditions of the pools below, and the operator's dashboard.",
                "none",
            ),
            Query(f"count({gauge('pool_info', 'pool')}) or vector(0)"),
        ),
        figure(
            tile(
                "Accelerators",
                "Accelerators of usable nodes, all pools together. Fewer than you own: "
                "see the unusable nodes below.",
                "none",
            ),
            Query(f"sum({ALL}) or vector(0)"),
        ),
        figure(
            tile(
                "Free",
                "Accelerators that nothing holds. None: new work waits until some frees.",
                "none",
                limits=((1, GREEN),),
                base=YELLOW,
            ),
            Query(f"sum({FREE}) or vector(0)"),
        ),
        figure(
            tile(
                "Placed share",
                "Part of all accelerators that workloads hold. Low for long: the fleet is larger "
                "than its work; see what idle accelerators cost below.",
                "percentunit",
            ),
            Query(f"1 - sum({FREE}) / sum({ALL})"),
        ),
        figure(
            tile(
                "Cost per hour",
                "Predicted cost of all placed workloads, in the currency of the operator's "
                "setting. Per pool: see below.",
                PER_HOUR,
            ),
            Query(f"sum({COST_PER_HOUR}) or vector(0)"),
        ),
        figure(
            tile(
                "Stalled workloads",
                "Workloads that will not go on until somebody changes something. The table of "
                "workloads names the reason, and docs/conditions.md what to do.",
                "none",
                limits=((1, RED),),
                base=GREEN,
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
                "si:FLOP/B",
                height=9,
                base=BLUE,
            ),
            Query(
                gauge("pool_ridge_flops_per_byte", "pool", "precision"), "{{pool}} {{precision}}"
            ),
        ),
        bars(
            About(
                "Peak compute",
                "What one accelerator of the pool computes at most, in each precision. Only work "
                "above the ridge point comes near it.",
                "flops",
                height=9,
                base=BLUE,
            ),
            Query(
                gauge("pool_peak_flops_per_second", "pool", "precision"), "{{pool}} {{precision}}"
            ),
        ),
        grid(
            About(
                "Conditions that need a look",
                "Conditions of pools that are not as they should be; empty is good. "
                "docs/conditions.md says what to do about each one.",
                "none",
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

FLEET = Frame(
    "fleet",
    "Poolwise / Fleet",
    "Pools of accelerators, their ridge points, what is free, what it costs, and who runs where.",
    (_FIGURES, _POOLS, CAPACITY, COST, WORKLOADS),
)
