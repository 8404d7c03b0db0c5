"""What one device holds and does in a training run laid over many: the base of time and memory.

Figures are those of the fullest device: ``ceil(L/p)`` layers, embedding and head divided by the
tensor-parallel size, routed experts by tensor times expert-parallel size (Megatron-LM's memory
calculator). A custom model has no layers to cut: it counts as one layer, and its samples as
tokens.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from functools import lru_cache
from operator import attrgetter

from poolwise.model import transformer
from poolwise.model.shapes import Custom, Model, Transformer
from poolwise.model.transformer import Parameters
from poolwise.model.work import Method, TrainingLayout, TrainingWork

CUSTOM_ADAPTER_SHARE = 0.01
"""LoRA parameters of a custom model over its own: about rank 16 on matrices a few thousand wide."""


@dataclass(slots=True)  # not frozen: searches make thousands, and freezing takes longer
class Shard:
    """Per device. Parameters are counts, divided by tensor and expert parallelism."""

    tokens: float
    """Of one micro-batch, after context parallelism; samples for a custom model."""
    micro_batches: int
    stage_layers: int
    dense_parameters: float
    """Of one layer, routed experts left out; layers of a model are taken as alike."""
    expert_parameters: float
    """Of one layer, all routed experts that live here."""
    active_expert_parameters: float
    """Multiplied with each token here, of one layer, at balanced routing."""
    embedding_parameters: float
    head_parameters: float
    """Multiplied with each token at the end; may be the embedding's."""
    adapter_parameters: float
    """LoRA's, all stages' layers here; 0 when the model itself is trained."""
    last_stage_fill: float
    """Layers of the last pipeline stage over those of the fullest one."""
    routed_width: float
    """Elements that a routed token carries to its expert; 0 without experts."""
    replicas: int
    """Ranks that hold the same dense parameters, and may shard their state."""
    expert_replicas: int

    @property
    def stored_parameters(self) -> float:
        """All that lives here, embedding and an untied head included."""
        return self.dense_stored + self.stage_layers * self.expert_parameters

    @property
    def dense_stored(self) -> float:
        """All but the routed experts."""
        return self.stage_layers * self.dense_parameters + self.embedding_parameters


_OF_ANY_BATCH = attrgetter(*(each.name for each in fields(Shard)[2:]))
"""All but its first two: the tokens and the count of micro-batches."""


def sequence_tokens(work: TrainingWork) -> int:
    """Tokens of one sample: as asked, else the model's own (patches of an image); 1 if none."""
    if isinstance(work.model.shape, Custom):
        return 1
    return work.sequence_tokens or work.model.max_context_tokens or 1


def micro_batch_tokens(work: TrainingWork, context: int, micro_batch_size: int) -> float:
    """Tokens of a micro-batch on each of ``context`` ranks; samples for a custom model."""
    return micro_batch_size * sequence_tokens(work) / context


def micro_batch_count(work: TrainingWork, data: int, micro_batch_size: int) -> int:
    """Micro-batches that each of ``data`` ranks runs in a step, the last perhaps not full."""
    return max(1, math.ceil(work.global_batch_samples / (data * micro_batch_size)))


def shard(work: TrainingWork, layout: TrainingLayout) -> Shard:
    """The fullest device's share."""
    count = transformer.parameters(work.model)
    layers = layer_count(work.model)
    stage = math.ceil(layers / layout.pipeline)
    tensor, split = layout.tensor, layout.tensor * layout.expert
    edge = _edge_parameters(count, layout)
    return Shard(
        tokens=micro_batch_tokens(work, layout.context, layout.micro_batch_size),
        micro_batches=micro_batch_count(work, layout.data, layout.micro_batch_size),
        stage_layers=stage,
        dense_parameters=(count.body - count.experts) / layers / tensor,
        expert_parameters=count.experts / layers / split,
        active_expert_parameters=count.experts * count.routed_fraction / layers / tensor,
        embedding_parameters=edge,
        head_parameters=(count.head + count.tied_head) / tensor,
        adapter_parameters=adapter_parameters(work) / layers * stage / tensor,
        last_stage_fill=max(0, layers - (layout.pipeline - 1) * stage) / stage,
        routed_width=routed_width(work.model),
        replicas=layout.data * layout.context,
        expert_replicas=max(1, layout.data * layout.context // layout.expert),
    )


def with_micro_batch(share: Shard, work: TrainingWork, layout: TrainingLayout) -> Shard:
    """The share of the same ranks with the layout's micro-batch, for less than a new one."""
    tokens = micro_batch_tokens(work, layout.context, layout.micro_batch_size)
    count = micro_batch_count(work, layout.data, layout.micro_batch_size)
    return Shard(tokens, count, *_OF_ANY_BATCH(share))


@lru_cache(maxsize=1024)
def routed_width(model: Model) -> float:
    """The model's width, or what published counts of parameters leave for an expert's input.

    Latent experts (Nemotron 3) work on tokens that are projected down first: a routed expert of
    width f then has fewer parameters than ``gates*h*f``. Counts are good to a few
    percent, so only a width below half of the model's says so.
    """
    shape = model.shape
    if not isinstance(shape, Transformer) or shape.experts is None:
        return 0.0
    one = transformer.mlp_parameters(shape, shape.experts.ffn) / shape.hidden
    experts = transformer.sparse_layers(shape) * shape.experts.count
    width = transformer.parameters(model).experts / (experts * one)
    return width if width < shape.hidden / 2 else float(shape.hidden)


def layer_count(model: Model) -> int:
    """Layers that a pipeline can cut between."""
    return model.shape.layers if isinstance(model.shape, Transformer) else 1


def adapter_parameters(work: TrainingWork) -> float:
    """Trained parameters of LoRA: ``r*(in + out)`` for each linear layer.

    Routed experts are left alone, as the usual recipes do.
    """
    if work.method is Method.FULL:
        return 0.0
    shape = work.model.shape
    if isinstance(shape, Custom):
        return CUSTOM_ADAPTER_SHARE * shape.parameters
    width = shape.heads * shape.head_dim
    attention = 4 * shape.hidden + 2 * width + 2 * shape.kv_heads * shape.head_dim
    mlp = (3 if shape.gated_mlp else 2) * (shape.hidden + shape.ffn)
    dense = shape.layers - transformer.sparse_layers(shape)
    return float(work.lora_rank * (shape.layers * attention + dense * mlp))


def _edge_parameters(count: Parameters, layout: TrainingLayout) -> float:
    """Embedding and head of the fullest stage: both when there is but one."""
    if layout.pipeline == 1:
        return (count.embedding + count.head) / layout.tensor
    return max(count.embedding, count.head) / layout.tensor
