"""What measured work attained under the roofs of its device.

The time is measured; FLOPs and bytes are those of the model's ledger. A kernel's are what its own
formula leaves where nothing is lost: the seconds at one FLOP (one byte) a second with all the rest
free. A training step's are those of the fullest stage with all that is computed again. A service's
are those of whole requests, prompts included; only rows with answers much longer than their prompts
are taken, since a mean over reading and writing in equal parts lies under no roof.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from bench.kernel_runs import KernelRun, kernel_run
from bench.model.outcome import Outcome, scored
from bench.serving_runs import Run as ServingRun
from bench.serving_runs import found as serving_run
from bench.tables import Row, number
from bench.training_runs import laid
from bench.training_runs import runs as training_runs
from poolwise.model.efficiency import Calibration
from poolwise.model.kernels.constants import TERMS
from poolwise.model.kernels.precision import speeds
from poolwise.model.kernels.predicting import multiplied
from poolwise.model.serving.capacity import capacity
from poolwise.model.serving.load import state
from poolwise.model.serving.replica import arithmetic_intensity, request_flops
from poolwise.model.shapes import Transformer
from poolwise.model.training.step import alone
from poolwise.tables import Tables

OPERATIONS = {
    "gemm": "matrix product",
    "attention_prefill": "attention of a prompt",
    "attention_decode": "attention of a token",
    "moe_ffn": "mixture of experts",
}
TRAINING, GENERATION = "training step", "service, mostly tokens"
KINDS = (*OPERATIONS.values(), TRAINING, GENERATION)
MOSTLY = 4.0
"""Generated over prompt tokens: reading the prompt is then a fifth of the products."""
FREE = {"bandwidth", "compute", "passing", "sharpness", "cache_bytes", "largest_tile"}
"""Constants of kernels that leave the ideal time alone at 1; the others do at 0."""


@dataclass(frozen=True, slots=True)
class Attained:
    """One measured piece of work on one device."""

    kind: str
    gpu: str
    intensity: float
    """FLOP per byte of device memory."""
    flops_per_second: float
    """Of one device."""


def attained(outcomes: Iterable[Outcome], gpus: Iterable[str], tables: Tables) -> list[Attained]:
    """What is known of the rows that count, on some accelerators."""
    calibration, wanted = Calibration(tables.efficiencies), frozenset(gpus)
    return [
        each
        for outcome in scored(outcomes)
        if outcome.row["gpu"] in wanted
        for each in _of(outcome, tables, calibration)
        if 0.0 < each.intensity < math.inf
    ]


def _of(outcome: Outcome, tables: Tables, calibration: Calibration) -> Iterator[Attained]:
    row = outcome.row
    match outcome.score:
        case "kernels":
            run = kernel_run(row, tables)
            if not isinstance(run, str):
                yield _of_kernel(run, row)
        case "train_dense" | "train_moe":
            yield from _of_step(row, tables, calibration)
        case "tpot" | "offline_throughput":
            yield from _of_service(outcome, tables, calibration)


def _of_kernel(run: KernelRun, row: Row) -> Attained:
    flops, moved = work(run)
    return Attained(OPERATIONS[row["op"]], row["gpu"], flops / moved, flops / run.seconds)


def work(run: KernelRun) -> tuple[float, float]:
    """FLOPs and bytes of one kernel with nothing wasted."""
    ideal = {term: float(term in FREE) for term in TERMS[run.kernel.operation]}
    real = speeds(run.device, multiplied(run.kernel, run.precision))
    computing = replace(real, flops_per_second=1.0, bytes_per_second=math.inf)
    moving = replace(real, flops_per_second=math.inf, bytes_per_second=1.0)
    return run.kernel.seconds(computing, ideal), run.kernel.seconds(moving, ideal)


def _of_step(row: Row, tables: Tables, calibration: Calibration) -> Iterator[Attained]:
    for run in training_runs([row], tables):
        own = alone(run.work, laid(run, calibration).layout, run.machine, calibration)
        flops, moved = own.once.flops, own.once.moved_bytes
        rate = flops * own.share.micro_batches / run.step_seconds
        yield Attained(TRAINING, row["gpu"], flops / moved if moved else math.inf, rate)


def _of_service(outcome: Outcome, tables: Tables, calibration: Calibration) -> Iterator[Attained]:
    column = "tpot_ms_mean" if outcome.score == "tpot" else "out_tok_s_total"
    run = serving_run(outcome.row, tables, column)
    if isinstance(run, str) or run.drafts:
        return
    shape = run.work.model.shape
    assert isinstance(shape, Transformer), "serving rows are of language models"
    prompt, output = run.work.input_tokens.p50, run.work.output_tokens.p50
    served = run.replica(calibration)
    load = run.in_flight if outcome.score == "tpot" else capacity(served, ()).load
    rate = _requests_per_second(run, output)
    if output >= MOSTLY * prompt and load and rate:
        at = state(served, load)
        flops = request_flops(run.work, shape, served) * rate / run.layout.count
        intensity = arithmetic_intensity(run.work, run.layout, served, at)
        yield Attained(GENERATION, outcome.row["gpu"], intensity, flops)


def _requests_per_second(run: ServingRun, output: float) -> float:
    """Of one replica: stated as tokens, or by Little's law from both times; 0 where one lacks."""
    if run.mode == "offline-max-throughput":
        return run.measured / run.replicas / output
    first = (number(run.row, "ttft_ms_mean") or 0.0) / 1e3
    if run.offered_requests_per_second or not first:
        return run.offered_requests_per_second or 0.0
    return run.in_flight / (first + run.measured * (output - 1.0))
