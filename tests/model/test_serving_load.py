"""The mean field of a loaded replica: Little's law, limits, and what grows with what."""

import math
from dataclasses import replace

import pytest

from poolwise.model.hardware import Resource
from poolwise.model.serving.front_end import EARLY_YEAR, LATE_YEAR, early_share
from poolwise.model.serving.latency import latencies
from poolwise.model.serving.load import Replica, decode_step, state, state_at_rate
from poolwise.model.serving.replica import context_tokens, replica, slot_tokens
from poolwise.model.shapes import Custom, Model
from poolwise.model.work import ServingLayout, ServingWork
from tests.model.serving_cases import CALIBRATION, machine, service

CHAT = service("Llama-3.1-8B", (400, 1500), (200, 600))


def h100(work: ServingWork = CHAT, layout: ServingLayout | None = None) -> Replica:
    return replica(work, layout or ServingLayout(), machine("H100-SXM5-80GB"), CALIBRATION)


@pytest.mark.parametrize("load", [1.0, 8.0, 64.0, 200.0])
def test_littles_law(load: float) -> None:
    served = h100()
    at = state(served, load)
    in_decode = at.requests_per_second * served.generated.mean * at.token_seconds
    assert in_decode == pytest.approx(load)


def test_time_goes_to_prompts_and_tokens() -> None:
    served = h100()
    at = state(served, 100.0)
    prompts = at.requests_per_second * at.added_seconds
    tokens = at.decode.seconds / at.token_seconds
    assert prompts * served.interference + tokens == pytest.approx(1.0)


def test_the_state_of_a_rate_serves_that_rate() -> None:
    at = state_at_rate(h100(), 12.0)
    assert at is not None
    assert at.requests_per_second == pytest.approx(12.0)


def test_no_state_serves_more_than_saturation() -> None:
    assert state_at_rate(h100(), 1e4) is None


def test_rate_and_latencies_grow_with_the_load() -> None:
    served = h100()
    states = [state(served, load) for load in (1.0, 4.0, 16.0, 64.0, 128.0, 200.0)]
    rates = [each.requests_per_second for each in states]
    assert rates == sorted(rates)
    times = [latencies(served, each) for each in states]
    for tail in (
        [each.ttft.percentile(99) for each in times],
        [each.token_percentile(99) for each in times],
        [each.e2e.percentile(99) for each in times],
    ):
        assert tail == sorted(tail)


def test_an_idle_replica_answers_in_the_time_of_its_steps() -> None:
    served = h100(service("Llama-3.1-8B", (128, 128), (128, 128)))
    at = state(served, 1e-6)
    times = latencies(served, at)
    fixed = served.request_seconds + served.serial_seconds
    assert times.ttft.mean_seconds == pytest.approx(
        fixed + served.prompt_ratio * at.mixed.seconds, rel=1e-3
    )
    assert at.token_seconds == pytest.approx(at.decode.seconds)


def test_waiting_for_slots_without_room_never_ends() -> None:
    served = replace(h100(), batch_slots=10.0)
    assert math.isinf(latencies(served, state(served, 10.0)).ttft.mean_seconds)


def test_bursts_lengthen_the_tail_and_not_the_state() -> None:
    calm, bursty = (h100(replace(CHAT, arrival_dispersion=each)) for each in (0.0, 8.0))
    at = state(calm, 100.0)
    assert at == state(bursty, 100.0)
    assert latencies(calm, at).ttft.percentile(99) < latencies(bursty, at).ttft.percentile(99)


def test_chunks_bound_the_longest_step() -> None:
    long = service("Llama-3.1-8B", (6000, 12000), (100, 200))
    small, large = (
        h100(long, ServingLayout(max_model_tokens=32768, max_batched_tokens=each))
        for each in (512, 8192)
    )
    tails = [
        latencies(served, state(served, 8.0)).token_percentile(99.9) for served in (small, large)
    ]
    assert tails[0] < tails[1] / 4


def test_what_is_in_flight_is_biased_to_long_answers() -> None:
    even = service("Llama-3.1-8B", (400, 400), (200, 200))
    layout = ServingLayout()
    assert context_tokens(even, layout) == pytest.approx(400 + 199 / 2)
    assert context_tokens(CHAT, layout) > context_tokens(even, layout)


