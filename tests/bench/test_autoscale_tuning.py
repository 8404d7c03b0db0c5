"""Tuning on a small fleet that is really simulated, and what ends a replay early."""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial

import numpy as np
import pytest

from bench.autoscale import tuning
from bench.autoscale.engine import Engine, engine
from bench.autoscale.policies.laws import LAWS
from bench.autoscale.policies.profiling import service
from bench.autoscale.policies.static import Static
from bench.autoscale.reach import aim, idle_ttft_seconds, reachable_share
from bench.autoscale.replay import replay
from bench.autoscale.scene import Scene, Scraping
from bench.autoscale.sizing import ATTAINMENT, Targets, Work
from bench.autoscale.traces import Trace
from bench.autoscale.watching import Dear, Late, Watched
from poolwise.sim.serving.fleet import Fleet
from poolwise.sim.serving.requests import Requests
from poolwise.sim.serving.router import LeastOutstanding

RATE, SECONDS = 12.0, 600.0


@cache
def small_engine() -> Engine:
    return engine("llama-3.1-70b", "H100-SXM5-80GB", 4, max_num_seqs=64)


@cache
def scene() -> Scene:
    """Load that doubles half-way, for a replica that does some 5 requests per second."""
    draw = np.random.default_rng(1)
    first = draw.uniform(0.0, SECONDS, int(RATE * SECONDS / 2))
    second = draw.uniform(SECONDS / 2, SECONDS, int(RATE * SECONDS / 4))
    arrivals = np.concatenate((first, second))
    lengths = np.full(len(arrivals), 1000), np.full(len(arrivals), 150)
    requests = Requests.of(arrivals, *lengths)
    work = Work(0.0, 0.0, 1.0 / 150 / 5.0, gap_seconds=0.05, requests_per_second=5.0)
    return Scene(
        Trace("small", requests),
        small_engine(),
        Targets(2.0, 0.06),
        work,
        scraping=Scraping(noise=0.0),
        warm_up_seconds=60.0,
        most_replicas=8,
        initial_replicas=2,
    )


@cache
def statics() -> dict[int, float]:
    return {n: replay(scene(), Static(n)).attainment for n in range(1, 9)}


def test_the_best_static_is_the_fewest_that_attain():
    fewest = min(n for n, share in statics().items() if share >= ATTAINMENT)
    assert 1 < fewest < 8
    found = tuning.tuned(scene(), "best_static", partial(replay, scene()))
    assert found.best.setting == {"replicas": float(fewest)}
    assert found.best.outcome.attainment == statics()[fewest]


@pytest.mark.parametrize("name", ["hpa_running", "llmd_slo"])
def test_a_tuned_law_is_no_worse_than_as_published(name):
    law, play = LAWS[name], partial(replay, scene())
    as_published = play(law.policy(service(scene()), {law.knob.name: law.knob.published}))
    best = tuning.tuned(scene(), name, play).best.outcome
    if as_published.attainment >= ATTAINMENT:
        assert best.replica_hours <= as_published.replica_hours
        assert best.attainment >= ATTAINMENT
    else:
        assert best.attainment >= as_published.attainment


def test_a_replay_that_is_late_ends_and_one_that_is_not_is_left_alone():
    watched = Watched(Static(1), scene(), 0.01)
    with pytest.raises(Late) as ended:
        replay(scene(), watched)
    assert 60.0 < ended.value.args[0] < SECONDS
    good = replay(scene(), Watched(Static(8), scene(), 0.01))
    assert good.digest == replay(scene(), Static(8)).digest


def test_no_replay_ends_that_would_have_attained_it():
    enough = [replicas for replicas, share in statics().items() if share >= ATTAINMENT]
    assert enough
    for replicas in enough:
        watched = replay(scene(), Watched(Static(replicas), scene(), 1.0 - ATTAINMENT))
        assert watched.attainment >= ATTAINMENT


def test_a_replay_that_is_dear_ends():
    with pytest.raises(Dear):
        replay(scene(), Watched(Static(8), scene(), 0.01, replica_hours=0.5))


def test_where_nothing_attains_it_the_best_is_replayed_to_its_end():
    narrow = replace(scene(), most_replicas=1, initial_replicas=1)
    found = tuning.tuned(narrow, "hpa_running", partial(replay, narrow))
    assert found.best.outcome.attainment < ATTAINMENT


def test_static_mean_is_sized_by_the_mean():
    found = tuning.tuned(scene(), "static_mean", partial(replay, scene()))
    assert found.best.setting == {"replicas": float(np.ceil(RATE * 0.75 / 5.0))}


def test_a_request_alone_takes_what_the_simulator_says():
    requests = Requests.of(
        np.array([400.0, 500.0, 600.0]), np.array([100, 9000, 60_000]), np.full(3, 2)
    )
    alone = replace(scene(), trace=Trace("alone", requests), initial_replicas=1)
    found = idle_ttft_seconds(alone)
    fleet = Fleet(requests, alone.engine.costs, alone.engine.limits, LeastOutstanding())
    fleet.request(1, 0.0)
    fleet.finish()
    assert found == pytest.approx(fleet.answers().ttft_seconds(requests), rel=0.02)


def test_no_more_is_asked_than_any_fleet_can_do():
    assert reachable_share(scene()) == 1.0
    strict = replace(scene(), targets=Targets(1e-3, 0.06))
    assert aim(strict) == 0.0
    found = tuning.tuned(strict, "best_static", partial(replay, strict))
    assert found.best.setting == {"replicas": 1.0}
