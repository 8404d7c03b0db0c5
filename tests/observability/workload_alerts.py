"""Cases of the alerts about workloads and pools."""

from __future__ import annotations

from tests.observability.alert_case import Case
from tests.observability.operator_alerts import own

CHAT = {"kind": "InferenceService", "namespace": "chat", "name": "assistant"}
SERVICE = {"namespace": "chat", "name": "assistant"}


def of(metric: str, replica: str = "a", /, **labels: str) -> str:
    """A series of one workload, as the operator exports it; its namespace is the workload's."""
    return own(f"poolwise_workload_{metric}", replica, **(CHAT | labels))


def _latency(what: str, metric: str) -> str:
    return own(
        f"poolwise_workload_{what}_latency_seconds", **SERVICE, metric=metric, percentile="99"
    )


def _pool(metric: str, /, **labels: str) -> str:
    return own(f"poolwise_pool_{metric}", **({"pool": "h100"} | labels))


def engine(histogram: str, of_service: str = "assistant", **counts: str) -> dict[str, str]:
    """Buckets of one replica; ``counts`` are named by their bounds: ``le_0_5``, ``le_inf``."""
    scraped = f'namespace="chat",pod="assistant-0",model_name="m",engine="0",name="{of_service}"'
    series = {
        f'vllm:{histogram}_bucket{{{scraped},le="{_bound(name)}"}}': values
        for name, values in counts.items()
    }
    return {**series, f"vllm:{histogram}_count{{{scraped}}}": counts["le_inf"]}


def _bound(name: str) -> str:
    return name.removeprefix("le_").replace("_", ".").replace("inf", "+Inf")


TTFT, E2E, ITL = (
    "time_to_first_token_seconds",
    "e2e_request_latency_seconds",
    "inter_token_latency_seconds",
)
_SLOW = engine(TTFT, le_0_5="0+180x60", le_1="0+200x60", le_inf="0+200x60")
"""200 requests a minute, of which one in ten takes 0.5 to 1 s: p99 is 0.95 s."""
_STALLED = of("condition", condition="Stalled")
_PLACED = of("condition", condition="Placed")
_PLANNED = own("poolwise_workload_replicas", **SERVICE, state="planned")
_READY = own("poolwise_workload_replicas", **SERVICE, state="ready")
_THREE = {_PLANNED: "3x60", _PLACED: "1x60", _STALLED: "0x60"}
_ASLEEP = {
    _PLANNED: "0x90",
    _READY: "0x90",
    _PLACED: "1x90",
    _STALLED: "0x90",
    of("state", reason="ScaledToZero"): "1x90",
    own("poolwise_service_desired_replicas", **SERVICE): "0x90",
    own("poolwise_service_held_requests", **SERVICE): "0x90",
}
_MISMATCH = own("poolwise_service_mismatch", **SERVICE, reason="Preemptions")
_NODES, _PRICE = _pool("nodes", state="usable"), _pool("price_per_hour", currency="USD")
_ALL, _FREE = (_pool("accelerators", state=state) for state in ("all", "free"))
_IDLE = {_NODES: "4x500", _PRICE: "12x500", _ALL: "32x500", _FREE: "24x500"}

