"""The engine of a replay: one layout of the serving model, reduced to what the simulator takes.

The model's step is a function of the tokens in it, of the sequences that get one, and of the keys
that are read; the first two become curves, the last a price of a key. What is lost is the bend of
the curves between knots and, for layers with a window, contexts shorter than that.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace

from bench.files import BadInput
from bench.machines import USUAL_NETWORK_BYTES_PER_SECOND, machine
from poolwise import tables
from poolwise.model import presets
from poolwise.model.calibration import shipped
from poolwise.model.efficiency import Calibration
from poolwise.model.hardware import Machine
from poolwise.model.serving.iteration import Batch, StepCosts, soft_maximum
from poolwise.model.serving.load import Replica
from poolwise.model.serving.memory import kv_tokens
from poolwise.model.serving.replica import replica
from poolwise.model.shapes import Model, Transformer
from poolwise.model.transformer import attending_layers
from poolwise.model.work import Metric, ServingLayout, ServingWork, Target, Tokens
from poolwise.sim.serving.costs import Curve, EngineLimits, IterationCosts, StepTable

BLOCK_TOKENS = 16
LARGE_DEVICE_BYTES = 70 * 2**30
LARGE, USUAL = (8192, 1024), (2048, 256)
"""vLLM's own batched tokens and sequences (``get_batch_defaults``) by the size of the device."""
KNOTS = tuple(
    float(count)
    for count in (*range(0, 64, 4), *range(64, 512, 16), *range(512, 2048, 64),
                  *range(2048, 16385, 512))
)  # fmt: skip
KNOTS = tuple(sorted({*KNOTS, 1.0, 2.0}))

USUAL_MODEL, USUAL_ACCELERATOR, USUAL_TENSOR = "llama-3.1-70b", "H100-SXM5-80GB", 4


@dataclass(frozen=True, eq=False)
class Engine:
    """One replica of the service, as the model knows it and as the simulator runs it."""

    model: Model
    layout: ServingLayout
    machine: Machine
    calibration: Calibration
    costs: IterationCosts
    limits: EngineLimits

    @property
    def name(self) -> str:
        """As a reader calls it."""
        return f"{self.model.name} on {self.machine.device.name} TP {self.layout.tensor}"

    def work(
        self, input_tokens: Tokens, output_tokens: Tokens, targets: tuple[Target, ...]
    ) -> ServingWork:
        """The service as its owner would declare it."""
        return ServingWork(self.model, None, input_tokens, output_tokens, 0.0, None, targets)

    def slower(self, factor: float) -> Engine:
        """The truth is so many times as slow as the model says."""
        return replace(self, costs=self.costs.scaled(factor))


class Unknown(BadInput):
    """A name that no table has, or a model that does not fit."""


def engine(
    model_name: str = USUAL_MODEL,
    accelerator_name: str = USUAL_ACCELERATOR,
    tensor: int = USUAL_TENSOR,
    max_batched_tokens: int | None = None,
    max_num_seqs: int | None = None,
) -> Engine:
    """From names in the tables; limits are vLLM's own unless given. Raises :class:`Unknown`."""
    known = tables.load()
    row, accelerator = known.model(model_name), known.accelerator(accelerator_name)
    if row is None:
        raise Unknown(f"--model: no model is named {model_name}")
    if accelerator is None:
        raise Unknown(f"--accelerator: no accelerator is named {accelerator_name}")
    model, on = presets.model(row), machine(accelerator, USUAL_NETWORK_BYTES_PER_SECOND)
    if not isinstance(model.shape, Transformer) or not model.shape.is_decoder:
        raise Unknown(f"--model: {model_name} does not answer token by token")
    _check_tensor(tensor, model.shape, on)
    is_large = on.device.memory_bytes >= LARGE_DEVICE_BYTES and "A100" not in accelerator.name
    tokens, sequences = LARGE if is_large else USUAL
    layout = ServingLayout(
        tensor=tensor,
        weight_format=model.native_format,
        max_batched_tokens=max_batched_tokens or tokens,
        max_num_seqs=max_num_seqs or sequences,
        max_model_tokens=row.max_context_tokens or 8192,
    )
    return of_layout(model, layout, on, shipped(known))


def _check_tensor(tensor: int, shape: Transformer, on: Machine) -> None:
    """Engines give each accelerator whole heads of a node's. Raises :class:`Unknown`."""
    per_node = on.interconnect.accelerators_per_node
    if tensor > per_node:
        raise Unknown(f"--tensor: is {tensor}, must be at most the {per_node} of a node")
    heads, keys = shape.heads, shape.kv_heads
    if heads % tensor or (keys % tensor and tensor % keys):
        told = f"must divide the model's {heads} heads, and share its {keys} of keys evenly"
        raise Unknown(f"--tensor: is {tensor}, {told}")


