"""The workloads of the whole fleet: their states, their bottlenecks, and a way to each one."""

from __future__ import annotations

from observability.frame import Section, uid
from observability.panels import BLUE, About, Column, bars, grid, series, value_of
from observability.query import Query, gauge

WORKLOAD_KEY = ("kind", "namespace", "name")
_LINK = (
    f"/d/{uid('workload')}?var-datasource=${{datasource}}"
    "&var-namespace=${__data.fields.Namespace}&var-name=${__data.fields.Name}"
    "&var-kind=${__data.fields.Kind}&${__url_time_range}"
)

WORKLOADS = Section(
    "Workloads",
    (
        series(
            About(
                "Workloads by state",
                "Reasons of the condition Ready. InsufficientCapacity waits for room; most others "
                "that stay need somebody: docs/conditions.md says what to do.",
                "none",
            ),
            Query(
                f"sum by (reason) ({gauge('workloads', 'kind', 'reason')})",
                "{{reason}}",
            ),
            stacked=True,
        ),
        series(
            About(
                "Decisions",
                "Decisions that users were told, by reason. A steady rate without new workloads "
                "means that something is decided again and again: look at the operator's log.",
                "suffix:/min",
            ),
            Query(
                "60 * sum by (reason) (rate(poolwise_decisions_total[$__rate_interval]))",
                "{{reason}}",
            ),
        ),
        bars(
            About(
                "Bottlenecks",
                "What bounds the placed workloads: the resource of which 10 % more would gain "
                "most. It tells what to buy next.",
                "none",
                base=BLUE,
            ),
            Query(
                "count by (bottleneck) ("
                + gauge('workload_info{bottleneck!=""}', *WORKLOAD_KEY, "bottleneck")
                + ")",
                "{{bottleneck}}",
            ),
        ),
        grid(
            About(
                "Workloads",
                "Where each one runs and what bounds it; its name opens its own dashboard. Empty "
                "with POOLWISE_WORKLOAD_METRICS=false.",
                "none",
                width=24,
                height=10,
            ),
            (
                Query(
                    gauge(
                        "workload_info", *WORKLOAD_KEY, "pool", "accelerator", "shape", "bottleneck"
                    )
                ),
                Query(gauge("workload_state", *WORKLOAD_KEY, "reason")),
                Query(gauge("workload_accelerators", *WORKLOAD_KEY)),
                Query(gauge("workload_cost_per_hour", *WORKLOAD_KEY)),
                Query(gauge("workload_predicted_tokens_per_second", *WORKLOAD_KEY)),
            ),
            {
                "namespace": Column("Namespace"),
                "name": Column("Name"),
                "kind": Column("Kind"),
                "reason": Column("State"),
                "pool": Column("Pool"),
                "accelerator": Column("Accelerator"),
                "shape": Column("Shape"),
                "bottleneck": Column("Bottleneck"),
                value_of(0): None,
                value_of(1): None,
                value_of(2): Column("Accelerators"),
                value_of(3): Column("Cost", "suffix:/h"),
                value_of(4): Column("Predicted tokens per second", "si:tokens/s"),
            },
            links={"Name": _LINK},
        ),
    ),
)
