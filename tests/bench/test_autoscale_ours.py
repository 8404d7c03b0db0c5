"""Our controller in the replay."""

from __future__ import annotations

import pytest

from bench.autoscale import ours
from bench.autoscale.policy import View
from bench.autoscale.replay import replay
from tests.bench.autoscale_cases import Script, step_scene


def test_ours_follows_a_step_with_fewer_replicas_than_its_peak_takes() -> None:
    scene = step_scene(after=4.0)
    found = replay(scene, ours.policy(scene))
    most = max(step.wanted for step in found.steps)
    assert replay(scene, Script((0.0, 1))).attainment < found.attainment
    assert most > 1 and found.average_replicas < most


def test_ours_comes_to_the_same_again() -> None:
    scene = step_scene(before=0.2, after=0.3)
    one, other = (replay(scene, ours.policy(scene)) for _ in range(2))
    assert one == other


def test_who_knows_what_comes_is_told_it() -> None:
    scene = step_scene(before=0.2, after=0.3)
    informed = ours.informed(scene)
    replay(scene, informed)
    assert informed.last is not None and informed.last.forecast is not None
    assert informed.last.forecast.low == informed.last.forecast.high


@pytest.mark.parametrize("now_seconds", [0.0, 300.0])
def test_the_informed_is_told_the_rate_of_when_a_start_would_end(now_seconds: float) -> None:
    """Of half a minute, and neither of what comes before nor of what comes after."""
    scene = step_scene(after=4.0)
    told = ours.informed(scene).seen(View(now_seconds, (), {}, scene.start_delay_seconds))
    middle = now_seconds + scene.start_delay_seconds + 10.0
    arrivals = scene.trace.requests.arrival_seconds
    around = (arrivals >= middle - 15.0) & (arrivals < middle + 15.0)
    assert told.expected_requests_per_second == pytest.approx(around.sum() / 30.0)
    assert around.any()


def test_a_service_is_declared_without_a_look_at_its_trace() -> None:
    one, other = ours.service(step_scene()), ours.service(step_scene(after=4.0))
    assert one.targets == other.targets
    assert one.pools[0].predictor.prior_mix == other.pools[0].predictor.prior_mix
    assert one.pools[0].start_seconds == pytest.approx(step_scene().start_delay_seconds)
