"""Every metric: its name, type, labels and meaning; docs/metrics.md is made from this.

Labels are bounded: kinds, verbs, reasons, pools, and (``POOLWISE_WORKLOAD_METRICS``) workloads. A
workload's name is a DNS label, there are as many as there are objects, and what is gone leaves no
series behind. Text that a user wrote is never a label.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Type = Literal["counter", "gauge", "histogram"]


@dataclass(frozen=True, slots=True)
class Definition:
    """One metric."""

    type: Type
    name: str
    """Without the prefix ``poolwise_``; of a counter, without ``_total``."""
    meaning: str
    labels: tuple[str, ...] = ()

    @property
    def full_name(self) -> str:
        """As Prometheus knows it."""
        return f"poolwise_{self.name}" + ("_total" if self.type == "counter" else "")


def _counter(name: str, meaning: str, *labels: str) -> Definition:
    return Definition("counter", name, meaning, labels)


def _gauge(name: str, meaning: str, *labels: str) -> Definition:
    return Definition("gauge", name, meaning, labels)


# The process

BUILD_INFO = _gauge("build_info", "1; its label is the running version.", "version")
READY = _gauge("ready", "1 while /readyz says ok.")
LEADER = _gauge("leader", "1 while this process is the leader: the only one that writes.")
DECISIONS = _counter("decisions", "Decisions that were told to users.", "kind", "reason")
REQUESTS = _counter(
    "api_requests", "Requests to the API server, without watches.", "verb", "resource", "code"
)
FAILURES = _counter("reconcile_failures", "Objects whose reconciliation failed.", "kind", "error")
GHOSTS = _counter(
    "cache_ghosts", "Objects that a relist found deleted, though no watch reported it.", "resource"
)
PLAN_SECONDS = Definition(
    "histogram", "plan_duration_seconds", "Time of one planning pass over the whole cluster."
)
QUEUE_DEPTH = _gauge("queue_depth", "Workloads that wait for a worker.")
LONGEST_RUNNING = _gauge(
    "longest_running_seconds",
    "How long the oldest unfinished pass, look or write of a loop has taken; 0 while it is idle.",
    "loop",
)
LOOP_LAG_SECONDS = _gauge("loop_lag_seconds", "How late the event loop ran its last timer.")
WATCH_AGE_SECONDS = _gauge(
    "watch_age_seconds",
    "Time since the watch of the kind that was silent longest received anything.",
    "resource",
)

# Pools

POOL_INFO = _gauge(
    "pool_info", "1; its labels say what the pool is.", "pool", "accelerator", "role"
)
POOL_CONDITION = _gauge(
    "pool_condition", "1 while the condition is True, else 0.", "pool", "condition"
)
POOL_NODES = _gauge(
    "pool_nodes", "Nodes by whether they can take work (usable) or not.", "pool", "state"
)
POOL_ACCELERATORS = _gauge(
    "pool_accelerators", "Accelerators of usable nodes: all, and free.", "pool", "state"
)
POOL_RIDGE = _gauge(
    "pool_ridge_flops_per_byte",
    "Ridge point: FLOPs per byte at which compute and memory bandwidth take equally long.",
    *("pool", "precision"),
)
POOL_PEAK = _gauge(
    "pool_peak_flops_per_second",
    "Dense peak of one accelerator; of all cores of a node in a CPU pool.",
    *("pool", "precision"),
)
POOL_BANDWIDTH = _gauge(
    "pool_memory_bandwidth_bytes_per_second",
    "Memory bandwidth of one accelerator, or of a CPU node.",
    "pool",
)
POOL_MEMORY = _gauge("pool_memory_bytes", "Memory of one accelerator, or of a CPU node.", "pool")
POOL_PRICE = _gauge("pool_price_per_hour", "Price of one node.", "pool", "currency")
POOL_IDLE_NODES = _gauge("pool_idle_nodes", "Usable nodes whose accelerators nobody holds.", "pool")
POOL_IDLE_COST = _gauge(
    "pool_idle_cost_per_hour", "Cost of the idle nodes of the pool together.", "pool", "currency"
)

# Workloads, as sums

WORKLOADS = _gauge("workloads", "Workloads by the reason of their state.", "kind", "reason")
COST = _gauge("cost_per_hour", "Predicted cost of placed workloads.", "kind", "pool")
TOKENS = _gauge(
    "predicted_tokens_per_second", "Predicted tokens of placed workloads.", "kind", "pool"
)

# Workloads, each

_KEY = ("kind", "namespace", "name")

WORKLOAD_INFO = _gauge(
    "workload_info",
    "1; its labels say where it runs, or would, and what holds it back.",
    *(*_KEY, "pool", "accelerator", "shape", "bottleneck"),
)
WORKLOAD_STATE = _gauge(
    "workload_state", "1; its label is the reason of the condition Ready.", *_KEY, "reason"
)
WORKLOAD_CONDITION = _gauge(
    "workload_condition",
    "1 while the condition (Ready, Stalled, Planned, Placed, ScalingActive) is True, else 0.",
    *(*_KEY, "condition"),
)
WORKLOAD_ACCELERATORS = _gauge(
    "workload_accelerators", "Accelerators that a placed workload holds.", *_KEY
)
WORKLOAD_REPLICAS = _gauge(
    "workload_replicas", "Replicas of a service: planned, and ready.", "namespace", "name", "state"
)
WORKLOAD_COST = _gauge("workload_cost_per_hour", "Predicted cost of a placed workload.", *_KEY)
WORKLOAD_PREDICTED_COST = _gauge("workload_predicted_cost", "Predicted cost of a whole run.", *_KEY)
WORKLOAD_ACCRUED_COST = _counter(
    "workload_cost",
    "What a workload has cost so far; grows while its pods are on nodes.",
    *(*_KEY, "currency"),
)
WORKLOAD_ACCRUED_ENERGY = _counter(
    "workload_energy_joules",
    "Energy that its accelerators have used so far, from their predicted power.",
    *_KEY,
)
WORKLOAD_STEP = _gauge(
    "workload_predicted_step_seconds", "Predicted time of one training step.", "namespace", "name"
)
WORKLOAD_TOKENS = _gauge(
    "workload_predicted_tokens_per_second", "Predicted tokens of all replicas together.", *_KEY
)
WORKLOAD_LATENCY = _gauge(
    "workload_predicted_latency_seconds",
    "Predicted TTFT, ITL, TPOT or E2E at the strictest percentile asked for, else at the 95th.",
    *("namespace", "name", "metric", "percentile"),
)
WORKLOAD_TARGET = _gauge(
    "workload_target_latency_seconds",
    "Latency target of spec.slo.",
    *("namespace", "name", "metric", "percentile"),
)
SERVICE_DESIRED = _gauge(
    "service_desired_replicas",
    "Replicas that the load of a service needs; in mode External for HPA or KEDA to follow, absent"
    " in mode Off.",
    *("namespace", "name"),
)
SERVICE_REPLICAS = _gauge(
    "service_current_replicas", "Replicas of a service that exist.", "namespace", "name"
)
SERVICE_HELD = _gauge(
    "service_held_requests",
    "Requests in the queue of the gateway in front of a service, as in its status.",
    *("namespace", "name"),
)
SERVICE_ATTAINMENT = _gauge(
    "service_slo_attainment",
    "Lower bound of the share of requests (for ITL of gaps between tokens) inside a target.",
    *("namespace", "name", "metric", "percentile"),
)
SERVICE_BURN_RATE = _gauge(
    "service_slo_burn_rate",
    "Share of requests beyond a target over the share that its percentile allows; above 1 the"
    " error budget runs out.",
    *("namespace", "name", "metric", "percentile"),
)
SERVICE_MISMATCH = _gauge(
    "service_mismatch",
    "1 while a service is not as planned, else 0, by reason of the condition AsPlanned.",
    *("namespace", "name", "reason"),
)
WORKLOAD_INTENSITY = _gauge(
    "workload_arithmetic_intensity_flops_per_byte",
    "FLOPs for each byte of memory read; below the ridge point memory bandwidth is the limit.",
    *_KEY,
)

PROCESS = (
    *(BUILD_INFO, READY, LEADER, DECISIONS, REQUESTS, FAILURES, GHOSTS, PLAN_SECONDS),
    *(QUEUE_DEPTH, LONGEST_RUNNING, LOOP_LAG_SECONDS, WATCH_AGE_SECONDS),
)
POOLS = (
    *(POOL_INFO, POOL_CONDITION, POOL_NODES, POOL_ACCELERATORS, POOL_RIDGE, POOL_PEAK),
    *(POOL_BANDWIDTH, POOL_MEMORY, POOL_PRICE, POOL_IDLE_NODES, POOL_IDLE_COST),
)
SUMS = (WORKLOADS, COST, TOKENS)
EACH_WORKLOAD = (
    *(WORKLOAD_INFO, WORKLOAD_STATE, WORKLOAD_CONDITION, WORKLOAD_ACCELERATORS),
    *(WORKLOAD_REPLICAS, WORKLOAD_COST, WORKLOAD_STEP, WORKLOAD_TOKENS, WORKLOAD_LATENCY),
    *(WORKLOAD_TARGET, WORKLOAD_INTENSITY, WORKLOAD_PREDICTED_COST),
    *(WORKLOAD_ACCRUED_COST, WORKLOAD_ACCRUED_ENERGY),
    *(SERVICE_DESIRED, SERVICE_REPLICAS, SERVICE_HELD),
    *(SERVICE_ATTAINMENT, SERVICE_BURN_RATE, SERVICE_MISMATCH),
)

SECTIONS: Mapping[str, tuple[Definition, ...]] = {
    "The process": PROCESS,
    "Pools": POOLS,
    "Workloads, as sums": SUMS,
    "Workloads, each": EACH_WORKLOAD,
}
"""All of them, as the page shows them."""
