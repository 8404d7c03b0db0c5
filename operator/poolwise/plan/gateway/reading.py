"""From what an endpoint picker tells on ``/metrics`` to how many requests it holds, and beside that
to what it measured of those that it passed on (:mod:`.latencies`).

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
from dataclasses import dataclass, field, replace

from poolwise.plan.gateway import latencies
from poolwise.plan.signals.adapters import Fault, series_names
from poolwise.plan.signals.exposition import Nonsense, Series, series_of
from poolwise.plan.signals.plausible import MOST_IN_FLIGHT
from poolwise.plan.signals.sample import Sample

ENGINE = "gateway"
"""What an endpoint picker is called where engines have names."""
QUEUE_ALONE = "gateway-queue"
"""The same where its queue alone is asked for: of a service that sleeps it is, each second."""
PREFIXES = ("llm_d_epp_", "inference_extension_")
"""The newest first; both are told for a while after a metric is renamed."""
QUEUE = "flow_control_queue_size"
CYCLES, SATURATION = "flow_control_dispatch_cycle_duration_seconds", "flow_control_pool_saturation"
"""Told once the layer runs, requests or none."""
_OF_QUEUE = tuple(prefix + name for name in (QUEUE, CYCLES, SATURATION) for prefix in PREFIXES)
METRICS = (*_OF_QUEUE, *sorted(series_names((latencies.PICKER,))))
ALWAYS = tuple(
    prefix + name for name in (QUEUE, SATURATION, f"{CYCLES}_count") for prefix in PREFIXES
)
"""Single series that show when it was read."""
LABELS = frozenset({"inference_pool", "stage"}) | latencies.PICKER.labels
"""Its own, beside those of whoever scraped it."""
_POOL = "inference_pool"
_SIGNS = tuple(prefix + name for name in (CYCLES, SATURATION) for prefix in PREFIXES)


@dataclass(frozen=True, slots=True)
class PickerTold:
    """One look at one endpoint picker."""

    replica: str
    """Name of its pod."""
    at_seconds: float
    runs_flow_control: bool
    """Told for sure, and in a release that holds requests while there is no endpoint."""
    queues: Mapping[str, float] = field(default_factory=dict)
    """Requests held, by the name of the InferencePool; empty: no series tells any."""
    pools: frozenset[str] = frozenset()
    """InferencePools that any series of its queue names."""
    measured: Sample | None = None
    """Of the requests that it passed on; None: nothing yet, or nothing that can be used."""
    problem: str = ""
    """Why it cannot be used, where it told something."""


def read(text: str, replica: str, at_seconds: float) -> PickerTold | Fault:
    """What it told at that time (Unix seconds, by our clock).

    Nonsense in latencies is told of beside its queue, which is not doubted for it.
    """
    found = read_queue(text, replica, at_seconds)
    if isinstance(found, Fault):
        return found
    measured = latencies.read(text, replica, at_seconds)
    if isinstance(measured, Fault):
        return replace(found, problem=measured.reason)
    return replace(found, measured=measured)


def read_queue(text: str, replica: str, at_seconds: float) -> PickerTold | Fault:
    """The same without latencies."""
    try:
        told = series_of(text, _OF_QUEUE, at_seconds)
        queues = _queues(told)
    except Nonsense as error:
        return Fault(str(error))
    runs = any(name.startswith(_SIGNS) for name in told)
    named = (_pool(each) for series in told.values() for each in series)
    return PickerTold(replica, at_seconds, runs, queues, frozenset(filter(None, named)))


def _queues(told: Mapping[str, Sequence[Series]]) -> dict[str, float]:
    """Under the newest name alone: the older one tells the same."""
    found: dict[str, float] = {}
    name = next((each + QUEUE for each in PREFIXES if told.get(each + QUEUE)), "")
    for series in told.get(name, ()):
        if not math.isfinite(series.value):
            raise Nonsense(f"{name} is {series.value:g}, which is not a possible count")
        # Below zero for a moment, where a flow was forgotten while a request revived it.
        found[_pool(series)] = found.get(_pool(series), 0.0) + max(series.value, 0.0)
    if sum(found.values()) > MOST_IN_FLIGHT:
        raise Nonsense(f"{name} is {sum(found.values()):g}, more than a gateway can hold")
    return found


def _pool(series: Series) -> str:
    return dict(series.labels).get(_POOL, "")
