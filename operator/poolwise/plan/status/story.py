"""A plan as JSON: what ``poolwise plan -o json`` prints and ``status.plan`` holds.

Both tell the same, in the form of api.md: numbers rounded to four significant digits (so that
computing again writes nothing), and absent where they have no meaning.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

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
from poolwise.model.training.memory import peak_bytes
from poolwise.model.work import ServingLayout, TrainingLayout
from poolwise.plan.conditions import timestamp
from poolwise.plan.decision import Candidate, Plan
from poolwise.plan.joint.outcome import Price
from poolwise.plan.pool import CPU, Pool
from poolwise.plan.shape import Layout, shape
from poolwise.plan.wording import gib, sentence, significant, three_digits

Story = dict[str, Any]

TOKEN_LIMITS = ("maxModelLength", "maxBatchedTokens")
LEAST_GAIN = 1e-6
"""Of 10 % more of a resource: smaller ones are what bisection leaves, and told as 0."""
LEAST_SHARE = 1e-9
"""Of a ledger's sum that a term must have to be told."""


def story(plan: Plan, pool: Pool | None, candidate_limit: int | None = None) -> Story:
    """The decision with its candidates, best first: all of them, or so many.

    ``pool`` is the chosen one, for what its price is in.
    """
    shown = sorted(plan.candidates, key=_by_merit)[:candidate_limit]
    omitted = len(plan.candidates) - len(shown)
    return _present(
        {
            **(_figures(plan.chosen) if plan.chosen else {}),
            "placed": plan.placed,
            "stepsAhead": None if plan.steps_ahead is None else math.ceil(plan.steps_ahead),
            "generation": plan.generation,
            "summary": summary(plan.chosen) if plan.chosen else None,
            "rollout": _rollout(plan),
            "currency": pool.price.currency if pool and pool.price else None,
            "prices": [_price(each) for each in plan.prices] or None,
            "expectedStartTime": timestamp(plan.expected_start) if plan.expected_start else None,
            "reason": sentence(plan.reason),
            "reasonCode": plan.reason_code,
            "significant": plan.is_significant if plan.placed else None,
            "candidates": [candidate_story(each) for each in shown],
            "candidatesOmitted": omitted or None,
        }
    )


def _price(price: Price) -> Story:
    """What an hour of a scarce pool costs everybody else; in money where that is known."""
    return _present(
        {
            "pool": price.pool,
            "perAcceleratorHour": price.per_hour or None,
            "delaySecondsPerAcceleratorSecond": price.delay,
            "reason": sentence(price.reason),
        }
    )


def _rollout(plan: Plan) -> str | None:
    """How an update of a service goes: whether there is room to start a new replica first."""
    if plan.chosen is None or plan.chosen.replicas is None or not plan.placed:
        return None
    return rollout(plan.may_surge)


def rollout(may_surge: bool) -> str:
    """Whether an update starts a new replica before it stops an old one."""
    return "StartFirst" if may_surge else "StopFirst"


def candidate_story(candidate: Candidate) -> Story:
    """One pool at its best shape."""
    return _present(
        {
            **_figures(candidate),
            "feasible": candidate.feasible,
            "chosen": candidate.chosen or None,
            "waits": candidate.waits or None,
            "reason": sentence(candidate.reason),
            "reasonCode": candidate.reason_code,
        }
    )


def summary(candidate: Candidate) -> Story:
    """The plan in words, for ``kubectl get``."""
    return _present(
        {
            "accelerators": _accelerators(candidate),
            "shape": shape_words(candidate.layout) if candidate.layout else None,
        }
    )


def shape_words(layout: Layout) -> str:
    """Parallel sizes above 1: ``dp4 tp8 pp2``; of a CPU replica its size.

    >>> shape_words(TrainingLayout(data=4, tensor=8, pipeline=2))
    'dp4 tp8 pp2'
    """
    if isinstance(layout, ServingLayout) and layout.cpu_cores:
        noun = "core" if layout.cpu_cores == 1 else "cores"
        return f"{three_digits(layout.cpu_cores)} {noun} {gib(layout.cpu_memory_bytes)}"
    data, context = 1, 1
    if isinstance(layout, TrainingLayout):
        data, context = layout.data, layout.context
    sizes = {
        "dp": data,
        "tp": layout.tensor,
        "pp": layout.pipeline,
        "cp": context,
        "ep": layout.expert,
    }
    words = [f"{letters}{size}" for letters, size in sizes.items() if size > 1]
    if isinstance(layout, ServingLayout) and shape(layout)["quantization"] != "None":
        words.append(layout.weight_format)
    return " ".join(words) or "tp1"


