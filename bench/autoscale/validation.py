"""Whether the simulator can be believed: ``python -m bench.autoscale.validation``.

Queues with a known law are limits of the engine. With steps of one length whatever they carry, an
engine of c places is M/M/c; with steps as long as the sequences in them, it shares its processor
among all of them (M/G/1-PS). Measured prompts and tokens of Splitwise (Llama-2-70B and BLOOM-176B,
engines of 2023) are replayed batch by batch with the step costs of our serving model: as shipped
(software of today), with the one factor for a phase of a pool that the operator learns, and with
two constants, both learnt from every other row.
"""

from __future__ import annotations

import argparse
import heapq
import itertools
import math
import statistics
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from bench.autoscale.engine import TARGETS, gaps, iteration_costs
from bench.autoscale.engine import engine as known_engine
from bench.machines import USUAL_NETWORK_BYTES_PER_SECOND, machine
from bench.placement.traces import Missing, Row, read
from bench.tables import DEFAULT_FOLDER
from poolwise import tables
from poolwise.model import presets
from poolwise.model.calibration import shipped
from poolwise.model.serving.replica import replica
from poolwise.model.work import ServingLayout, ServingWork, Tokens
from poolwise.sim.serving.costs import Curve, EngineLimits, IterationCosts
from poolwise.sim.serving.fleet import Fleet
from poolwise.sim.serving.requests import Floats, Requests
from poolwise.sim.serving.router import LeastOutstanding

STEP_SECONDS = 0.001
TOKENS = 200
"""Mean answer: a step is short beside it, so steps hardly show."""
MEASURED = "splitwise_llm"
MODELS = {"llama2-70b": "Llama-2-70B", "bloom-176b": "BLOOM-176B"}
DEVICES = {"a100-80gb": "A100-SXM4-80GB", "h100-80gb": "H100-SXM5-80GB"}
"""Those without a power cap."""
SOFTWARE_YEAR = 2023.8
ANSWER = "128"
"""Tokens of the answers that every batch has a row of."""
PLENTY_BLOCKS = 10**6
WORST = 8


@dataclass(frozen=True, slots=True)
class Check:
    """A mean that theory knows."""

    name: str
    expected_seconds: float
    found_seconds: float

    @property
    def error(self) -> float:
        """Of what is expected, as a share."""
        return self.found_seconds / self.expected_seconds - 1.0


def erlang_c(servers: int, load: float) -> float:
    """Probability to wait in M/M/c; ``load`` is that of one server, from 0 to 1."""
    offered = servers * load
    terms = [offered**k / math.factorial(k) for k in range(servers)]
    last = offered**servers / math.factorial(servers) / (1.0 - load)
    return last / (sum(terms) + last)


def many_servers(servers: int, load: float, requests: int, seed: int) -> Check:
    """Mean time in the system of M/M/c: service, and ``C / (c (1 - rho))`` times it of waiting."""
    draw = np.random.default_rng(seed)
    answers = draw.geometric(1.0 / TOKENS, requests)
    service = float(answers.mean()) * STEP_SECONDS
    expected = service * (1.0 + erlang_c(servers, load) / servers / (1.0 - load))
    arriving = _arriving(draw, servers * load / service, answers)
    costs = IterationCosts(Curve.line(STEP_SECONDS, 0.0), Curve.line(0.0, 0.0), 0.0, 0.0)
    limits = EngineLimits(servers, 10**4, PLENTY_BLOCKS)
    return Check(f"M/M/{servers} at {load:g}", expected, _mean_seconds(arriving, costs, limits))


def in_order(arrivals: Floats, services: Floats, servers: int) -> Floats:
    """When each leaves a queue with so many servers, by its definition: whoever is free first."""
    free_at = [0.0] * servers
    found = np.empty(len(arrivals))
    for place, (arrival, service) in enumerate(zip(arrivals, services, strict=True)):
        found[place] = max(arrival, free_at[0]) + service
        heapq.heapreplace(free_at, found[place])
    return found


def in_common(arrivals: Floats, services: Floats) -> Floats:
    """When each leaves a processor that all present share alike.

    ``given`` is what each would have had since the beginning; a request leaves when that has grown
    by its service.
    """
    found = np.empty(len(arrivals))
    present: list[tuple[float, int]] = []
    now = given = 0.0
    coming = [*zip(arrivals.tolist(), services.tolist(), strict=True), (math.inf, 0.0)]
    for place, (arrival, service) in enumerate(coming):
        while present and now + (present[0][0] - given) * len(present) <= arrival:
            now += (present[0][0] - given) * len(present)
            given, leaving = heapq.heappop(present)
            found[leaving] = now
        if present:
            given += (arrival - now) / len(present)
        now = arrival
        heapq.heappush(present, (given + service, place))
    return found


def shared_processor(name: str, tokens: Floats, load: float, seed: int) -> Check:
    """Mean time in the system of M/G/1-PS, ``E[S] / (1 - rho)`` whatever the law of lengths."""
    draw = np.random.default_rng(seed)
    answers = np.maximum(tokens, 1.0).round().astype(np.int64)
    service = float(answers.mean()) * STEP_SECONDS
    arriving = _arriving(draw, load / service, answers)
    costs = IterationCosts(Curve.line(0.0, STEP_SECONDS), Curve.line(0.0, 0.0), 0.0, 0.0)
    limits = EngineLimits(4096, 10**5, PLENTY_BLOCKS)
    found = _mean_seconds(arriving, costs, limits)
    return Check(f"M/{name}/1-PS at {load:g}", service / (1.0 - load), found)


