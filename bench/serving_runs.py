"""Rows of ``serve_measured`` as work, layout and machine, and what each protocol predicts.

Normalised here: formats by their several names, engines (TensorRT-LLM is Triton's backend), the
cache's format where the source is silent (TensorRT-LLM quantises it with the weights), the weights'
where it is (as published), and layouts (:mod:`bench.serving_layouts`). :func:`found` gives a run or
the reason why there is none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from bench.generic_models import stated_counts
from bench.machines import machine
from bench.serving_clients import BEFORE, sends_together
from bench.serving_dates import software_year
from bench.serving_drafts import drafts
from bench.serving_formats import cache_format_of, engine_of, weight_format_of
from bench.serving_layouts import SHARE_OF_ONE_WORKER, Sizes, sizes
from bench.serving_offline import requests_of, requests_per_second
from bench.tables import Row, figure, number, rate
from poolwise.model import presets
from poolwise.model.efficiency import Calibration
from poolwise.model.formats import WEIGHT_BYTES
from poolwise.model.hardware import Host, Machine
from poolwise.model.serving.load import Replica, State, state, state_at_rate
from poolwise.model.serving.memory import PHASE
from poolwise.model.serving.replica import recosted, replica
from poolwise.model.shapes import Model, Transformer
from poolwise.model.work import ServingLayout, ServingWork, Tokens
from poolwise.tables import AcceleratorRow, Tables

HOST = Host(96.0, 1e12, 1e10, 1e11, 5e9)
NETWORK_BYTES_PER_SECOND = 400e9

ENGINES = ("sglang", "triton", "vllm")
BATCHED_TOKENS = 8192
"""vLLM's default on devices of this size, and what the other engines are run with."""
BATCH_LIMIT = 2048
"""Of TensorRT-LLM's throughput benchmark."""


@dataclass(frozen=True, slots=True)
class Run:
    """One measured run."""

    row: Row
    mode: str
    work: ServingWork
    layout: ServingLayout
    machine: Machine
    in_flight: float
    """On one replica."""
    measured: float
    """Seconds per token, seconds to the first, or generated tokens per second."""
    replicas: float = 1.0
    offered_requests_per_second: float | None = None
    drafts: int = 0
    """Tokens that a prediction layer guesses in each step."""
    shares: bool = False
    """Whether ``in_flight`` rests on a guess of how many workers share the clients."""
    apart: bool = False
    """Whether prompts are read elsewhere."""
    together: bool = False
    """Whether all clients send at once (:mod:`bench.serving_clients`)."""
    held: Replica | None = None
    """The replica by other constants of its steps: what these do not change is taken from it."""

    @property
    def group(self) -> str:
        """Family of near-identical rows."""
        return self.row["group"]

    def replica(self, calibration: Calibration) -> Replica:
        """What ran."""
        what = self.work, self.layout, self.machine, calibration
        served = recosted(self.held, *what) if self.held else replica(*what)
        if not self.drafts:
            return served
        generated = served.generated
        steps = generated.mean / self.tokens_per_step(calibration)
        return replace(
            served,
            costs=replace(served.costs, drafts=float(self.drafts)),
            generated=replace(generated, mean=steps),
        )

    def tokens_per_step(self, calibration: Calibration) -> float:
        """Of one sequence: a guess counts only when all before it were right."""
        if not self.drafts:
            return 1.0
        right = calibration.value(PHASE, "draft_acceptance", self.machine.device)
        return sum(right**guesses for guesses in range(self.drafts + 1))

    def sequences(self, calibration: Calibration) -> float:
        """In flight on one replica; see :data:`bench.serving_layouts.SHARE_OF_ONE_WORKER`."""
        if not self.shares:
            return self.in_flight
        share = calibration.value(PHASE, "worker_share", self.machine.device)
        return self.in_flight * share / SHARE_OF_ONE_WORKER


def runs(rows: Iterable[Row], tables: Tables, modes: Iterable[str], column: str) -> Iterator[Run]:
    """Usable rows of some modes, with the figure of ``column`` (milliseconds or tokens/s)."""
    wanted = frozenset(modes)
    for row in rows:
        if row["mode"] in wanted and figure(row, column):
            run = found(row, tables, column)
            if isinstance(run, Run):
                yield run


