"""Continuous batching of the inference double: pure, with simulated time."""

from __future__ import annotations

import statistics
from collections.abc import Sequence as Items
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from e2e.images.double.arguments import read
from e2e.images.double.batch import Batch, Iteration, Limits
from e2e.images.double.costs import Costs, from_environment
from e2e.images.double.sequence import Sequence

LIMITS = Limits(
    max_num_seqs=64, max_num_batched_tokens=256, max_model_len=512, block_size=16, num_blocks=4096
)


def limits(**changes: int) -> Limits:
    return Limits(**{**vars(LIMITS), **changes})


@dataclass
class Simulation:
    """A batch, and a clock that only iterations move."""

    batch: Batch
    now: float = 0.0
    gaps_seconds: list[float] = field(default_factory=list)
    iterations: list[Iteration] = field(default_factory=list)
    most_running: int = 0
    most_waiting: int = 0
    highest_usage: float = 0.0

    def add(self, prompt_tokens: int, max_tokens: int) -> Sequence:
        sequence = Sequence(prompt_tokens, max_tokens, self.now)
        self.batch.add(sequence)
        return sequence

    def run(self) -> None:
        """Until all is answered."""
        while iteration := self.batch.schedule(self.now):
            self.most_running = max(self.most_running, len(self.batch.running))
            self.most_waiting = max(self.most_waiting, len(self.batch.waiting))
            self.highest_usage = max(self.highest_usage, self.batch.cache_usage)
            self.iterations.append(iteration)
            self.now += iteration.seconds
            for token in self.batch.complete(iteration, self.now):
                if not token.is_first:
                    self.gaps_seconds.append(token.gap_seconds)


def simulate(requests: Items[tuple[int, int]], of: Limits = LIMITS) -> Simulation:
    simulation = Simulation(Batch(of, Costs()))
    for prompt_tokens, max_tokens in requests:
        simulation.add(prompt_tokens, max_tokens)
    simulation.run()
    return simulation


def test_inter_token_latency_grows_with_the_batch() -> None:
    medians = [
        statistics.median(simulate([(64, 32)] * concurrency).gaps_seconds)
        for concurrency in (1, 8, 32, 64)
    ]
    assert medians == sorted(medians)
    assert medians[2] > 1.5 * medians[0]


def test_throughput_grows_with_the_batch_more_slowly_than_the_batch() -> None:
    """Which is why engines batch, and why latency is what it costs."""
    alone, many = (simulate([(64, 32)] * count) for count in (1, 32))
    speedup = (32 * 32 / many.now) / (32 / alone.now)
    assert 4 < speedup < 32


def test_a_seat_is_waited_for_in_order() -> None:
    simulation = Simulation(Batch(limits(max_num_seqs=2), Costs()))
    sequences = [simulation.add(8, 4) for _ in range(6)]
    simulation.run()
    assert (simulation.most_running, simulation.most_waiting) == (2, 4)
    scheduled = [each.scheduled for each in sequences]
    assert scheduled == sorted(scheduled, key=lambda at: at or 0.0)
    assert all(each.generated_tokens == 4 for each in sequences)


def test_a_long_prompt_is_computed_in_chunks_beside_others_that_decode() -> None:
    simulation = Simulation(Batch(limits(max_num_batched_tokens=64), Costs()))
    short = simulation.add(8, 20)
    long = simulation.add(400, 2)
    simulation.run()
    prefills = [each for each in simulation.iterations if each.chunks.get(long, 0) > 1]
    assert len(prefills) == 7  # 56 of the first 64 tokens, then 63 beside one decode
    assert all(each.tokens <= 64 for each in simulation.iterations)
    assert all(short in each.chunks for each in prefills)


def test_a_prompt_delays_the_tokens_of_those_who_share_its_iteration() -> None:
    alone = max(simulate([(8, 20)]).gaps_seconds)
    simulation = Simulation(Batch(LIMITS, Costs()))
    simulation.add(8, 20)
    for _ in range(3):
        iteration = simulation.batch.schedule(simulation.now)
        assert iteration is not None
        simulation.batch.complete(iteration, simulation.now)
    simulation.add(240, 1)
    with_prompt = simulation.batch.schedule(simulation.now)
    assert with_prompt is not None
    assert with_prompt.seconds > alone + 200 * Costs().prefill_token_seconds


def test_a_full_cache_preempts_the_youngest_and_all_are_answered() -> None:
    simulation = Simulation(Batch(limits(num_blocks=8, max_model_len=128), Costs()))
    sequences = [simulation.add(30, 60) for _ in range(3)]
    simulation.run()
    assert sum(each.preempted for each in simulation.iterations) >= 1
    assert sequences[0].preemptions == 0
    assert sequences[-1].preemptions >= 1
    assert [each.generated_tokens for each in sequences] == [60, 60, 60]
    assert simulation.highest_usage <= 1.0
    assert simulation.batch.used_blocks == 0


