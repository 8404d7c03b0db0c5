"""Replays: what a policy sees, what it costs, how fast a service recovers, what the oracle does."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.autoscale import document
from bench.autoscale.engine import gaps, of_layout
from bench.autoscale.oracles import SHAPES, Clairvoyant, clairvoyant, planned, without_short_gaps
from bench.autoscale.outcome import (
    Step,
    direction_changes,
    first_good_minute,
    largest_step_seconds,
)
from bench.autoscale.policy import ReplicaView, View
from bench.autoscale.reach import aim
from bench.autoscale.replay import replay
from bench.autoscale.scene import Routing, Scraping, around_peak, of_peak, with_settings
from bench.autoscale.sizing import measured
from bench.autoscale.suite import Result
from bench.autoscale.traces import Trace
from poolwise.model.shapes import Transformer
from tests.bench.autoscale_cases import TARGETS, WORK, Script, small_engine, step_scene, stream


def test_a_fleet_that_stays_costs_its_time() -> None:
    scene = step_scene()
    outcome = replay(scene, Script((0.0, 4)))
    hours = (scene.trace.seconds - 120.0) / 3600.0
    assert outcome.replica_hours == pytest.approx(4 * hours, rel=1e-6)
    assert outcome.average_replicas == pytest.approx(4.0)
    assert outcome.direction_changes_per_hour == 0.0
    assert outcome.requests == (scene.trace.requests.arrival_seconds >= 120.0).sum()


def test_the_same_seed_gives_the_same_replay() -> None:
    scene = step_scene()
    first, again = (replay(scene, Script((0.0, 2), (700.0, 4))) for _ in range(2))
    assert first == again
    other = dataclasses.replace(scene, routing=Routing.SERVICE)
    assert replay(other, Script((0.0, 2), (700.0, 4))).digest != first.digest


def test_late_replicas_cost_attainment_and_recovery() -> None:
    """Too few for the second half: sooner is better, never is worst."""
    scene = step_scene(after=4.0)
    soon, late, never = (
        replay(scene, Script((0.0, 1), (moment, 6))) for moment in (500.0, 900.0, 1e9)
    )
    assert soon.attainment > late.attainment > never.attainment
    assert soon.seconds_to_recover == 0.0
    assert late.seconds_to_recover is not None
    assert late.seconds_to_recover > 240.0
    assert never.seconds_to_recover is None
    assert largest_step_seconds(scene) == pytest.approx(600.0, abs=30.0)


@pytest.mark.parametrize(
    ("late", "place"),
    [
        ((40, 9, 0, 0, 0, 0, 0), 2),
        ((40, 1, 0, 2, 0, 0, 0), 1),  # 1 % of the minute, though one of its bins is worse
        ((40, 1, 0, 5, 0, 0, 0, 0), 4),  # what comes next spoils it
        ((0, 0, 0, 0, 50), 0),
        ((0, 0, 0), None),  # no whole minute
        ((0, 0, 50, 0, 0), None),
    ],
)
def test_a_service_is_back_when_a_minute_begins_that_is_in_time(
    late: tuple[int, ...], place: int | None
) -> None:
    came = np.full(len(late), 100)
    assert first_good_minute(came, came - np.array(late), 0.99) == place


def test_a_policy_sees_what_kubernetes_and_a_scrape_tell() -> None:
    scene = dataclasses.replace(step_scene(), initial_replicas=1)
    script = Script((0.0, 1), (300.0, 3), (500.0, 1))
    replay(scene, script)
    at = {view.now_seconds: view for view in script.views}
    starting = at[350.0]
    assert [each.is_ready for each in starting.replicas] == [True, False, False]
    assert starting.replicas[2].ready_at_seconds is None
    assert set(starting.samples) == {"replica-0"}
    assert at[360.0].replicas[2].ready_at_seconds == 360.0
    assert sum(each.is_draining for each in at[510.0].replicas) <= 2
    assert at[1000.0].start_delay_seconds == 60.0


def test_samples_count_since_the_replica_started() -> None:
    script = Script((0.0, 2))
    scene = step_scene()
    replay(scene, script)
    told = [view.samples["replica-0"] for view in script.views if view.samples]
    for before, after in itertools.pairwise(told):
        assert after.at_seconds >= before.at_seconds
        assert (after.generated_tokens or 0) >= (before.generated_tokens or 0)
        assert (after.finished_requests or 0) >= (before.finished_requests or 0)
    last = script.views[-1].samples
    histograms = [each.ttft_seconds for each in last.values() if each.ttft_seconds]
    waiting = len(scene.trace.requests) - sum(each.count for each in histograms)
    assert 0 <= waiting <= 2  # those that arrived just before the last look
    for each in histograms:
        assert list(each.counts) == sorted(each.counts)
        assert math.isinf(each.upper_bounds[-1])


def test_missing_scrapes_leave_the_sample_before() -> None:
    script = Script((0.0, 1))
    scene = dataclasses.replace(
        step_scene(), initial_replicas=1, scraping=Scraping(15.0, 0.05, missing_share=0.5)
    )
    replay(scene, script)
    ages = [
        view.now_seconds - each.at_seconds
        for view in script.views
        for each in view.samples.values()
    ]
    assert max(ages) > 30.0


def test_engines_may_tell_no_lengths() -> None:
    script = Script((0.0, 1))
    scraping = Scraping(tells_lengths=False)
    replay(dataclasses.replace(step_scene(), scraping=scraping), script)
    last = script.views[-1].samples.values()
    assert last
    for each in last:
        assert each.prompt_lengths_tokens is each.answer_lengths_tokens is None
        assert each.prompt_tokens and each.finished_requests


def test_wanted_replicas_are_kept_inside_their_bounds() -> None:
    scene = dataclasses.replace(step_scene(), least_replicas=2, most_replicas=3)
    steps = replay(scene, Script((0.0, 0), (600.0, 99))).steps
    assert {step.wanted for step in steps} == {2, 3}


def test_changes_of_direction() -> None:
    steps = [Step(10.0 * place, wanted) for place, wanted in enumerate((3, 3, 5, 4, 4, 2, 6))]
    assert direction_changes(steps, 0.0, 100.0) == 2
    assert direction_changes(steps, 30.0, 100.0) == 1


@given(st.lists(st.integers(0, 6), min_size=1, max_size=30), st.integers(0, 5))
def test_the_plan_has_no_gap_shorter_than_a_start(needed: list[int], bins: int) -> None:
    """Layer by layer: never below the need, and idle only where a new start would be dearer."""
    closed = without_short_gaps(needed, bins)
    assert all(level >= need for level, need in zip(closed, needed, strict=True))
    for layer in range(1, 7):
        runs = [
            (is_there, len(list(group)))
            for is_there, group in itertools.groupby(level >= layer for level in closed)
        ]
        assert all(length > bins for is_there, length in runs[1:-1] if not is_there)
        for place, level in enumerate(closed):
            if level >= layer and needed[place] < layer:
                around = needed[max(place - bins, 0) : place + bins + 1]
                assert max(around) >= layer


def test_the_oracle_asks_one_start_ahead() -> None:
    oracle = Clairvoyant([1, 1, 1, 1, 1, 1, 4, 4], start_delay_seconds=60.0)
    replica = ReplicaView("r", True, False, 0.0, 0.0)
    asked = [oracle.desired(View(15.0 * bin_, (replica,), {}, 60.0)) for bin_ in range(8)]
    assert asked == [1, 1, 4, 4, 4, 4, 4, 4]


def test_the_oracle_is_cheaper_than_the_best_static_fleet() -> None:
    scene = step_scene(0.3, 4.0)
    best = min(
        (
            outcome
            for outcome in (replay(scene, Script((0.0, count))) for count in range(1, 9))
            if outcome.attainment >= 0.99
        ),
        key=lambda each: each.replica_hours,
    )
    found = clairvoyant(scene, lambda policy: replay(scene, policy))
    assert found.attainment >= aim(scene)
    assert found.replica_hours < best.replica_hours
    assert max(planned(scene, 1.0, SHAPES[0])) > min(planned(scene, 1.0, SHAPES[0]))


def test_a_trace_is_grown_until_its_peak_needs_so_many() -> None:
    trace = Trace("poisson", stream(2.0, 1200.0))
    scene = of_peak(trace, small_engine(), TARGETS, WORK, 7.0)
    assert scene.needed_replicas().max() == pytest.approx(7.0, rel=0.05)
    assert around_peak(scene, 300.0, 0.5).trace.seconds <= 300.0


def test_a_request_takes_what_the_capacity_says() -> None:
    """At the measured rate the fluid is full: one replica is needed for one replica's requests."""
    requests = stream(2.0, 1200.0)
    work = measured(small_engine(), requests, TARGETS)
    mean = work.replica_seconds(requests).mean()
    assert mean * work.requests_per_second == pytest.approx(1.0, rel=0.1)


