"""llm-d's protocol: its load, its scoring, and its law on the simulated engine."""

import argparse
import json
import subprocess
import sys

import numpy as np
import pytest

from bench.autoscale import llmd, llmd_knee
from bench.autoscale.episode import Score, driven, durations, requests, score, starts
from bench.autoscale.llmd_engine import (
    CHUNK_TOKENS,
    PROMPT_TOKENS_PER_SECOND,
    measured,
    modelled,
)
from bench.autoscale.outcome import Step
from bench.autoscale.policies.static import Static
from poolwise.sim.serving.costs import StepTable


def test_the_load_is_theirs():
    found = requests(llmd.STAGES_PER_SECOND, 0, ())
    assert len(found) == 12_480
    assert sum(durations(7)) == 2430.0
    assert found.arrival_seconds[-1] == pytest.approx(2430.0)
    assert found.input_tokens.min() >= 3500 and found.input_tokens.max() <= 4500
    assert found.input_tokens.mean() == pytest.approx(4000, rel=0.01)
    assert found.output_tokens.min() == 900 and found.output_tokens.max() == 1100


def test_a_replica_reads_prompts_as_fast_as_llm_d_measured_and_generates_as_the_model_says():
    tables = [StepTable(each.costs, each.limits) for each in (measured(), modelled())]
    told, model = tables
    alone = told.tokens[CHUNK_TOKENS] + told.sequences[1] + told.request_seconds
    alone += told.prompt_key_seconds * CHUNK_TOKENS * (CHUNK_TOKENS + 1) / 2
    assert CHUNK_TOKENS / alone == pytest.approx(PROMPT_TOKENS_PER_SECOND, rel=1e-6)
    assert told.decode[:65] == pytest.approx(model.decode[:65])
    assert told.key_seconds == model.key_seconds
    assert sorted(told.tokens) == told.tokens


def test_a_replica_is_full_where_llm_d_saw_it():
    """Their loop holds the 90th percentile of first tokens at 0.40 to 0.55 of 3 s, and settles at
    1.4 to 1.5 requests/s a replica. No figure of the engine was taken from that."""
    below, above = (llmd_knee.first_tokens(llmd.USUAL, rate)[1] for rate in (1.4, 1.5))
    assert below < 0.4 * 3.0 < 0.55 * 3.0 < above
    assert llmd_knee.first_tokens(llmd.Setup(is_modelled=True), 1.4)[1] > 10.0


def test_a_stage_has_exactly_its_requests_whatever_the_order():
    found = requests((6.0, 1.0, 2.0), 3, ())
    edges = np.array([*starts(3, ()), 990.0]) + 1e-6  # the last one comes at the very end
    assert np.histogram(found.arrival_seconds, edges)[0].tolist() == [1980, 360, 600]


def test_waits_move_only_what_comes_after_them():
    at_once, waiting = requests((2.0, 4.0, 1.0), 0, ()), requests((2.0, 4.0, 1.0), 0, (50.0,))
    moved = waiting.arrival_seconds - at_once.arrival_seconds
    assert moved[:660] == pytest.approx(0.0)
    assert moved[660:] == pytest.approx(50.0)


def test_who_misses_both_counts_twice():
    episode = llmd.episode((8.0,), 0)
    fleet, steps = driven(episode, Static(3))
    found = score(episode.scene, fleet, steps)
    assert found.ttft_violations > 0
    late = found.ttft_violations + found.tpot_violations
    assert found.attainment == pytest.approx(1.0 - late / found.requests)
    assert found.joint >= found.attainment


def test_replicas_are_averaged_until_the_fleet_is_back_at_its_floor():
    episode = llmd.episode((1.0,), 0)
    fleet, _ = driven(episode, Static(3))
    steps = [Step(0.0, 3), Step(100.0, 8), Step(300.0, 4), Step(500.0, 3)]
    found = score(episode.scene, fleet, steps)
    assert found.average_replicas == pytest.approx((3 * 100 + 8 * 200 + 4 * 200) / 500)


def test_their_law_holds_the_floor_at_two_requests_a_second_and_grows_at_eight():
    calm = llmd.scored((2.0,), [0], ["llmd_slo"])[0]
    busy = llmd.scored((8.0, 8.0), [0], ["llmd_slo"])[0]
    assert calm.mean("average_replicas") == 3.0
    assert calm.mean("attainment") == 1.0
    assert busy.mean("average_replicas") > 4.0


def test_the_same_seed_is_the_same_episode():
    first, again = (llmd.scored((4.0,), [5], ["llmd_slo"])[0].scores for _ in range(2))
    assert first == again
    assert isinstance(first[0], Score)


def test_permutations_are_of_the_same_stages():
    orders = list(llmd.permuted(llmd.STAGES_PER_SECOND, 3, 0))
    assert all(sorted(order) == sorted(llmd.STAGES_PER_SECOND) for order in orders)
    assert len(set(orders)) == 3


def test_the_command_prints_json_and_refuses_stages_that_are_none():
    command = [sys.executable, "-m", "bench.autoscale.llmd", "--json"]
    asked = [*command, "--stages", "1", "--policies", "static_8"]
    found = json.loads(subprocess.run(asked, capture_output=True, check=True).stdout)
    assert found["policies"]["static_8"]["attainment"] == 1.0
    assert found["policies"]["static_8"]["average_replicas"] == 8.0
    bad = subprocess.run([*command, "--stages", "2,x"], capture_output=True, text=True)
    assert bad.returncode == 2
    assert "'2,x' is no list of numbers" in bad.stderr


def test_stages_too_slow_for_any_request_are_refused() -> None:
    assert llmd.rates("0.001,2") == (0.001, 2.0)
    with pytest.raises(argparse.ArgumentTypeError, match="long enough for one request"):
        llmd.rates("0.0001")
