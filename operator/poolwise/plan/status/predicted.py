"""A prediction as JSON: bottleneck, ledger, memory, and times with their ranges."""

from __future__ import annotations

import math
from collections.abc import Mapping

from poolwise.model.prediction import (
    Bottleneck,
    Interval,
    Measured,
    Memory,
    ServingPrediction,
    Term,
    TrainingPrediction,
)
from poolwise.model.ranges import capacity_range
from poolwise.plan.rounding import Story, present

LEAST_GAIN = 1e-6
"""Of 10 % more of a resource: smaller ones are what bisection leaves, and told as 0."""
LEAST_SHARE = 1e-9
"""Of a ledger's sum that a term must have to be told."""


def bottleneck_story(bottleneck: Bottleneck) -> Story:
    """The resource that decides, and what 10 % more of each would gain."""
    gains = sorted(bottleneck.gains.items(), key=lambda item: (-item[1], item[0]))
    return {
        "bottleneck": bottleneck.resource.value,
        "gains": {
            resource.value: gain if abs(gain) >= LEAST_GAIN else 0.0 for resource, gain in gains
        },
    }


def prediction_story(
    prediction: TrainingPrediction | ServingPrediction, bottleneck: Bottleneck | None
) -> Story:
    """All that a prediction tells; ``bottleneck`` is what the range of a capacity follows from."""
    return {
        "ledger": _ledger(prediction.ledger),
        "memory": _memory(prediction.memory),
        "predicted": present(_predicted(prediction, bottleneck)),
        "arithmeticIntensity": prediction.arithmetic_intensity,
        "ridgePoint": prediction.ridge_point,
        "powerWatts": prediction.power_watts,
        "provenance": prediction.provenance,
        "correctedBy": dict(prediction.corrected_by) or None,
        "correctedFrom": _measured(prediction.measured) or None,
    }


def memory_story(memory: Memory) -> Story:
    """Of a shape that does not fit, and of which nothing else is predicted."""
    return {"memory": _memory(memory), "predicted": _needed(memory)}


def _measured(told: Mapping[str, Measured]) -> Story:
    """What corrections follow from, by phase."""
    return {
        phase: {"ratio": each.ratio, "samples": each.samples}
        | ({"elsewhere": True} if each.elsewhere else {})
        for phase, each in told.items()
    }


def _ledger(terms: tuple[Term, ...]) -> list[Story]:
    """Sums to ``stepSeconds`` of a job and ``meanRequestSeconds`` of a service."""
    least_seconds = LEAST_SHARE * sum(term.seconds for term in terms)
    told = (term for term in terms if abs(term.seconds) > least_seconds)
    return [{"term": term.name, "seconds": term.seconds} for term in told]


def _memory(memory: Memory) -> Story:
    uses = {
        "weightsBytes": memory.weights_bytes,
        "gradientsBytes": memory.gradients_bytes,
        "optimizerBytes": memory.optimizer_bytes,
        "activationsBytes": memory.activations_bytes,
        "kvCacheBytes": memory.kv_cache_bytes,
        "reserveBytes": memory.reserve_bytes,
    }
    used = {name: size_bytes for name, size_bytes in uses.items() if size_bytes}
    need = {"neededBytes": memory.needed_bytes, "mostBytes": memory.most_bytes}
    return {"usableBytes": memory.usable_bytes, **need, **used}


def _needed(memory: Memory) -> Story:
    return {
        "memoryBytesPerAccelerator": memory.needed_bytes,
        "memoryBytesPerAcceleratorHigh": memory.most_bytes,
    }


def _predicted(
    prediction: TrainingPrediction | ServingPrediction, bottleneck: Bottleneck | None
) -> Story:
    if isinstance(prediction, TrainingPrediction):
        return _training(prediction)
    return _serving(prediction) | (_capacity(prediction, bottleneck) if bottleneck else {})


def _training(prediction: TrainingPrediction) -> Story:
    has_tokens = prediction.tokens_per_second is not None
    return {
        **_interval("step", prediction.step_seconds),
        "tokensPerSecond": prediction.tokens_per_second,
        "samplesPerSecond": None if has_tokens else prediction.samples_per_second,
        **_needed(prediction.memory),
    }


def _serving(prediction: ServingPrediction) -> Story:
    """Times at the planned load of one replica; its capacity inside the targets.

    ``meanRequestSeconds`` is what the ledger sums to; the other times are percentiles.
    """
    return {
        **_interval("ttft", prediction.ttft_seconds),
        **_interval("itl", prediction.itl_seconds),
        **(_interval("tpot", prediction.tpot_seconds) if prediction.tpot_seconds else {}),
        **_interval("e2e", prediction.e2e_seconds),
        "meanRequestSeconds": prediction.mean_request_seconds,
        "requestsPerSecondPerReplica": prediction.capacity_requests_per_second,
        "limiting": prediction.limiting,
        **(_at_rate(prediction) if prediction.requests_per_second else {}),
        **_needed(prediction.memory),
    }


def _at_rate(prediction: ServingPrediction) -> Story:
    """What the planned load of one replica comes to; a service without a peak has none yet."""
    has_tokens = prediction.tokens_per_second is not None
    return {
        "plannedRequestsPerSecondPerReplica": prediction.requests_per_second,
        "concurrency": prediction.concurrency,
        "tokensPerSecond": prediction.tokens_per_second,
        "samplesPerSecond": None if has_tokens else prediction.requests_per_second,
    }


def _capacity(prediction: ServingPrediction, bottleneck: Bottleneck) -> Story:
    """The range of the capacity, which follows from that of the times."""
    found = capacity_range(prediction, bottleneck)
    return {
        "requestsPerSecondPerReplicaLow": found.low,
        "requestsPerSecondPerReplicaHigh": found.high,
    }


def _interval(name: str, interval: Interval) -> Story:
    """A time with its range; nothing for a time without meaning, as an encoder's TTFT."""
    if not interval.mid or not math.isfinite(interval.mid):
        return {}
    return {
        f"{name}Seconds": interval.mid,
        f"{name}SecondsLow": interval.low,
        f"{name}SecondsHigh": interval.high,
    }