def queues(requests: int, seed: int = 0) -> Iterator[Check]:
    """Both limits at several loads; answers all alike, exponential, and of two kinds."""
    for servers, load in ((1, 0.6), (4, 0.7), (16, 0.8)):
        yield many_servers(servers, load, requests, seed)
    draw = np.random.default_rng(seed + 1)
    laws = {
        "D": np.full(requests, float(TOKENS)),
        "M": draw.geometric(1.0 / TOKENS, requests).astype(np.float64),
        "H": np.where(draw.random(requests) < 0.9, TOKENS / 2.0, TOKENS * 5.5),
    }
    for name, tokens in laws.items():
        yield shared_processor(name, tokens, 0.6, seed)


def _arriving(
    draw: np.random.Generator, rate: float, answers: np.typing.NDArray[np.int64]
) -> Requests:
    """By chance, at the very rate: its own error would be the greatest of all."""
    gaps_seconds = draw.exponential(1.0, len(answers))
    arrivals = np.cumsum(gaps_seconds / gaps_seconds.mean() / rate)
    return Requests.of(arrivals, np.ones(len(answers), np.int64), answers)


def _mean_seconds(arriving: Requests, costs: IterationCosts, limits: EngineLimits) -> float:
    """From arrival to the last token, after the first tenth."""
    fleet = _run(arriving, costs, limits)
    seconds = fleet.answers().finished_seconds - arriving.arrival_seconds
    return float(seconds[len(seconds) // 10 :].mean())


def _run(arriving: Requests, costs: IterationCosts, limits: EngineLimits) -> Fleet:
    fleet = Fleet(arriving, costs, limits, LeastOutstanding())
    fleet.request(1, 0.0)
    fleet.finish()
    return fleet


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
    answers = _run(arriving, _costs(row), limits).answers()
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


def corrected(of: Iterable[Timed], constants: int) -> Iterator[Timed]:
    """Every other row of a pool and phase, by a law learnt from those between them."""
    alike: defaultdict[tuple[str, str], list[Timed]] = defaultdict(list)
    for each in of:
        alike[each.pool, each.phase].append(each)
    for group in alike.values():
        fixed, factor = (_factor, _line)[constants - 1](group[1::2])
        for each in group[::2]:
            yield replace(each, simulated_seconds=fixed + factor * each.simulated_seconds)


def _factor(learnt: list[Timed]) -> tuple[float, float]:
    """The operator's own law: the median of measured over predicted."""
    return 0.0, statistics.median(one.measured_seconds / one.simulated_seconds for one in learnt)


def _line(learnt: list[Timed]) -> tuple[float, float]:
    """Fixed seconds and a factor: of the lines through two rows, the one with the least error."""
    lines = [_factor(learnt)]
    for one, other in itertools.combinations(learnt, 2):
        across = other.simulated_seconds - one.simulated_seconds
        if abs(across) > 1e-3 * one.simulated_seconds:
            factor = (other.measured_seconds - one.measured_seconds) / across
            lines.append((max(one.measured_seconds - factor * one.simulated_seconds, 0.0), factor))
    return min(lines, key=lambda line: sum(abs(_miss(line, one)) for one in learnt))


def _miss(line: tuple[float, float], one: Timed) -> float:
    return (line[0] + line[1] * one.simulated_seconds) / one.measured_seconds - 1.0


def _summary(name: str, found: list[Timed]) -> Iterator[str]:
    for phase in ("prompt", "token"):
        ours = [each for each in found if each.phase == phase]
        errors = [abs(each.error) for each in ours]
        yield (
            f"{name}, {phase}: {len(ours)} batches, median error "
            f"{100 * statistics.median(errors):.1f} %, worst:"
        )
        for each in sorted(ours, key=lambda one: -abs(one.error))[:WORST]:
            yield f"  {each.pool}, {each.batch}: {100 * each.error:+.0f} %"


def main() -> int:
    """Print all figures."""
    parser = argparse.ArgumentParser(prog="python -m bench.autoscale.validation")
    parser.add_argument("--data", type=Path, default=DEFAULT_FOLDER, help="folder of the tables")
    parser.add_argument("--requests", type=int, default=200_000, help="of each queue")
    asked = parser.parse_args()
    for check in queues(asked.requests):
        print(f"{check.name}: {100 * check.error:+.2f} %")
    worst = max(gaps(known_engine()), key=lambda g: abs(g.share))
    print(
        f"reduced step against the model's own, worst: {100 * worst.share:+.2f} % at {worst.batch}"
    )
    try:
        found = list(timed(read(asked.data, MEASURED)))
    except Missing as missing:
        print(missing, file=sys.stderr)
        return 0
    kinds = {
        "as shipped": found,
        "one factor learnt": list(corrected(found, 1)),
        "two constants learnt": list(corrected(found, 2)),
    }
    for name, each in kinds.items():
        print("\n".join(_summary(name, each)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
