"""One workload: where it runs and why, and whether it does what was predicted and asked."""

from __future__ import annotations

from grafana_foundation_sdk.models.dashboard import VariableSort

from observability.frame import Frame, Section, label_variable
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
    tile,
    value_of,
)
from observability.query import Query, gauge
from observability.workload_latency import LATENCY, SCALING, THROUGHPUT

THIS = 'namespace="$namespace", name="$name"'
OF_KIND = f'kind="$kind", {THIS}'
"""Of metrics that both kinds have: a job and a service may have the same name."""


def of_this(metric: str, *labels: str, where: str = "") -> str:
    """A gauge of the chosen workload."""
    return gauge(f"workload_{metric}{{{OF_KIND}{where}}}", *labels)


_INFO = of_this("info", "kind", "pool", "accelerator", "shape", "bottleneck")
_POOL = f"max by (pool) (poolwise_workload_info{{{OF_KIND}}})"
_RIDGE = gauge("pool_ridge_flops_per_byte", "pool", "precision")
_COST = of_this("cost_per_hour")
_TRUE_FALSE = {"1": ("True", GREEN), "0": ("False", YELLOW)}
_STALLED = {"1": ("yes", RED), "0": ("no", GREEN)}

_WHERE = Section(
    "Where it runs, and why",
    (
        grid(
            About(
                "Placement",
                "The pool and shape that were chosen, and the resource of which 10 % more would "
                "gain most. poolwise explain KIND/NAME tells why, and what spoke against the "
                "other pools.",
                "none",
                width=16,
                height=5,
            ),
            (Query(_INFO), Query(of_this("state", "kind", "reason"))),
            {
                "kind": Column("Kind"),
                "reason": Column("State"),
                "pool": Column("Pool"),
                "accelerator": Column("Accelerator"),
                "shape": Column("Shape"),
                "bottleneck": Column("Bottleneck"),
                value_of(0): None,
                value_of(1): None,
            },
        ),
        grid(
            About(
                "Conditions",
                "What is so and what is not. Stalled needs somebody: kubectl describe has the "
                "message, docs/conditions.md says what to do.",
                "none",
                width=8,
                height=5,
            ),
            (Query(of_this("condition", "condition", where=', condition!="Stalled"')),),
            {"condition": Column("Condition"), value_of(0): Column("Is", "", _TRUE_FALSE)},
        ),
        figure(
            tile(
                "Stalled",
                "Whether it waits for somebody to change something. Yes: the state above is the "
                "reason, and docs/conditions.md says what to do.",
                "none",
                base=GREEN,
            ),
            Query(of_this("condition", where=', condition="Stalled"')),
            mappings=_STALLED,
        ),
        figure(
            tile(
                "Accelerators",
                "Accelerators that it holds now. Zero: it waits, has ended, or runs on CPUs.",
                "none",
            ),
            Query(of_this("accelerators")),
        ),
        figure(
            tile(
                "Replicas",
                "Replicas of a service: planned from its peak traffic, and ready. Fewer ready "
                "than planned for long: look at its pods. A job has none.",
                "none",
            ),
            Query(
                gauge(f"workload_replicas{{{THIS}}}", "state"),
                "{{state}}",
            ),
        ),
        figure(
            tile(
                "Cost per hour",
                "Of all that it holds, at the pool's price. Too high: limit "
                "objective.maxCostPerHour, or let it use cheaper pools.",
                "suffix:/h",
            ),
            Query(_COST),
        ),
        figure(
            tile(
                "Predicted step",
                "Predicted time of one optimizer step; a service has none. Compare it with the "
                "steps in the job's own log.",
                "s",
            ),
            Query(gauge(f"workload_predicted_step_seconds{{{THIS}}}")),
        ),
        figure(
            tile(
                "Arithmetic intensity",
                "FLOP for each byte of memory traffic. Below the ridge points of its pool it is "
                "bound by memory bandwidth, above by compute.",
                "si:FLOP/B",
            ),
            Query(of_this("arithmetic_intensity_flops_per_byte")),
        ),
    ),
)

