"""Prompt and token times of single batches that Splitwise measured, beside simulated ones.

Llama-2-70B and BLOOM-176B on engines of 2023, replayed batch by batch with the step costs of our
serving model: as shipped, which was fitted to software of 2025 and 2026, and with what is learnt
from half of the batches of a pool (model, accelerator and parallelism) for the other half.
"""

from __future__ import annotations

import itertools
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from bench.autoscale.engine import TARGETS, iteration_costs
from bench.autoscale.queue_limits import PLENTY_BLOCKS, run
from bench.machines import USUAL_NETWORK_BYTES_PER_SECOND, machine
from bench.placement.traces import Row
from poolwise import tables
from poolwise.model import presets
from poolwise.model.calibration import shipped
from poolwise.model.serving.replica import replica
from poolwise.model.work import ServingLayout, ServingWork, Tokens
from poolwise.sim.serving.costs import EngineLimits, IterationCosts
from poolwise.sim.serving.requests import Requests

TABLE = "splitwise_llm"
MODELS = {"llama2-70b": "Llama-2-70B", "bloom-176b": "BLOOM-176B"}
DEVICES = {"a100-80gb": "A100-SXM4-80GB", "h100-80gb": "H100-SXM5-80GB"}
"""Those without a power cap."""
SOFTWARE_YEAR = 2023.8
ANSWER = "128"
"""Tokens of the answers that every batch has a row of."""
FOLDS = 2


@dataclass(frozen=True, slots=True)
class Timed:
    """One figure of one measured batch."""

    pool: str
    """Model, accelerator and tensor parallelism: what a correction belongs to."""
    phase: str
    batch: str
    measured_seconds: float
    simulated_seconds: float

    @property
    def error(self) -> float:
        """Of what was measured, as a share."""
        return self.simulated_seconds / self.measured_seconds - 1.0


def timed(rows: Iterable[Row]) -> Iterator[Timed]:
    """Prompt and token times of all batches that ran on devices as we know them.

    Left out are repetitions with longer answers, so that no batch counts several times, and 64
    prompts with TP 2, which did not fit the memory: a part of them was timed.
    """
    for row in rows:
        is_known = row["model"] in MODELS and row["hardware"] in DEVICES
        fits = (row["tensor_parallel"], row["batch_size"]) != ("2", "64")
        if is_known and fits and row["token_size"] == ANSWER:
            yield from _batch(row)


def _batch(row: Row) -> Iterator[Timed]:
    requests, prompt = int(row["batch_size"]), int(row["prompt_size"])
    arriving = Requests.of(
        np.zeros(requests), np.full(requests, prompt), np.full(requests, int(ANSWER))
    )
    limits = EngineLimits(requests, requests * prompt, PLENTY_BLOCKS)
    answers = run(arriving, _costs(row), limits).answers()
    pool = f"{row['model']} {row['hardware']} TP {row['tensor_parallel']}"
    batch = f"{requests} x {prompt}"
    first = float(answers.first_token_seconds.max())
    gap = float(answers.tpot_seconds(arriving).mean())
    yield Timed(pool, "prompt", batch, float(row["prompt_time_ms"]) / 1e3, first)
    yield Timed(pool, "token", batch, float(row["token_time_ms"]) / 1e3, gap)


def _costs(row: Row) -> IterationCosts:
    """Of the engine's steps; the bench measured no server."""
    known = tables.load()
    model_row, accelerator = (
        known.model(MODELS[row["model"]]),
        known.accelerator(DEVICES[row["hardware"]]),
    )
    assert model_row is not None
    assert accelerator is not None
    model = presets.model(model_row)
    work = ServingWork(model, None, Tokens(512, 512), Tokens(128, 128), 0.0, None, TARGETS,
                       software_year=SOFTWARE_YEAR)  # fmt: skip
    layout = ServingLayout(tensor=int(row["tensor_parallel"]), max_num_seqs=64)
    on = machine(accelerator, USUAL_NETWORK_BYTES_PER_SECOND)
    costs = iteration_costs(replica(work, layout, on, shipped(known)), model)
    return IterationCosts(
        costs.tokens, costs.sequences, costs.key_seconds, costs.prompt_key_seconds
    )


Law = Callable[[float], float]
"""Seconds that are expected of what was simulated."""


def corrected(of: Iterable[Timed], learnt: Callable[[list[Timed]], Law]) -> Iterator[Timed]:
    """Every batch, by a law that was learnt from the other half of its pool and phase."""
    alike: defaultdict[tuple[str, str], list[Timed]] = defaultdict(list)
    for each in of:
        alike[each.pool, each.phase].append(each)
    for group in alike.values():
        for fold in range(FOLDS):
            law = learnt([each for place, each in enumerate(group) if place % FOLDS != fold])
            for each in group[fold::FOLDS]:
                yield replace(each, simulated_seconds=law(each.simulated_seconds))


def factor(learnt: list[Timed]) -> Law:
    """The operator's own: the median of measured over predicted."""
    slowness = statistics.median(each.measured_seconds / each.simulated_seconds for each in learnt)
    return lambda seconds: slowness * seconds


def factor_and_floor(learnt: list[Timed]) -> Law:
    """And no step shorter than its host takes to launch it, as in engines without CUDA graphs.

    Of the floors and factors that some batch has, those with the least relative error.
    """
    floors = (0.0, *(each.measured_seconds for each in learnt))
    factors = (each.measured_seconds / each.simulated_seconds for each in learnt)

    def miss(law: tuple[float, float]) -> float:
        floor, slowness = law
        return sum(
            abs(max(floor, slowness * each.simulated_seconds) / each.measured_seconds - 1.0)
            for each in learnt
        )

    floor, slowness = min(itertools.product(floors, factors), key=miss)
    return lambda seconds: max(floor, slowness * seconds)
