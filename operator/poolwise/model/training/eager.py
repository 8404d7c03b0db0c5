"""What a training step takes more where it runs operator by operator.

Norms, rotations, activation functions and the loss are kernels of their own then, which read and
write device memory, in fp32 for the most part; products cast their inputs, and weights in fp32, for
every use; and the backward pass keeps what a fused kernel would compute again. All of it comes on
top of what fused execution takes. Measured on H100 and H200 with transformers and PEFT: 18 pairs of
the same workload both ways, of eleven models (``python -m bench.device.pairs``). The step time of a
model that had no part in the fit of the traffic is met within 3 % in the median, 21 % at most.
"""

from __future__ import annotations

from typing import NamedTuple

from poolwise.model.formats import master_format, weight_bytes
from poolwise.model.shapes import Custom, Transformer
from poolwise.model.training import activations
from poolwise.model.training.shard import Shard
from poolwise.model.work import Execution, Method, TrainingLayout, TrainingWork


class Traffic(NamedTuple):
    """Bytes that are moved more, or what they are per."""

    hidden: float
    """Per token, layer, hidden element and pass of the elementwise operations."""
    adapter: float
    """The same per element that a product with an adapter beside it puts out."""
    weight: float
    """Per parameter in fp32 and micro-batch: cast for every use, and its gradient cast back."""
    logit: float
    """Per token and vocabulary entry."""


TRAFFIC_BYTES = Traffic(hidden=95.0, adapter=24.0, weight=36.0, logit=91.0)

LOGIT_BYTES = 12.0
"""Kept per token and vocabulary entry: in fp32 the log-softmax, its gradient and the loss's."""
GATED_KEPT_BYTES, PLAIN_KEPT_BYTES = 18.7, 10.7
"""Per token, layer and hidden element: the stream and the norms in fp32 (12), and a 16-bit copy of
a norm's output for each product that reads it, of which a gated layer has five and a plain one
two. Peaks of four and three models give 18.5 to 18.8 and 10.5 to 10.8."""
ADAPTER_KEPT_BYTES = 12.1
"""The same below adapters, whose inputs are kept in fp32: 12.0 and 12.1 of two models."""
ACTIVATION_KEPT_BYTES = 2.0
"""Per token, layer and element of a gated MLP: the activation beside gate, up and product."""


def is_eager(work: TrainingWork) -> bool:
    """Whether a transformer runs operator by operator in 16 bits or fewer: elsewhere nothing is
    cast, and no layers are known."""
    return (
        work.execution is Execution.EAGER
        and not isinstance(work.model.shape, Custom)
        and weight_bytes(master_format(work.precision)) < 4
    )


def layer_kept_bytes(shape: Transformer, method: Method) -> float:
    """More per token that a mean layer keeps for its backward pass, undivided."""
    if not shape.gated_mlp:
        return PLAIN_KEPT_BYTES * shape.hidden
    adapted = method is not Method.FULL
    per_hidden = ADAPTER_KEPT_BYTES if adapted else GATED_KEPT_BYTES
    per_inner = ACTIVATION_KEPT_BYTES if shape.experts is None else 0.0  # experts count with it
    return per_hidden * shape.hidden + per_inner * activations.mlp_width(shape)


def traffic_counts(
    work: TrainingWork, shape: Transformer, layout: TrainingLayout, share: Shard, passes: float
) -> Traffic:
    """How much there is of what moves more bytes, in one micro-batch on its device; ``passes`` of
    the elementwise operations."""
    is_whole = work.method is Method.FULL
    tokens = share.tokens / layout.tensor
    per_layer = tokens * passes * share.stage_layers
    return Traffic(
        hidden=per_layer * shape.hidden,
        adapter=0.0 if is_whole else per_layer * activations.product_width(shape),
        weight=share.stored_parameters if is_whole else 0.0,
        logit=tokens * shape.vocab,
    )


def moved_bytes(counts: Traffic) -> float:
    """More that is moved for so much."""
    return sum(each * count for each, count in zip(TRAFFIC_BYTES, counts, strict=True))
