"""The search for loads: what bisection finds, in a few looks, whatever it begins with."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from poolwise.model.serving.capacity import highest
from poolwise.model.serving.latency import latencies
from poolwise.model.serving.load import Replica, State, state
from poolwise.model.serving.replica import replica
from poolwise.model.serving.search import Probe, last_inside
from poolwise.model.serving.targets import SHARPNESS, each_miss, excess
from poolwise.model.serving.tuning import tuned
from poolwise.model.work import Metric, ServingLayout, Target
from tests.model.serving_cases import CALIBRATION, machine, service

DEVICES = ("H100-SXM5-80GB", "L40S", "A100-SXM4-80GB")
CHUNKS = (256, 1024, 8192)
REPLICAS = {
    (name, chunk): (
        replica(
            service("Llama-3.1-8B", (1500.0, 4000.0), (150.0, 500.0)),
            ServingLayout(max_batched_tokens=chunk, max_model_tokens=8192),
            machine(name),
            CALIBRATION,
        )
    )
    for name in DEVICES
    for chunk in CHUNKS
}
ratios = some.floats(0.2, 20.0)
percentiles = some.sampled_from((50.0, 90.0, 99.0))


@some.composite
def targets(draw: some.DrawFn) -> tuple[Target, ...]:
    """One to three, from out of reach to never missed."""
    usual = {Metric.TTFT: 0.5, Metric.ITL: 0.04, Metric.TPOT: 0.03, Metric.E2E: 6.0}
    metrics = draw(some.sets(some.sampled_from(list(Metric)), min_size=1, max_size=4))
    return tuple(
        Target(each, draw(percentiles), usual[each] * draw(ratios)) for each in sorted(metrics)
    )


replicas = some.sampled_from(sorted(REPLICAS)).map(REPLICAS.__getitem__)


def beyond(served: Replica, at: State, asked: tuple[Target, ...]) -> float:
    return excess(at, asked, each_miss(latencies(served, at), asked))


def bisected(served: Replica, asked: tuple[Target, ...]) -> float:
    """The highest load by halving, to one in ten million."""
    low, high = served.largest_load * 2.0**-22, served.largest_load
    for load in (high, low):
        if (beyond(served, state(served, load), asked) <= 0.0) == (load == high):
            return load if load == high else 0.0
    for _ in range(48):
        middle = math.sqrt(low * high)
        if beyond(served, state(served, middle), asked) <= 0.0:
            low = middle
        else:
            high = middle
    return low


@settings(max_examples=60)
@given(replicas, targets())
def test_it_finds_what_bisection_finds_and_never_more(
    served: Replica, asked: tuple[Target, ...]
) -> None:
    exact, found = bisected(served, asked), highest(served, asked).load
    assert found <= exact * (1.0 + 1e-9)
    assert found >= exact * (1.0 - 1.01e-4)


@settings(max_examples=40)
@given(replicas, targets(), some.floats(0.001, 1.5))
def test_the_answer_does_not_depend_on_the_guess(
    served: Replica, asked: tuple[Target, ...], share: float
) -> None:
    assert highest(served, asked, near=share * served.largest_load) == highest(served, asked)


@settings(max_examples=40)
@given(replicas, targets(), some.floats(1.0, 1.5))
def test_looser_targets_never_serve_less(
    served: Replica, asked: tuple[Target, ...], looser: float
) -> None:
    loose = tuple(Target(each.metric, each.percentile, each.seconds * looser) for each in asked)
    assert highest(served, loose).load >= highest(served, asked).load


@settings(max_examples=40)
@given(replicas, targets(), some.floats(0.5, 2.0))
def test_what_is_worth_its_while_is_found_in_full(
    served: Replica, asked: tuple[Target, ...], share: float
) -> None:
    whole = highest(served, asked)
    worth = whole.requests_per_second * share
    found = highest(served, asked, worth=worth)
    assert found == whole or (share > 1.0 and found.load == 0.0)


def test_the_best_chunk_is_the_best_of_all_and_has_its_own_capacity() -> None:
    asked = (Target(Metric.TTFT, 99, 2.0), Target(Metric.ITL, 99, 0.05))
    work = service("Llama-3.1-8B", (1500.0, 4000.0), (150.0, 500.0), asked)
    whole = ServingLayout(max_num_seqs=256, max_model_tokens=8192)
    chosen, found = tuned(work, whole, machine("L40S"), CALIBRATION)
    rates = {
        chunk: highest(
            replica(
                work,
                ServingLayout(max_num_seqs=256, max_model_tokens=8192, max_batched_tokens=chunk),
                machine("L40S"),
                CALIBRATION,
            ),
            asked,
        ).requests_per_second
        for chunk in (256, 512, 1024, 2048, 4096, 8192)
    }
    assert found.requests_per_second == rates[chosen.max_batched_tokens]
    assert found.requests_per_second >= max(rates.values()) * (1.0 - 1e-4)


@pytest.mark.parametrize("root", [0.5, 3.0, 41.2, 99.5])
def test_smooth_quantities_take_few_looks(root: float) -> None:
    looks = []

    def cubic(step: int) -> float:
        looks.append(step)
        return (step / 100.0) ** 3 - (root / 100.0) ** 3

    ends = Probe(0, cubic(0)), Probe(100_000, cubic(100_000))
    assert last_inside(cubic, *ends) == math.floor(root)
    assert len(looks) < 40


def test_a_jump_is_found_too() -> None:
    found = last_inside(lambda step: 1.0 if step > 77 else -1.0, Probe(0, -1.0), Probe(1024, 1.0))
    assert found == 77


def test_a_target_of_tokens_is_missed_without_a_jump_where_the_longest_step_passes_it() -> None:
    served = REPLICAS["L40S", 256]
    at = state(served, 20.0)
    longest = latencies(served, at).longest_token_seconds
    below, above = (
        beyond(served, at, (Target(Metric.ITL, 90, longest * each),)) for each in (1.001, 0.999)
    )
    assert latencies(served, at).tokens.share_later(longest * 0.999) > 0.5
    assert below == pytest.approx(-0.001, rel=0.01)
    assert above == pytest.approx(SHARPNESS * 0.001, rel=0.01)
