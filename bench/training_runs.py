"""Rows of ``train_measured`` as work, layout and machine, with the step time that was measured.

Normalised here: models cut to ``layers_used``, precisions by their several names, Trainium's
parallel sizes (counted in cores, two a chip), network rates from the words of the source. Sizes a
source leaves out are chosen as the product would choose them, by its own search.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from bench.tables import Row, number, whole
from poolwise.model import presets
from poolwise.model.efficiency import Calibration
from poolwise.model.hardware import Host, Interconnect, Machine
from poolwise.model.work import (
    Method,
    Model,
    Recompute,
    TrainingLayout,
    TrainingWork,
    Transformer,
)
from poolwise.plan.candidates.training_layouts import NoTrainingShape, TrainingSearch
from poolwise.plan.pools.machines import device
from poolwise.plan.requests.request import FixedLayout
from poolwise.tables import AcceleratorRow, Tables

PLENTY = Host(1e6, 1e15, 1e15, 1e15, 1e15)
"""Benchmarks feed synthetic or cached samples: input never limits them."""

NETWORK_BYTES_PER_SECOND = {
    "A100-SXM4-40GB": 200e9,
    "A100-SXM4-80GB": 200e9,
    "B300-SXM": 800e9,
    "GB200-NVL72": 200e9,
    "GB300-NVL72": 400e9,
    "Trainium1": 100e9,
    "TPU v5e": 50e9,
    "TPU v5p": 50e9,
    "TPU v6e": 50e9,
}
"""Per node, where the source does not say: the usual reference design of that machine."""
USUAL_NETWORK_BYTES_PER_SECOND = 400e9
SLOW_NETWORK_BYTES_PER_SECOND = 25e9
"""Machines without a switched fabric."""

PRECISIONS = {
    "mxfp8": "fp8",
    "fp8-cs": "fp8",
    "fp8-mx": "fp8",
    "fp8/bf16 mixed (see submission)": "fp8",
}
NOT_COMPARABLE = ("FLUX", "variable-length", "CPU offload")
"""MLPerf trains FLUX on 256 x 256 pixels and BERT without its padding, which no column says;
weights kept on the host are not modelled."""
METHODS = {"lora": Method.LORA, "qlora": Method.QLORA}
SHARDING = {"FULL_SHARD": 3, "FSDP": 3, "FSDP2": 3, "SHARD_GRAD_OP": 2}
RECOMPUTE = {
    "none": Recompute.NONE,
    "full": Recompute.FULL,
    "selective op": Recompute.SELECTIVE,
    "selective": Recompute.SELECTIVE,
}


@dataclass(frozen=True, slots=True)
class Run:
    """One measured run."""

    row: Row
    work: TrainingWork
    fixed: FixedLayout
    interleave: int
    machine: Machine
    count: int
    step_seconds: float

    @property
    def group(self) -> str:
        """Family of near-identical rows."""
        return self.row["group"]

    @property
    def is_sparse(self) -> bool:
        """Whether the model is a mixture of experts."""
        shape = self.work.model.shape
        return isinstance(shape, Transformer) and shape.experts is not None

    @property
    def is_pretraining(self) -> bool:
        """Whether all weights are trained from scratch."""
        return self.row["task"] == "pretrain"


@dataclass(frozen=True, slots=True)
class LaidRun:
    """A run with its whole layout."""

    run: Run
    layout: TrainingLayout


def runs(rows: Iterable[Row], tables: Tables) -> Iterator[Run]:
    """Rows of a known model on one known accelerator, with a rate and a global batch."""
    for row in rows:
        found = _run(row, tables)
        if found is not None:
            yield found


def laid(run: Run, calibration: Calibration) -> LaidRun | None:
    """The run with the sizes its source left out chosen by the planner; None if none divides."""
    known = _whole_layout(run)
    if known is not None:
        return LaidRun(run, known)
    found = TrainingSearch(run.work, run.fixed, run.machine, calibration).best(run.count)
    if isinstance(found, NoTrainingShape):
        return None
    return LaidRun(run, found.layout)


def _run(row: Row, tables: Tables) -> Run | None:
    if any(words in f"{row['model']} {row['notes']}" for words in NOT_COMPARABLE):
        return None
    model, accelerator = tables.model(row["model"]), tables.accelerators.find(row["gpu"])
    count, batch = whole(row, "n_gpus"), whole(row, "global_batch")
    if model is None or accelerator is None or count is None or batch is None:
        return None
    work = _work(row, _cut(presets.model(model), whole(row, "layers_used")), batch)
    step_seconds = _step_seconds(row, work, count)
    if step_seconds is None:
        return None
    fixed, interleave = _fixed(row, count, batch)
    return Run(row, work, fixed, interleave, _machine(row, accelerator), count, step_seconds)


def _work(row: Row, model: Model, batch: int) -> TrainingWork:
    match = re.match(r"\d+", row["seq_len"])
    return TrainingWork(
        model=model,
        global_batch_samples=batch,
        sequence_tokens=int(match.group()) if match else None,
        precision=PRECISIONS.get(row["precision"], row["precision"]),
        method=METHODS.get(row["task"], Method.FULL),
    )


def _cut(model: Model, layers: int | None) -> Model:
    """A proxy with fewer layers, as some sources measure."""
    shape = model.shape
    if layers is None or not isinstance(shape, Transformer) or layers >= shape.layers:
        return model
    windowed = shape.windowed_layers
    cut = replace(
        shape,
        layers=layers,
        windowed_layers=None if windowed is None else windowed * layers // shape.layers,
    )
    return replace(model, shape=cut)


def _step_seconds(row: Row, work: TrainingWork, count: int) -> float | None:
    tokens, samples = number(row, "tokens_per_s_per_gpu"), number(row, "samples_per_s")
    if isinstance(work.model.shape, Transformer) and tokens and work.sequence_tokens:
        return work.global_batch_samples * work.sequence_tokens / (tokens * count)
    return work.global_batch_samples / samples if samples else None


def _fixed(row: Row, count: int, batch: int) -> tuple[FixedLayout, int]:
    """What the source says of the layout, and the virtual stages."""
    tensor, pipeline, context = (whole(row, name) for name in ("tp", "pp", "cp"))
    if tensor is not None and row["gpu"].startswith("Trainium"):
        tensor = max(1, tensor // 2)
    if tensor and pipeline:
        context = context or 1
        tensor, pipeline = _dividing(count, tensor, pipeline, context)
    micro = whole(row, "micro_batch")
    if micro and pipeline and pipeline > 1 and row["framework"] == "torchtitan":
        micro = max(1, micro // pipeline)  # its local batch is what one step of a rank takes
    return (
        FixedLayout(
            tensor=tensor,
            pipeline=pipeline,
            context=context,
            expert=whole(row, "ep"),
            zero_stage=_zero_stage(row, pipeline),
            micro_batch_size=min(micro, batch) if micro else None,
            recompute=RECOMPUTE.get(row["act_ckpt"]),
        ),
        whole(row, "vp") or 1,
    )


def _dividing(count: int, tensor: int, pipeline: int, context: int) -> tuple[int, int]:
    """Sizes as published, cut back where they ask for more devices than there were."""
    pipeline = max(1, min(pipeline, count // (tensor * context)))
    return tensor, pipeline


def _zero_stage(row: Row, pipeline: int | None) -> int | None:
    if not row["sharding"]:
        return None
    stage = SHARDING.get(row["sharding"], 1)
    return min(stage, 1) if pipeline and pipeline > 1 else stage


def _whole_layout(run: Run) -> TrainingLayout | None:
    fixed = run.fixed
    if not (fixed.tensor and fixed.pipeline and fixed.context):
        return None
    data = max(1, run.count // (fixed.tensor * fixed.pipeline * fixed.context))
    return TrainingLayout(
        data=data,
        tensor=fixed.tensor,
        pipeline=fixed.pipeline,
        expert=min(fixed.expert or 1, data * fixed.context * fixed.tensor),
        context=fixed.context,
        zero_stage=fixed.zero_stage if fixed.zero_stage is not None else 1,
        micro_batch_size=min(
            fixed.micro_batch_size or 1, max(1, run.work.global_batch_samples // data)
        ),
        recompute=fixed.recompute or Recompute.NONE,
        interleave=run.interleave if fixed.pipeline > 1 else 1,
    )


def _machine(row: Row, accelerator: AcceleratorRow) -> Machine:
    per_node = accelerator.accelerators_per_node
    return Machine(
        device(accelerator),
        Interconnect(
            accelerators_per_node=per_node,
            intra_node_bytes_per_second=accelerator.link_bytes_per_second,
            inter_node_bytes_per_second=_network(row["interconnect"], accelerator, per_node),
            domain_accelerators=accelerator.domain_accelerators or per_node,
            is_switched=accelerator.link_is_switched,
            peer_bytes_per_second=accelerator.peer_bytes_per_second,
        ),
        PLENTY,
    )


def _network(words: str, accelerator: AcceleratorRow, per_node: int) -> float:
    """Bytes per second of a node from the source's words, else of the usual machine."""
    network = words.rpartition("|")[2]
    for pattern, factor in _RATES:
        match = re.search(pattern, network)
        if match:
            gigabits = functools.reduce(lambda a, b: a * float(b), match.groups(), 1.0)
            return gigabits * 1e9 / 8 * (per_node if factor == "device" else 1)
    if not accelerator.link_is_switched:
        return SLOW_NETWORK_BYTES_PER_SECOND
    return NETWORK_BYTES_PER_SECOND.get(accelerator.name, USUAL_NETWORK_BYTES_PER_SECOND)


_RATES = (
    (r"(\d+) Gb/s/GPU", "device"),
    (r"(\d+) Gb(?:ps|/s).* node", "node"),
    (r"(\d+)x [^|]*?(\d+) ?Gb/s", "node"),
)
"""``8x ConnectX-7 IB NDR 400 Gb/s`` and the like, as a node's or a device's rate."""