def of_layout(model: Model, layout: ServingLayout, on: Machine, calibration: Calibration) -> Engine:
    """Costs and limits of one layout. Raises :class:`Unknown` when no block of cache is left."""
    work = ServingWork(model, None, Tokens(512, 2048), Tokens(256, 1024), 0.0, None, TARGETS)
    blocks = int(kv_tokens(work, layout, on, calibration)) // BLOCK_TOKENS
    if not blocks:
        raise Unknown(f"{model.name} does not fit {layout.tensor} x {on.device.name}")
    served = replica(work, layout, on, calibration)
    limits = EngineLimits(layout.max_num_seqs, layout.max_batched_tokens, blocks, BLOCK_TOKENS)
    return Engine(model, layout, on, calibration, iteration_costs(served, model), limits)


TARGETS = (Target(Metric.TTFT, 99.0, 5.0), Target(Metric.ITL, 99.0, 0.1))
"""Any will do: that there are some makes the model's own correction that of latencies."""


def iteration_costs(served: Replica, model: Model) -> IterationCosts:
    """The model's step with its measured slowness, and a request's time in the front end."""
    costs, shape = served.costs, model.shape
    assert isinstance(shape, Transformer)
    windowed, whole = attending_layers(shape)
    key = sum(soft_maximum(costs.key_read_seconds, costs.key_attend_seconds))
    window_seconds = windowed * (shape.sliding_window or 0) * key
    found = IterationCosts(
        tokens=Curve(KNOTS, tuple(_tokens_seconds(costs, count) for count in KNOTS)),
        sequences=Curve(
            KNOTS,
            tuple(_sequences_seconds(costs, count) + window_seconds * count for count in KNOTS),
        ),
        key_seconds=whole * key,
        prompt_key_seconds=(whole + windowed) * costs.prompt_key_seconds,
        request_seconds=served.request_seconds + served.serial_seconds,
    )
    return found.scaled(served.slowness)


def _tokens_seconds(costs: StepCosts, tokens: float) -> float:
    """All but the head, the sampling and the attention."""
    batch = Batch(0.0, 0.0, max(tokens, 1.0), 0.0)
    return replace(costs, reads=None).step(batch).seconds


def _sequences_seconds(costs: StepCosts, sequences: float) -> float:
    if not sequences:
        return 0.0
    return sum(costs.head.split(sequences)) + costs.sequence_seconds * sequences


@dataclass(frozen=True, slots=True)
class Gap:
    """How far the reduced step is from the model's own at one batch."""

    batch: Batch
    model_seconds: float
    reduced_seconds: float

    @property
    def share(self) -> float:
        """Of the model's."""
        return self.reduced_seconds / self.model_seconds - 1.0


def gaps(of: Engine) -> Iterator[Gap]:
    """Over a grid of batches inside the limits: decoding ones, prompts, and both together."""
    work = ServingWork(of.model, None, Tokens(512, 2048), Tokens(256, 1024), 0.0, None, TARGETS)
    served = replica(work, of.layout, of.machine, of.calibration)
    table, limits = StepTable(of.costs, of.limits), of.limits
    sequences = (0, 1, 3, 7, 19, 53, 101, 211, 509, 1013)
    prompts = (0, 17, 131, 530, 1100, 2500, 5000, 8000)
    for count, context, prompt in itertools.product(sequences, (130, 1500, 9000), prompts):
        fits = count * context + prompt <= limits.kv_tokens and count <= limits.max_num_seqs
        if not (count or prompt) or count + prompt > limits.max_batched_tokens or not fits:
            continue
        batch = Batch(count, context, prompt, 1.0 if prompt else 0.0)
        shape = of.model.shape
        assert isinstance(shape, Transformer)
        layers = sum(attending_layers(shape))
        costs = replace(served.costs, prompt_keys=layers * (prompt + 1) / 2)
        yield Gap(batch, costs.step(batch).seconds * served.slowness, _reduced(table, batch))


def _reduced(table: StepTable, batch: Batch) -> float:
    """As the simulator adds it up."""
    prompt, sequences = int(batch.prompt_tokens), int(batch.sequences)
    return (
        table.tokens[prompt + sequences]
        + table.sequences[sequences + int(batch.prompts)]
        + table.key_seconds * batch.sequences * batch.context_tokens
        + table.prompt_key_seconds * prompt * (prompt + 1) / 2
    )