def rounded(value: Any) -> Any:
    """Floats to four significant digits; what is no finite number is left out of maps."""
    match value:
        case float():
            return significant(value) or 0.0
        case Mapping():
            return {key: rounded(each) for key, each in value.items() if _is_told(each)}
        case list() | tuple():
            return [rounded(each) for each in value]
    return value


def _figures(candidate: Candidate) -> Story:
    prediction = candidate.prediction
    return {
        "pool": candidate.pool,
        "accelerator": candidate.accelerator,
        "count": candidate.count if candidate.count or candidate.accelerator == CPU else None,
        "replicas": candidate.replicas,
        "shape": _shape(candidate.layout, prediction) if candidate.layout else None,
        **(_bottleneck(candidate.bottleneck) if candidate.bottleneck else {}),
        **(_prediction(prediction, candidate.bottleneck) if prediction else {}),
        "lowConfidence": candidate.doubt,
        "costPerHour": candidate.cost_per_hour,
        "totalCost": candidate.total_cost,
        "totalSeconds": candidate.total_seconds,
        "startupSeconds": candidate.startup_seconds or None,
        "energyJoules": candidate.energy_joules,
        "lostSeconds": candidate.lost_seconds,
    }


def _shape(layout: Layout, prediction: TrainingPrediction | ServingPrediction | None) -> Story:
    """Without the engine's limits on tokens where a model generates none."""
    has_tokens = not isinstance(prediction, ServingPrediction) or prediction.generates
    hidden = () if has_tokens else TOKEN_LIMITS
    return {name: value for name, value in shape(layout).items() if name not in hidden}


def _accelerators(candidate: Candidate) -> str | None:
    if candidate.accelerator is None:
        return None
    if candidate.accelerator == CPU:
        return CPU
    return f"{candidate.count}x{candidate.accelerator}"


def _bottleneck(bottleneck: Bottleneck) -> Story:
    gains = sorted(bottleneck.gains.items(), key=lambda item: (-item[1], item[0]))
    return {
        "bottleneck": bottleneck.resource.value,
        "gains": {
            resource.value: gain if abs(gain) >= LEAST_GAIN else 0.0 for resource, gain in gains
        },
    }


def _prediction(
    prediction: TrainingPrediction | ServingPrediction, bottleneck: Bottleneck | None
) -> Story:
    return {
        "ledger": _ledger(prediction.ledger),
        "memory": _memory(prediction.memory),
        "predicted": _present(_predicted(prediction, bottleneck)),
        "arithmeticIntensity": prediction.arithmetic_intensity,
        "ridgePoint": prediction.ridge_point,
        "powerWatts": prediction.power_watts,
        "provenance": prediction.provenance,
        "correctedBy": dict(prediction.corrected_by) or None,
        "correctedFrom": _measured(prediction.measured) or None,
    }


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
    return {"usableBytes": memory.usable_bytes, "neededBytes": memory.needed_bytes, **used}


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
        "memoryBytesPerAccelerator": prediction.memory.needed_bytes,
        "memoryBytesPerAcceleratorHigh": peak_bytes(prediction.memory).high,
    }


def _serving(prediction: ServingPrediction) -> Story:
    """Times at the planned load of one replica; its capacity inside the targets.

    ``meanRequestSeconds`` is what the ledger sums to; the other times are percentiles.
    """
    return {
        **_interval("ttft", prediction.ttft_seconds),
        **_interval("itl", prediction.itl_seconds),
        **_interval("e2e", prediction.e2e_seconds),
        "meanRequestSeconds": prediction.mean_request_seconds,
        "requestsPerSecondPerReplica": prediction.capacity_requests_per_second,
        "plannedRequestsPerSecondPerReplica": prediction.requests_per_second,
        "limiting": prediction.limiting,
        "concurrency": prediction.concurrency,
        "tokensPerSecond": prediction.tokens_per_second,
        "memoryBytesPerAccelerator": prediction.memory.needed_bytes,
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


def _by_merit(candidate: Candidate) -> tuple[bool, bool, bool, float, str]:
    """The chosen one, then those that could run it from best to worst, then the others."""
    value = candidate.objective_value
    return (
        not candidate.chosen,
        not candidate.feasible,
        not candidate.waits,
        math.inf if value is None else value,
        candidate.pool,
    )


def _present(document: Mapping[str, Any]) -> Story:
    return {name: rounded(value) for name, value in document.items() if _is_told(value)}


def _is_told(value: Any) -> bool:
    return value is not None and not (isinstance(value, float) and not math.isfinite(value))
