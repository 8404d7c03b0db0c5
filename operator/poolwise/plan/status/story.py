"""A plan as JSON: what ``poolwise plan -o json`` prints and ``status.plan`` holds.

Both tell the same, in the form of api.md: absent where they have no meaning, and rounded by who
writes them.
"""

from __future__ import annotations

import math

from poolwise.model.prediction import ServingPrediction, TrainingPrediction
from poolwise.model.work import ServingLayout, TrainingLayout
from poolwise.plan.conditions import timestamp
from poolwise.plan.decision import Candidate, Plan
from poolwise.plan.joint.outcome import ShadowPrice
from poolwise.plan.pool import CPU, Pool
from poolwise.plan.records.shape import Layout, shape
from poolwise.plan.rounding import Story, present
from poolwise.plan.status.predicted import bottleneck_story, memory_story, prediction_story
from poolwise.plan.wording import gib, sentence, three_digits

TOKEN_LIMITS = ("maxModelLength", "maxBatchedTokens")


def story(plan: Plan, pool: Pool | None, candidate_limit: int | None = None) -> Story:
    """The decision with its candidates, best first: all of them, or so many.

    ``pool`` is the chosen one, for what its price is in.
    """
    shown = sorted(plan.candidates, key=_by_merit)[:candidate_limit]
    omitted = len(plan.candidates) - len(shown)
    return present(
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


def _price(price: ShadowPrice) -> Story:
    """What an hour of a scarce pool costs everybody else; in money where that is known."""
    return present(
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
    return present(
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
    return present(
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


def _figures(candidate: Candidate) -> Story:
    prediction = candidate.prediction
    return {
        "pool": candidate.pool,
        "accelerator": candidate.accelerator,
        "count": candidate.count if candidate.count or candidate.accelerator == CPU else None,
        "replicas": candidate.replicas,
        "shape": _shape(candidate.layout, prediction) if candidate.layout else None,
        **(bottleneck_story(candidate.bottleneck) if candidate.bottleneck else {}),
        **(prediction_story(prediction, candidate.bottleneck) if prediction else {}),
        **(memory_story(candidate.memory) if candidate.memory else {}),
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
