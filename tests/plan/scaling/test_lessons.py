"""What one look puts into the memory."""

import math
from dataclasses import replace

import pytest

from poolwise.plan.scaling.capability import capability
from poolwise.plan.scaling.fragility import prior, summary
from poolwise.plan.scaling.intake import intake
from poolwise.plan.scaling.lessons import learned
from poolwise.plan.scaling.lone import Lone
from poolwise.plan.scaling.memory import Memory
from poolwise.plan.signals.sample import Histogram
from tests.plan.scaling.given import (
    ANSWER_TOKENS,
    BOUNDS,
    PROMPT_TOKENS,
    STEP_SECONDS,
    Fleet,
    service,
)

GIVEN = service()
POOL = GIVEN.pools[0]
REPLICAS, EACH = 5, 20.0
BUSY = 1500.0
"""Requests in a step, of all replicas."""
USUAL_GAP_SECONDS, LONG_GAP_SECONDS = 0.009, 0.02


def _gaps(seconds: float) -> Histogram:
    count = EACH * ANSWER_TOKENS
    return Histogram(
        BOUNDS, tuple(count if bound >= seconds else 0.0 for bound in BOUNDS), count * seconds
    )


def _log_slowness(full: int, waiting: float) -> float:
    """After a look at five replicas of which so many have a queue and long gaps."""
    able = {POOL.name: capability(POOL.predictor, POOL.predictor.prior_mix, GIVEN.targets, 1.0)}
    fleet = Fleet.of(REPLICAS)
    memory = Memory(samples=intake(Memory(), fleet.seen(0.0, 0.0), {}).samples)
    seen = fleet.after(REPLICAS * EACH).seen(STEP_SECONDS, 20.0)
    samples = {
        name: replace(
            each,
            waiting=waiting if index < full else 0.0,
            inter_token_seconds=_gaps(LONG_GAP_SECONDS if index < full else USUAL_GAP_SECONDS),
        )
        for index, (name, each) in enumerate(seen.samples.items())
    }
    seen = replace(seen, samples=samples)
    taken = intake(memory, seen, {POOL.name: 1e3})
    return learned(GIVEN, memory, seen, taken, able).log_slowness[POOL.name]


def test_a_replica_that_is_far_too_full_tells_no_speed_of_the_others() -> None:
    """Those that came to help it have next to nothing, and no load makes the mean of both."""
    without = _log_slowness(full=0, waiting=0.0)
    assert _log_slowness(full=1, waiting=5_000.0) == pytest.approx(without)
    assert _log_slowness(full=1, waiting=2.0) > without + 0.01


def test_where_all_are_far_too_full_they_tell_it() -> None:
    """Else an engine that is slow would never be found out."""
    told = _log_slowness(full=REPLICAS, waiting=5_000.0)
    assert told == pytest.approx(_log_slowness(full=REPLICAS, waiting=0.0))
    assert told > _log_slowness(full=0, waiting=0.0) + 0.01


def _strength_after_late_ones(ended: float, now_seconds: float) -> float:
    """That is believed when half of many first tokens are late, of which so many ended."""
    able = {POOL.name: capability(POOL.predictor, POOL.predictor.prior_mix, GIVEN.targets, 1.0)}
    fleet = Fleet.of(REPLICAS)
    before = intake(Memory(), fleet.seen(0.0, 0.0), {}).samples
    lone = Lone(lengths=Histogram(BOUNDS, (0.0,) * len(BOUNDS), 0.0))
    memory = Memory(samples=before, since_seconds=0.0, lone=lone)
    seen = fleet.after(BUSY, late_share=0.5).seen(STEP_SECONDS, BUSY / STEP_SECONDS)
    counts = tuple(ended / REPLICAS if math.isinf(bound) else 0.0 for bound in BOUNDS)
    lengths = Histogram(BOUNDS, counts, ended * PROMPT_TOKENS)
    samples = {
        name: replace(each, prompt_lengths_tokens=lengths) for name, each in seen.samples.items()
    }
    seen = replace(seen, now_seconds=now_seconds, samples=samples)
    taken = intake(memory, seen, {POOL.name: 1e3})
    return summary(learned(GIVEN, memory, seen, taken, able).belief)[0]


USUAL_STRENGTH = summary(prior())[0]


def test_until_lengths_are_known_late_first_tokens_teach_nothing_of_load() -> None:
    """They may be of prompts that are late alone; else an edge is seen where hardly anybody is."""
    assert _strength_after_late_ones(20.0, 60.0) == pytest.approx(USUAL_STRENGTH)
    assert _strength_after_late_ones(200.0, 60.0) < 0.95 * USUAL_STRENGTH


def test_a_service_of_few_requests_learns_from_them_all_the_same() -> None:
    assert _strength_after_late_ones(20.0, 3600.0) < 0.95 * USUAL_STRENGTH
