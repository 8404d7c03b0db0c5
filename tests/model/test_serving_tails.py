"""Percentiles of the mean field against an engine simulated step by step."""

import itertools
from dataclasses import replace

import pytest

from poolwise.model.hardware import Resource
from poolwise.model.serving.latency import latencies
from poolwise.model.serving.load import Replica, state, state_at_rate
from poolwise.model.serving.queueing import Lengths
from poolwise.model.serving.replica import replica
from poolwise.model.serving.targets import metric_percentile
from poolwise.model.work import Metric, ServingLayout
from tests.model.serving_cases import CALIBRATION, machine, service
from tests.model.simulation import simulate


def served(batched_tokens: int = 512) -> Replica:
    """Llama 8B on one L40S with small steps; nothing but steps, as in the simulation."""
    work = service("Llama-3.1-8B", (300, 1200), (350, 900), arrival_dispersion=1.0)
    layout = ServingLayout(
        tensor=1,
        pipeline=1,
        expert=1,
        weight_format="bf16",
        max_num_seqs=256,
        max_model_tokens=8192,
        max_batched_tokens=batched_tokens,
        kv_format="bf16",
    )
    bare = replica(work, layout, machine("L40S"), CALIBRATION)
    return replace(
        bare,
        request_seconds=0.0,
        serial_seconds=0.0,
        prompt_ratio=1.0,
        held_steps=0.5,
        interference=1.0,
    )


@pytest.mark.parametrize("rate", [1.0, 3.0, 5.0])
def test_tails_are_near_those_of_a_simulated_engine(rate: float) -> None:
    at = state_at_rate(served(), rate)
    assert at is not None
    times, simulated = latencies(served(), at), simulate(served(), rate, 2500)
    assert times.ttft.percentile(50) == pytest.approx(simulated.first_token(50), rel=0.15)
    assert times.ttft.percentile(90) == pytest.approx(simulated.first_token(90), rel=0.2)
    # The far tail comes from loads above the mean one, which a mean field does not see.
    assert times.ttft.percentile(99) == pytest.approx(simulated.first_token(99), rel=0.25)
    assert times.token_percentile(50) == pytest.approx(simulated.token(50), rel=0.1)
    assert times.token_percentile(99) == pytest.approx(simulated.token(99), rel=0.1)


@pytest.mark.parametrize("batched_tokens", [2048, 8192])
def test_long_prompts_of_one_chunk_make_the_tail_of_a_simulated_engine(batched_tokens: int) -> None:
    """Weights are read behind their arithmetic: each token takes more than of a usual prompt."""
    shown = served(batched_tokens)
    at = state_at_rate(shown, 1.0)
    assert at is not None
    times, simulated = latencies(shown, at), simulate(shown, 1.0, 2500)
    for percent in (50, 90, 95, 99):
        told = times.ttft.percentile(percent)
        assert told == pytest.approx(simulated.first_token(percent), rel=0.1), percent


def test_more_bandwidth_makes_no_first_token_later() -> None:
    """Of the tail, at the same rate."""
    work = service("Llama-3.1-8B", (300, 1200), (350, 900))
    layout = ServingLayout(max_batched_tokens=8192)
    tails = []
    for growth in (1.0, 1.1, 1.5, 2.0, 4.0):
        faster = machine("L40S").with_more(Resource.MEMORY_BANDWIDTH, growth)
        shown = replica(work, layout, faster, CALIBRATION)
        at = state_at_rate(shown, 0.1)
        assert at is not None
        tails.append(latencies(shown, at).ttft.percentile(99))
    assert all(after <= before for before, after in itertools.pairwise(tails))


def test_the_first_tokens_tail_has_no_step_where_prompts_leave_one_chunk() -> None:
    """At room for exactly one mean prompt a second step begins; nothing else jumps there."""
    shown = served()
    loads = [0.5 * step for step in range(2, 400)]
    tails = [latencies(shown, state(shown, load)).ttft.percentile(99) for load in loads]
    growth = [after / before for before, after in itertools.pairwise(tails)]
    assert max(growth) < 1.05
    assert min(growth) > 0.999


@pytest.mark.parametrize("percent", [50.0, 90.0, 99.0])
def test_more_slots_make_no_request_later(percent: float) -> None:
    """At the same load. A wait for a slot that is rare and long took up to 20 % off the median, and
    2 % off the 90th percentile: a device with a tenth more memory seemed to serve 7 % less."""
    full = replace(served(), generated=Lengths(450.0, 1.0))
    slots = [100.0 * 1.02**step for step in range(60)]
    fewer = [replace(full, cache_slots=each) for each in slots]
    times = [latencies(each, state(each, 90.0)) for each in fewer]
    for metric in (Metric.TTFT, Metric.E2E):
        told = [metric_percentile(each, metric, percent) for each in times]
        assert all(more <= less * (1 + 2e-4) for less, more in itertools.pairwise(told)), told
        laws = [each.ttft if metric is Metric.TTFT else each.e2e for each in times]
        below = [law.share_below(told[-1]) for law in laws]
        assert all(more >= less - 2e-4 for less, more in itertools.pairwise(below)), below
        assert below[-1] == pytest.approx(percent / 100.0)


@pytest.mark.parametrize("prompt", [(1, 1), (300, 1200)], ids=["short", "long"])
@pytest.mark.parametrize("slots", [4, 64, 256])
def test_tokens_come_no_sooner_when_load_grows(prompt: tuple[float, float], slots: int) -> None:
    """With nine tenths of all slots taken the tail was beyond the step of all of them, and shrank
    to it; with hardly one, the median was less than a sequence takes alone, and sank further."""
    work = service("Llama-3.1-8B", prompt, (350, 900))
    layout = ServingLayout(max_num_seqs=slots, max_batched_tokens=2048, max_model_tokens=8192)
    shown = replica(work, layout, machine("L40S"), CALIBRATION)
    for percent in (10, 50, 90, 99):
        loads = [shown.slots * 2.0 ** (-step / 8) for step in range(72, -1, -1)]
        told = [latencies(shown, state(shown, load)).token_percentile(percent) for load in loads]
        assert all(after >= before * 0.9999 for before, after in itertools.pairwise(told)), percent
        assert told[0] >= shown.decode_range_seconds[0] * 0.9999


def test_the_share_of_late_tokens_is_that_of_their_percentile() -> None:
    """Also at both ends, where no token is sooner than one alone, and no usual one later than
    with every slot taken."""
    shown = served()
    for load in (0.001, 0.5, 0.9, 0.99, 1.0):
        times = latencies(shown, state(shown, shown.slots * load))
        for percent in (50, 90, 99):
            seconds = times.tokens.percentile(percent)
            assert times.tokens.share_later(seconds * 1.0001) <= 1.0 - percent / 100 + 1e-6
            assert times.tokens.share_later(seconds * 0.9999) >= 1.0 - percent / 100 - 1e-6