def test_a_wrong_model_slows_the_truth_and_not_what_is_told() -> None:
    scene = step_scene()
    slower = with_settings(scene, 60.0, scene.routing, scene.scraping, slowness=1.3)
    assert slower.engine.costs.key_seconds == pytest.approx(1.3 * scene.engine.costs.key_seconds)
    assert slower.engine.layout == scene.engine.layout
    assert slower.work == scene.work


def test_the_reduced_engine_is_the_models_own() -> None:
    engine = small_engine()
    assert max(abs(gap.share) for gap in gaps(engine)) < 0.005
    assert isinstance(engine.model.shape, Transformer)
    again = of_layout(engine.model, engine.layout, engine.machine, engine.calibration)
    assert again.limits == engine.limits


def test_the_document_has_every_figure_and_nothing_that_was_not_run() -> None:
    outcome = replay(step_scene(), Script((0.0, 4)))
    found = document.document(
        "step", [Result("O1", {}, outcome), Result("kpa", {"target": 1.0}, outcome)]
    )
    told = json.loads(json.dumps(found))
    assert set(told) == {"trace", "policies", "oracles"}
    assert set(told["policies"]) == {"kpa"}
    assert set(told["oracles"]) == {"O1"}
    assert set(told["policies"]["kpa"]) == set(document.KEYS)
    assert 0.0 <= told["policies"]["kpa"]["attainment"] <= 1.0
    assert np.isfinite(told["policies"]["kpa"]["replica_hours"])
    assert "| kpa | target 1 |" in document.text(
        step_scene(), [Result("kpa", {"target": 1.0}, outcome)]
    )