WORKLOAD_CASES = (
    Case(
        "PoolwiseWorkloadStalled",
        {
            _STALLED: "1x30",
            of("condition", "b", condition="Stalled"): "1x30",
            of("state", reason="CrashLoop"): "1x30",
        },
        15,
        CHAT,
        "InferenceService chat/assistant has been stalled for 15 minutes, for the reason "
        "CrashLoop.",
        {
            "stalled for ten minutes": {_STALLED: "1x10 0x30"},
            "waiting": {_STALLED: "0x30", of("state", reason="InsufficientCapacity"): "1x30"},
            "asleep": _ASLEEP,
        },
    ),
    Case(
        "PoolwiseWorkloadWaiting",
        {of("state", reason="InsufficientCapacity"): "1x90"},
        60,
        CHAT,
        "InferenceService chat/assistant has waited for free capacity for an hour.",
        {
            "placed after 59 minutes": {of("state", reason="InsufficientCapacity"): "1x59 stale"},
            "running": {of("state", reason="Running"): "1x90"},
            "asleep": _ASLEEP,
        },
    ),
    Case(
        "PoolwiseWorkloadPodsFailing",
        {of("state", reason="OutOfMemory"): "1x30"},
        15,
        {**CHAT, "reason": "OutOfMemory"},
        "InferenceService chat/assistant has had the reason OutOfMemory for 15 minutes.",
        {"starting": {of("state", reason="Starting"): "1x30"}, "asleep": _ASLEEP},
    ),
    Case(
        "PoolwiseReplicasMissing",
        {**_THREE, _READY: "2x60"},
        30,
        SERVICE,
        "1 replicas of chat/assistant have not been ready for 30 minutes.",
        {
            "all ready": {**_THREE, _READY: "3x60"},
            "not placed": {**_THREE, _PLACED: "0x60", _READY: "0x60"},
            "stalled, which is told already": {**_THREE, _STALLED: "1x60", _READY: "2x60"},
            "ready in time": {**_THREE, _READY: "2x29 3x30"},
            "asleep": _ASLEEP,
        },
    ),
    Case(
        "PoolwiseServiceCannotWake",
        {of("state", reason="AtCapacity"): "1x30"},
        5,
        SERVICE,
        "chat/assistant has no replica, a gateway has held requests for 5 minutes, and there is no "
        "free room for the first one.",
        {
            "asleep": _ASLEEP,
            "room in time": {of("state", reason="AtCapacity"): "1x4 stale"},
            "waking": {of("state", reason="Starting"): "1x30"},
        },
    ),
    Case(
        "PoolwiseServiceNotScaled",
        {of("condition", condition="ScalingActive"): "0x30"},
        15,
        SERVICE,
        "chat/assistant has not been scaled down or up as its load asks for 15 minutes; its "
        "conditions ScalingActive and MetricsAvailable say why.",
        {
            "mended in time": {of("condition", condition="ScalingActive"): "0x10 1x20"},
            "nobody has looked yet": {of("condition", condition="Placed"): "0x30"},
        },
    ),
    Case(
        "PoolwiseServiceNotAsPlanned",
        {_MISMATCH: "1x60"},
        15,
        {**SERVICE, "reason": "Preemptions"},
        "chat/assistant has had the mismatch Preemptions for 15 minutes; its condition AsPlanned "
        "has the numbers and the advice.",
        {
            "gone in time": {_MISMATCH: "1x10 _x50"},
            "a model that is off": {
                own("poolwise_service_mismatch", **SERVICE, reason="Mispredicted"): "1x60"
            },
        },
    ),
    Case(
        "PoolwiseTailAboveTarget",
        {**_SLOW, _latency("target", "TTFT"): "0.8x60"},
        11,
        {**SERVICE, "metric": "TTFT", "percentile": "99"},
        "TTFT p99 of chat/assistant is 950ms, the target is 800ms.",
        {
            "inside the target": {**_SLOW, _latency("target", "TTFT"): "1x60"},
            "another metric's target": {**_SLOW, _latency("target", "E2E"): "0.8x60"},
            "idle": {
                **engine(TTFT, le_0_5="180x60", le_1="200x60", le_inf="200x60"),
                _latency("target", "TTFT"): "0.8x60",
            },
            "too few requests for a tail": {
                **engine(TTFT, le_0_5="0x60", le_1="0+9x60", le_inf="0+9x60"),
                _latency("target", "TTFT"): "0.8x60",
            },
            "not started": {_latency("target", "TTFT"): "0.8x60"},
            "an engine of somebody else": {
                **engine(TTFT, "", le_0_5="0x60", le_1="0+200x60", le_inf="0+200x60"),
                _latency("target", "TTFT"): "0.8x60",
            },
            "a spike that ends": {
                **engine(TTFT, le_0_5="0+200x20 4000x40", le_1="0+200x20", le_inf="0+200x60"),
                _latency("target", "TTFT"): "0.8x60",
            },
        },
    ),
    Case(
        "PoolwisePredictionOff",
        {
            **engine(E2E, le_1_5="0x60", le_2="0+200x60", le_inf="0+200x60"),
            _latency("predicted", "E2E"): "0.5x60",
        },
        31,
        {**SERVICE, "metric": "E2E", "percentile": "99"},
        "E2E p99 of chat/assistant has been 3.99 times its prediction for 30 minutes.",
        {
            "within a bucket's width": {
                **engine(ITL, le_0_01="0x60", le_0_025="0+200x60", le_inf="0+200x60"),
                _latency("predicted", "ITL"): "0.01x60",
            },
            "inside the first bucket": {
                **engine(ITL, le_0_01="0+200x60", le_inf="0+200x60"),
                _latency("predicted", "ITL"): "0.002x60",
            },
            "idle": {
                **engine(E2E, le_1_5="0x60", le_2="200x60", le_inf="200x60"),
                _latency("predicted", "E2E"): "0.5x60",
            },
        },
    ),
    Case(
        "PoolwisePoolUnusable",
        {_pool("condition", condition="Ready"): "0x60"},
        30,
        {"pool": "h100"},
        "AcceleratorPool h100 has not been Ready for 30 minutes; its conditions say why.",
        {"ready again in time": {_pool("condition", condition="Ready"): "0x29 1x30"}},
    ),
    Case(
        "PoolwisePoolHardwareUnknown",
        {_pool("condition", condition="HardwareKnown"): "0x60"},
        15,
        {"pool": "h100"},
        "Labels of the nodes of AcceleratorPool h100 are missing, unknown or contradict each "
        "other. Nothing is placed there.",
        {"only estimated": {_pool("condition", condition="HardwareEstimated"): "0x60"}},
    ),
    Case(
        "PoolwisePoolDevicesMissing",
        {_pool("condition", condition="DevicesHealthy"): "0x60"},
        30,
        {"pool": "h100"},
        "Nodes of AcceleratorPool h100 have offered too few devices for 30 minutes.",
        {"all there": {_pool("condition", condition="DevicesHealthy"): "1x60"}},
    ),
    Case(
        "PoolwisePoolNodesUnusable",
        {_pool("nodes", state="unusable"): "2x90", _NODES: "4x90"},
        60,
        {"pool": "h100"},
        "2 nodes of AcceleratorPool h100 have been unusable for an hour: cordoned, not ready, "
        "tainted or being deleted.",
        {"back after 59 minutes": {_pool("nodes", state="unusable"): "2x59 0x30"}},
    ),
    Case(
        "PoolwiseAcceleratorsIdle",
        _IDLE,
        360,
        {"pool": "h100", "currency": "USD"},
        "For 6 hours half of AcceleratorPool h100 or more has been free; that costs 36 USD per "
        "hour.",
        {
            "just below half": {**_IDLE, _FREE: "15x500"},
            "without a price": {name: values for name, values in _IDLE.items() if name != _PRICE},
            "CPUs": {**_IDLE, _ALL: "0x500", _FREE: "0x500"},
            "used for an hour": {**_IDLE, _FREE: "24x100 0x60 24x340"},
        },
    ),
)
