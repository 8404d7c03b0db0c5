"""Whole predictions as measurements correct them (:mod:`poolwise.model.correction`).

A replica all of whose times are ``f`` times as long is the same replica with its clock slowed: at a
rate of r it does what the model says of ``f * r``, and where the model must stay below ``T / f`` it
stays below T. So the model is asked at ``f * r`` with targets ``T / f``
(:func:`asked_targets`), and its times and rates are corrected afterwards. Where the factors of
first tokens and of tokens differ, the clock is that of the tokens, which most of the time goes to.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from poolwise.model.correction import UNCORRECTED, Estimate, Phase, corrected
from poolwise.model.prediction import ServingPrediction, Term, TrainingPrediction
from poolwise.model.work import Metric, Target

FIRST_TOKEN_TERMS = frozenset({"Queue", "KvCapacity", "Prefill"})
"""Of a request's ledger; the others are its tokens'."""


@dataclass(frozen=True, slots=True)
class ServingEstimates:
    """What is known of one service on one pool."""

    first_token: Estimate = UNCORRECTED
    token: Estimate = UNCORRECTED

    def slowdown(self, generates: bool) -> float:
        """Of the replica's clock."""
        return (self.token if generates else self.first_token).factor


def corrected_training(prediction: TrainingPrediction, estimate: Estimate) -> TrainingPrediction:
    """The step, its ledger and its rates."""
    if estimate == UNCORRECTED:
        return prediction
    factor, tokens = estimate.factor, prediction.tokens_per_second
    return replace(
        prediction,
        step_seconds=corrected(prediction.step_seconds, estimate),
        ledger=_scaled(prediction.ledger, lambda name: factor),
        samples_per_second=prediction.samples_per_second / factor,
        tokens_per_second=None if tokens is None else tokens / factor,
        corrected_by={Phase.TRAINING.value: factor},
        measured={Phase.TRAINING.value: estimate.measured},
        fitted_spread=prediction.fitted_spread * estimate.narrowing,
    )


def asked_targets(
    targets: Iterable[Target], estimates: ServingEstimates, generates: bool
) -> tuple[Target, ...]:
    """What the model must stay below for the corrected times to stay below the targets."""
    slowdown = estimates.slowdown(generates)
    first = estimates.first_token.factor
    return tuple(
        replace(each, seconds=each.seconds / (first if each.metric is Metric.TTFT else slowdown))
        for each in targets
    )


def corrected_serving(
    prediction: ServingPrediction, estimates: ServingEstimates
) -> ServingPrediction:
    """Times, ledger and rates of what the model was asked at the slowed-down rate."""
    first, token = estimates.first_token, estimates.token
    if first == token == UNCORRECTED:
        return prediction
    slowdown = estimates.slowdown(prediction.generates)
    tokens, told = prediction.tokens_per_second, _told(prediction, estimates)
    return replace(
        prediction,
        requests_per_second=prediction.requests_per_second / slowdown,
        capacity_requests_per_second=prediction.capacity_requests_per_second / slowdown,
        ttft_seconds=corrected(prediction.ttft_seconds, first),
        itl_seconds=corrected(prediction.itl_seconds, token),
        tpot_seconds=prediction.tpot_seconds and corrected(prediction.tpot_seconds, token),
        e2e_seconds=corrected(prediction.e2e_seconds, _of_request(prediction, estimates)),
        ledger=_scaled(prediction.ledger, lambda name: _of_term(name, prediction, estimates)),
        tokens_per_second=None if tokens is None else tokens / slowdown,
        corrected_by={phase: each.factor for phase, each in told.items()},
        measured={phase: each.measured for phase, each in told.items()},
    )


def _of_request(prediction: ServingPrediction, estimates: ServingEstimates) -> Estimate:
    """Of a whole request: each part of the ledger by the phase that it belongs to."""
    before = prediction.mean_request_seconds
    if not before:
        return UNCORRECTED
    terms = _scaled(prediction.ledger, lambda name: _of_term(name, prediction, estimates))
    factor = sum(term.seconds for term in terms) / before
    own = estimates.token if prediction.generates else estimates.first_token
    return Estimate(math.log(factor), own.narrowing)


def _of_term(name: str, prediction: ServingPrediction, estimates: ServingEstimates) -> float:
    is_first = name in FIRST_TOKEN_TERMS or not prediction.generates
    return (estimates.first_token if is_first else estimates.token).factor


def _told(prediction: ServingPrediction, estimates: ServingEstimates) -> dict[str, Estimate]:
    of_phase = {Phase.FIRST_TOKEN: estimates.first_token}
    if prediction.generates:
        of_phase[Phase.TOKEN] = estimates.token
    return {phase.value: each for phase, each in of_phase.items() if each != UNCORRECTED}


def _scaled(ledger: Iterable[Term], factor_of: Callable[[str], float]) -> tuple[Term, ...]:
    return tuple(Term(term.name, term.seconds * factor_of(term.name)) for term in ledger)
