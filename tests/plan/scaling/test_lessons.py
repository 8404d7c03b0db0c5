"""What one look puts into the memory."""

from dataclasses import replace

import pytest

from poolwise.plan.scaling.capability import capability
from poolwise.plan.scaling.intake import intake
from poolwise.plan.scaling.lessons import learned
from poolwise.plan.scaling.memory import Memory
from poolwise.plan.signals.sample import Histogram
from tests.plan.scaling.given import ANSWER_TOKENS, BOUNDS, STEP_SECONDS, Fleet, service

GIVEN = service()
POOL = GIVEN.pools[0]
REPLICAS, EACH = 5, 20.0
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