_ROOFLINE = Section(
    "Roofline, cost and decisions",
    (
        bars(
            About(
                "Intensity against ridge points",
                "The workload beside the ridge points of its pool, one for each precision. Far "
                "below them, a pool with cheaper memory bandwidth would do as well.",
                "si:FLOP/B",
                base=BLUE,
            ),
            Query(of_this("arithmetic_intensity_flops_per_byte"), "this workload"),
            Query(f"{_RIDGE} and on (pool) {_POOL}", "{{pool}} {{precision}}"),
        ),
        series(
            About(
                "Cost per hour",
                "Predicted cost of what it holds. A step is a decision: another pool, another "
                "number of accelerators, or another price.",
                "suffix:/h",
            ),
            Query(_COST, "cost"),
        ),
        series(
            About(
                "State",
                "Reason of the condition Ready over time; each is 1 while it holds. A state that "
                "comes and goes means that pods fail again and again: read their logs.",
                "none",
            ),
            Query(of_this("state", "reason"), "{{reason}}"),
            stacked=True,
        ),
        series(
            About(
                "Cost so far",
                "What it has cost, and what the whole of a run is predicted to cost. Above the "
                "dashed line it runs longer than predicted: see the condition WithinBudget.",
                "none",
                width=12,
            ),
            Query(
                f"max by (currency) (poolwise_workload_cost_total{{{OF_KIND}}})",
                "so far ({{currency}})",
            ),
            Query(gauge(f"workload_predicted_cost{{{THIS}}}"), "predicted"),
            dashed="predicted",
        ),
        series(
            About(
                "Energy so far",
                "What its accelerators have used, by their predicted power; hosts, networks and "
                "cooling are not in it. Compare it with the pool's power meters.",
                "joule",
                width=12,
            ),
            Query(f"max(poolwise_workload_energy_joules_total{{{OF_KIND}}})", "so far"),
        ),
        series(
            About(
                "Decisions of its kind",
                "Decisions told to users, by reason, for all workloads of this kind. Those of one "
                "workload are its Events: kubectl describe.",
                "suffix:/min",
                width=24,
                height=7,
            ),
            Query(
                "60 * sum by (kind, reason) (rate(poolwise_decisions_total[$__rate_interval])) "
                f"and on (kind) max by (kind) (poolwise_workload_state{{{OF_KIND}}})",
                "{{kind}} {{reason}}",
            ),
        ),
    ),
)

_PREDICTED = f"poolwise_workload_predicted_latency_seconds{{{THIS}}}"
_PERCENTILES = (
    f"query_result(count by (percentile) ({_PREDICTED}) or "
    f'(label_replace(vector(99), "percentile", "99", "", "") unless on () {_PREDICTED}))'
)
"""Those that are predicted; 99 where none is, so that no query is left with a hole in it."""

WORKLOAD = Frame(
    "workload",
    "Poolwise / Workload",
    "One TrainingJob or InferenceService: where it runs and why, its latency against prediction "
    "and target, its throughput, its cost. Observed figures are the engine's own (vLLM).",
    (_WHERE, LATENCY, SCALING, THROUGHPUT, _ROOFLINE),
    (
        label_variable(
            "namespace", "Namespace", "label_values(poolwise_workload_state, namespace)"
        ),
        label_variable(
            "name", "Name", 'label_values(poolwise_workload_state{namespace="$namespace"}, name)'
        ),
        label_variable("kind", "Kind", f"label_values(poolwise_workload_state{{{THIS}}}, kind)"),
        label_variable("percentile", "Percentile", _PERCENTILES)
        .regex('/percentile="([^"]+)"/')
        .sort(VariableSort.NUMERICAL_ASC),
    ),
)