def found(row: Row, tables: Tables, column: str) -> Run | str:
    """The run behind a row's figure, or why it cannot be known, in a few words."""
    value = figure(row, column)
    if value is None:
        return f"no {column}"
    accelerator = tables.accelerator(row["gpu"])
    if accelerator is None:
        return "accelerator is not known"
    model = _model(row, tables)
    if model is None:
        return "model is neither known nor counted"
    prompt, output = number(row, "isl"), number(row, "osl")
    if not prompt or not output:
        return "no lengths"
    several = sizes(row)
    if isinstance(several, str):
        return several
    measured = value / 1e3 if column.endswith(("ms_mean", "ms_p50", "ms_p99")) else value
    run = _run(row, model, accelerator, several, (prompt, output), measured)
    stored = (run.layout.weight_format, run.layout.kv_format)
    return run if all(each in WEIGHT_BYTES for each in stored) else "format is not known"


def token_seconds(run: Run, calibration: Calibration) -> float:
    """Time per token: a closed loop of clients, requests at a rate, or decoding apart."""
    served, tokens = run.replica(calibration), run.tokens_per_step(calibration)
    offered = run.offered_requests_per_second
    if offered is not None:
        at = state_at_rate(served, offered) or state(served, max(1.0, served.largest_load))
        return at.token_seconds / tokens
    at = _closed_loop(served, run.sequences(calibration))
    if run.apart:
        return at.decode.seconds / tokens
    others = max(at.in_flight - 1.0, 0.0) / at.in_flight
    if run.together:
        others *= 1.0 - BEFORE
    own = at.decode.seconds + others * (at.token_seconds - at.decode.seconds)
    return own / tokens


def generated_tokens_per_second(run: Run, calibration: Calibration) -> float:
    """At saturation, or for one static batch read and generated as a whole."""
    served = run.replica(calibration)
    output = served.generated.mean + 1.0
    if run.mode != "static-batch":
        of_each = requests_of(run.row)
        most = requests_per_second(served, of_each and of_each / run.replicas)
        return run.replicas * output * (most or _closed_loop(served, 1.0).requests_per_second)
    at = state(served, max(1.0, run.in_flight))
    added = at.chunks * (at.mixed.seconds - at.decode.seconds)
    whole_seconds = run.in_flight * added + served.generated.mean * at.decode.seconds
    return run.replicas * output * run.in_flight / whole_seconds


def prompt_seconds(run: Run, calibration: Calibration) -> float:
    """The steps of one prompt alone."""
    at = _closed_loop(run.replica(calibration), run.in_flight)
    return at.chunks * at.mixed.seconds


def _closed_loop(served: Replica, in_flight: float) -> State:
    """Requests beyond what the cache holds wait; one that does not fit ran all the same."""
    most = served.slots if served.slots >= 1.0 else in_flight
    return state(served, max(1.0, min(in_flight, most)))


def _model(row: Row, tables: Tables) -> Model | None:
    known = tables.model(row["model"])
    if known is not None:
        model = presets.model(known)
        return model if isinstance(model.shape, Transformer) else None
    counts = stated_counts(row)
    return presets.generic(row["model"], *counts) if counts else None


def _run(
    row: Row,
    model: Model,
    accelerator: AcceleratorRow,
    several: Sizes,
    lengths: tuple[float, float],
    measured: float,
) -> Run:
    return Run(
        row=row,
        mode=row["mode"],
        work=_work(row, model, *lengths),
        layout=_layout(row, model, several, int(sum(lengths)) + 1),
        machine=machine(accelerator, NETWORK_BYTES_PER_SECOND, HOST),
        in_flight=several.in_flight,
        measured=measured,
        replicas=several.replicas,
        offered_requests_per_second=_offered(row, several),
        drafts=drafts(row),
        shares=several.shares,
        apart=several.apart or row["mode"] == "online-disagg",
        together=sends_together(row, engine_of(row)),
    )


def _offered(row: Row, several: Sizes) -> float | None:
    offered = rate(row, "qps_offered")
    return offered / several.replicas if offered and row["mode"] == "online" else None


def _work(row: Row, model: Model, prompt: float, output: float) -> ServingWork:
    return ServingWork(
        model=model,
        requests_per_second=None,
        input_tokens=Tokens(prompt, prompt),
        output_tokens=Tokens(output, output),
        prefix_hit_fraction=0.0,
        max_model_tokens=None,
        targets=(),
        engine=engine_of(row),
        software_year=software_year(row),
    )


def _layout(row: Row, model: Model, several: Sizes, longest_tokens: int) -> ServingLayout:
    return ServingLayout(
        tensor=several.tensor,
        pipeline=several.pipeline,
        expert=several.expert,
        data=several.data,
        weight_format=weight_format_of(row, model.native_format),
        max_num_seqs=BATCH_LIMIT,
        max_model_tokens=longest_tokens,
        max_batched_tokens=BATCHED_TOKENS,
        kv_format=cache_format_of(row),
    )