def test_tensorrt_llm_reserves_the_whole_output() -> None:
    even = service("Llama-3.1-8B", (400, 400), (200, 200))
    reserving = replace(even, engine="triton")
    assert slot_tokens(reserving, ServingLayout()) == pytest.approx(599)
    assert slot_tokens(even, ServingLayout()) == pytest.approx(499.5)


def test_pipeline_stages_work_on_different_batches() -> None:
    work = service("Llama-3.1-70B", (400, 1500), (200, 600))
    one, two = (
        h100(work, ServingLayout(tensor=4, pipeline=each, weight_format="fp8")) for each in (1, 2)
    )
    # Twice the devices: more throughput at the same batch per stage, no faster single token.
    assert state(two, 128.0).requests_per_second > 1.5 * state(one, 64.0).requests_per_second
    assert state(two, 1.0).decode.seconds >= state(one, 1.0).decode.seconds


def test_a_lone_request_has_a_step_of_its_own_in_each_stage() -> None:
    """Its step is that of one sequence, however few there are for each stage on average."""
    work = service("Llama-3.1-70B", (400, 1500), (200, 600))
    two = h100(work, ServingLayout(tensor=4, pipeline=2, weight_format="fp8"))
    alone = decode_step(two, 2.0)
    assert [decode_step(two, each) for each in (0.1, 1.0)] == [alone, alone]
    assert decode_step(two, 4.0).seconds > alone.seconds


def test_a_model_that_only_reads_takes_prompts_together() -> None:
    served = h100(replace(service("BERT-base", (128, 128), (1, 1)), engine="custom"))
    assert not served.generates
    single, several = state(served, 1.0), state(served, 8.0)
    assert several.requests_per_second > 3 * single.requests_per_second
    assert several.token_seconds == 0.0


def test_items_of_a_custom_model_are_rows() -> None:
    vision = service(Model("mine", Custom(25e6, 25e6, 8.2e9, 90e6)), (1, 1), (1, 1))
    served = h100(vision, ServingLayout(max_num_seqs=64))
    assert served.prompt.mean == 1.0
    assert served.largest_load == 64.0


def test_requests_cost_what_they_do_today_unless_the_software_is_older() -> None:
    assert [early_share(year) for year in (None, 2027.0, 2026.3, 2025.75, 2024.0)] == [
        *(0.0, 0.0, 0.0, 1.0, 1.0)
    ]
    today, older = (
        h100(replace(CHAT, software_year=year)).request_seconds for year in (None, 2025.0)
    )
    assert older != today


def test_software_between_two_years_costs_what_is_between_them() -> None:
    middle_year = (EARLY_YEAR + LATE_YEAR) / 2
    today, between, older = (
        h100(replace(CHAT, software_year=year)).request_seconds
        for year in (LATE_YEAR, middle_year, EARLY_YEAR)
    )
    assert between == pytest.approx((today + older) / 2)


def test_a_tail_of_long_prompts_is_read_too() -> None:
    """By the mean of all prompts, not by the median alone."""
    even, skewed = (
        h100(service("Llama-3.1-8B", prompt, (200, 600))).request_seconds
        for prompt in ((1024, 1024), (1024, 8192))
    )
    assert skewed > even


@pytest.mark.parametrize("answer_tokens", [4, 20, 100])
@pytest.mark.parametrize("load", [8.0, 40.0, 256.0])
def test_more_bandwidth_never_serves_less(answer_tokens: int, load: float) -> None:
    """Several short prompts in a step hide behind its decoding once, not once each."""
    work = service("Llama-3.1-70B", (128, 256), (answer_tokens, 2 * answer_tokens))
    layout = ServingLayout(tensor=8, max_num_seqs=256, max_batched_tokens=8192)
    on = machine("H100-SXM5-80GB")
    rates = [
        state(
            replica(work, layout, on.with_more(Resource.MEMORY_BANDWIDTH, more), CALIBRATION), load
        ).requests_per_second
        for more in (1.0, 1.1, 1.5, 2.0)
    ]
    assert rates == sorted(rates)