def test_a_preempted_sequence_keeps_its_tokens_and_computes_them_again() -> None:
    sequence = Sequence(10, 5, 0.0)
    sequence.emit(1.0)
    sequence.computed_tokens = 11
    sequence.forget()
    assert (sequence.generated_tokens, sequence.missing_tokens) == (1, 11)
    assert sequence.first_token == 1.0


def test_a_dropped_request_frees_its_seat_and_its_blocks() -> None:
    simulation = Simulation(Batch(limits(max_num_seqs=1), Costs()))
    first, second = simulation.add(16, 100), simulation.add(16, 2)
    iteration = simulation.batch.schedule(0.0)
    assert iteration is not None
    simulation.batch.drop(first)
    assert simulation.batch.complete(iteration, 1.0) == []
    simulation.run()
    assert (first.generated_tokens, second.generated_tokens) == (0, 2)
    simulation.batch.drop(first)  # once more does no harm


def test_a_request_that_still_waits_can_be_dropped() -> None:
    batch = Batch(LIMITS, Costs())
    waiting = Sequence(1, 1, 0.0)
    batch.add(waiting)
    batch.drop(waiting)
    assert batch.schedule(0.0) is None


requests = st.lists(st.tuples(st.integers(1, 60), st.integers(1, 60)), min_size=1, max_size=25)


@settings(max_examples=60, deadline=None)
@given(requests, st.integers(1, 8), st.integers(1, 64), st.integers(8, 40))
def test_every_request_is_answered_whole_within_all_limits(
    asked: list[tuple[int, int]], seats: int, budget: int, blocks: int
) -> None:
    """Tokens are conserved: each prompt and each answer is computed, whatever is preempted."""
    of = limits(
        max_num_seqs=seats, max_num_batched_tokens=budget, num_blocks=blocks, max_model_len=120
    )
    simulation = Simulation(Batch(of, Costs()))
    sequences = [simulation.add(*each) for each in asked]
    simulation.run()
    assert [each.generated_tokens for each in sequences] == [tokens for _, tokens in asked]
    assert len(simulation.gaps_seconds) == sum(tokens - 1 for _, tokens in asked)
    assert simulation.most_running <= seats
    assert simulation.highest_usage <= 1.0
    assert all(0 < each.tokens <= budget for each in simulation.iterations)
    computed = sum(each.tokens for each in simulation.iterations)
    once = sum(prompt + tokens - 1 for prompt, tokens in asked)
    preempted = any(each.preemptions for each in sequences)
    assert computed > once if preempted else computed == once


GOLDEN = Path(__file__).parents[1] / "plan" / "children" / "golden" / "vllm.yaml"


def rendered_command() -> list[str]:
    """The engine's command as Poolwise renders it."""
    documents = yaml.safe_load_all(GOLDEN.read_text())
    (deployment,) = (each for each in documents if each["kind"] == "Deployment")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert container["command"] == ["vllm", "serve"]
    return ["serve", *container["args"]]


def test_options_are_those_that_poolwise_renders() -> None:
    options = read(rendered_command(), {"DOUBLE_START_SECONDS": "3"})
    assert (options.name, options.port, options.start_seconds) == ("assistant", 8000, 3.0)
    assert options.model == "meta-llama/Llama-3.1-8B-Instruct"
    assert options.limits == Limits(128, 2048, 8192, 16, 4096)
    assert options.shutdown_timeout_seconds == 15.0


def test_the_model_names_itself_where_nothing_else_does() -> None:
    assert read(["serve", "a/b"], {}).name == "a/b"
    assert read(["serve", "--model", "c"], {}).name == "c"


@pytest.mark.parametrize(
    ("words", "environment", "sentence"),
    [
        (["--max-num-seqs=0"], {}, "--max-num-seqs=0: must be at least 1"),
        (
            ["--max-model-len=100000"],
            {"DOUBLE_KV_TOKENS": "1000"},
            "a KV cache of 992 tokens cannot hold one sequence of --max-model-len=100000",
        ),
        ([], {"DOUBLE_BASE_SECONDS": "fast"}, "DOUBLE_BASE_SECONDS=fast: must be a number"),
        ([], {"DOUBLE_START_SECONDS": "-1"}, "DOUBLE_START_SECONDS=-1: must be at least 0"),
        ([], {"DOUBLE_KV_TOKENS": "inf"}, "DOUBLE_KV_TOKENS=inf: must be at least 0"),
    ],
)
def test_bad_options_are_refused_in_one_sentence(
    words: list[str], environment: dict[str, str], sentence: str
) -> None:
    with pytest.raises(ValueError) as raised:
        read(["serve", "m", *words], environment)
    assert str(raised.value) == sentence


def test_speeds_are_set_by_the_environment() -> None:
    costs = from_environment({"DOUBLE_BASE_SECONDS": "0.5", "DOUBLE_SEQUENCE_SECONDS": "0"})
    assert costs.iteration_seconds(10, 0, 0) == 0.5
    assert costs.prefill_token_seconds == Costs().prefill_token_seconds
