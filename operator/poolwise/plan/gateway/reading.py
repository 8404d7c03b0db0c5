"""From what an endpoint picker tells on ``/metrics`` to how many requests it holds.

Its flow control layer (feature gate ``flowControl``, off by default) keeps requests in a queue
while the pool has no endpoints. The queue's gauge bears labels of each flow: there is none before
the first request of a flow, and it goes minutes after the last. So an absent gauge is no queue only
where something else tells that the layer runs: its dispatch cycles are counted every millisecond,
and so is the saturation that they see, for as long as the process lives. They begin with it in the
llm-d router 0.9, and with its first request in 0.7 and 0.8, which are 1.4 and 1.5 of the Gateway
API Inference Extension. Older ones tell neither and yet a queue, and up to 1.2 of the extension
refuse requests at once where there is no endpoint: of them nothing is taken for granted.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from poolwise.plan.signals.adapters import Fault
from poolwise.plan.signals.exposition import Nonsense, Series, series_of
from poolwise.plan.signals.plausible import MOST_IN_FLIGHT

ENGINE = "gateway"
"""What an endpoint picker is called where engines have names."""
PREFIXES = ("llm_d_epp_", "inference_extension_")
"""The newest first; both are told for a while after a metric is renamed."""
QUEUE = "flow_control_queue_size"
CYCLES, SATURATION = "flow_control_dispatch_cycle_duration_seconds", "flow_control_pool_saturation"
"""Told once the layer runs, requests or none."""
METRICS = tuple(prefix + name for name in (QUEUE, CYCLES, SATURATION) for prefix in PREFIXES)
ALWAYS = tuple(
    prefix + name for name in (QUEUE, SATURATION, f"{CYCLES}_count") for prefix in PREFIXES
)
"""Single series that show when it was read."""
LABELS = frozenset(
    {"fairness_id", "priority", "inference_pool", "model_name", "target_model_name", "stage"}
)
"""Its own, beside those of whoever scraped it."""
_POOL = "inference_pool"
_SIGNS = tuple(prefix + name for name in (CYCLES, SATURATION) for prefix in PREFIXES)


@dataclass(frozen=True, slots=True)
class QueueTold:
    """One look at one endpoint picker."""

    replica: str
    """Name of its pod."""
    at_seconds: float
    runs_flow_control: bool
    """Told for sure, and in a release that holds requests while there is no endpoint."""
    queues: Mapping[str, float] = field(default_factory=dict)
    """Requests held, by the name of the InferencePool; empty: no series tells any."""
    pools: frozenset[str] = frozenset()
    """InferencePools that any series names."""


def read(text: str, replica: str, at_seconds: float) -> QueueTold | Fault:
    """What it told at that time (Unix seconds, by our clock)."""
    try:
        told = series_of(text, METRICS, at_seconds)
        queues = _queues(told)
    except Nonsense as error:
        return Fault(str(error))
    runs = any(name.startswith(_SIGNS) for name in told)
    named = (_pool(each) for series in told.values() for each in series)
    return QueueTold(replica, at_seconds, runs, queues, frozenset(filter(None, named)))


def _queues(told: Mapping[str, Sequence[Series]]) -> dict[str, float]:
    """Under the newest name alone: the older one tells the same."""
    found: dict[str, float] = {}
    name = next((each + QUEUE for each in PREFIXES if told.get(each + QUEUE)), "")
    for series in told.get(name, ()):
        if not math.isfinite(series.value):
            raise Nonsense(f"{name} is {series.value:g}, which no count can be")
        # Below zero for a moment, where a flow was forgotten while a request revived it.
        found[_pool(series)] = found.get(_pool(series), 0.0) + max(series.value, 0.0)
    if sum(found.values()) > MOST_IN_FLIGHT:
        raise Nonsense(f"{name} is {sum(found.values()):g}, more than a gateway can hold")
    return found


def _pool(series: Series) -> str:
    return dict(series.labels).get(_POOL, "")
