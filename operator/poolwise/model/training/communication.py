"""Communication that a training step waits for: tensor, context, expert, pipeline and data.

Volumes per rank (Megatron-LM, arXiv 2104.04473 and 2205.05198; ZeRO, arXiv 1910.02054), for T
tokens of a micro-batch, in 16 bits (those of a run in fp32 are twice as many bytes):

- tensor: 4 all-reduces of ``2*T*h`` per layer (2 forward, 2 backward; as reduce-scatter and
  all-gather under sequence parallelism), 6 under full recomputation;
- context: keys and values of the other ranks, ``4*T*g*d*(c-1)/t`` forward, twice that backward
  (beyond g ranks each has a whole head, which others have too);
- expert: 4 all-to-alls per layer of experts (dispatch and combine, both ways) of ``2*k*T*h``;
- pipeline: ``2*T*h/t`` to the next stage and back, for each virtual stage; the mean of all hops,
  some of which leave the domain;
- data: gradients reduced and weights gathered once a step (ZeRO-3: gathered twice and reduced
  once every micro-batch; packed weights of QLoRA are gathered as they are stored).

What overlaps is hidden up to a fitted share of the time that the device computes or waits for
launches (``busy_seconds``).
"""

from __future__ import annotations

from dataclasses import dataclass

from poolwise.model.collectives import Group, Links, Operation, group
from poolwise.model.formats import master_format, weight_bytes
from poolwise.model.shapes import Transformer
from poolwise.model.training.maturity import PHASE, is_folded
from poolwise.model.training.memory import layer_weight_bytes
from poolwise.model.training.shard import Shard
from poolwise.model.transformer import sparse_layers
from poolwise.model.work import Method, Recompute, TrainingLayout, TrainingWork


@dataclass(slots=True)  # not frozen: searches make thousands, and freezing takes longer
class Fabric:
    """What a run communicates through, and with which constants."""

    layout: TrainingLayout
    links: Links

    def seconds(self, operation: Operation, size_bytes: float, ranks: int, stride: int) -> float:
        """One collective among ranks that are ``stride`` devices apart."""
        members = group(ranks, stride, self.links.interconnect)
        return self.links.seconds(operation, size_bytes, members)

    def constant(self, term: str) -> float:
        """A fitted share."""
        return self.links.calibration.value(PHASE, term, self.links.device)


def micro_batch_seconds(
    work: TrainingWork, share: Shard, busy_seconds: float, fabric: Fabric
) -> float:
    """What one micro-batch waits for on its way through one stage and back."""
    shape = work.model.shape
    if not isinstance(shape, Transformer):
        return 0.0
    element_bytes = weight_bytes(master_format(work.precision))
    token_bytes = element_bytes * shape.hidden
    return (
        share.stage_layers * _tensor(token_bytes, share, fabric)
        + _expert(work, shape, share, busy_seconds, fabric)
        + _context(shape, element_bytes, share, busy_seconds, fabric)
        + _pipeline(token_bytes, share, fabric)
    )


def _tensor(token_bytes: float, share: Shard, fabric: Fabric) -> float:
    layout = fabric.layout
    if layout.tensor == 1:
        return 0.0
    count = 6 if layout.recompute is Recompute.FULL else 4
    one = fabric.seconds(Operation.ALL_REDUCE, share.tokens * token_bytes, layout.tensor, 1)
    return fabric.constant("exposed_tensor") * count * one


def _expert(
    work: TrainingWork, shape: Transformer, share: Shard, busy_seconds: float, fabric: Fabric
) -> float:
    """Over all layers of the stage; hides under other micro-batches' compute where that lasts."""
    experts, layout = shape.experts, fabric.layout
    if experts is None or layout.expert == 1:
        return 0.0
    stride = 1 if is_folded(work) else layout.tensor * layout.context
    members = group(layout.expert, stride, fabric.links.interconnect)
    copies = _copies(experts.top_k, members)
    element_bytes = weight_bytes(master_format(work.precision))
    size = element_bytes * copies * share.tokens * share.routed_width / layout.tensor
    one = fabric.links.seconds(Operation.ALL_TO_ALL, size, members)
    sparse = sparse_layers(shape) / shape.layers
    total = 4 * one * share.stage_layers * sparse
    hidden = fabric.constant("expert_overlap") * busy_seconds
    return max(fabric.constant("exposed_expert") * total, total - hidden)


def _copies(top_k: int, members: Group) -> float:
    """How often a token is sent: once to each domain that holds one of its experts.

    Of D domains k uniform choices meet ``D*(1 - (1 - 1/D)**k)``.
    """
    domains = members.domains
    met: float = (1 - 1 / domains) ** top_k
    return top_k if domains == 1 else domains * (1 - met)


def _context(
    shape: Transformer, element_bytes: float, share: Shard, busy_seconds: float, fabric: Fabric
) -> float:
    """Over all layers of the stage; the ring hides under attention."""
    layout = fabric.layout
    if layout.context == 1:
        return 0.0
    heads = max(shape.kv_heads / layout.tensor, 1.0)
    size = 2.0 * element_bytes * share.tokens * heads * shape.head_dim * layout.context
    one = fabric.seconds(Operation.ALL_GATHER, size, layout.context, layout.tensor)
    total = 3 * one * share.stage_layers
    return max(fabric.constant("exposed_context") * total, total - busy_seconds)


def _pipeline(token_bytes: float, share: Shard, fabric: Fabric) -> float:
    layout = fabric.layout
    if layout.pipeline == 1:
        return 0.0
    size = share.tokens * token_bytes / layout.tensor
    stride = layout.tensor * layout.context * layout.data
    one = fabric.links.hop_seconds(size, layout.pipeline, stride)
    return fabric.constant("exposed_pipeline") * 2 * layout.interleave * one


def step_seconds(
    work: TrainingWork, share: Shard, micro_batch_busy_seconds: float, fabric: Fabric
) -> float:
    """What the whole step waits for: gradients and weights of data-parallel ranks."""
    layout = fabric.layout
    if share.replicas == 1:
        return 0.0
    total = _data(work, share, fabric)
    if layout.zero_stage >= 3:
        hidden = micro_batch_busy_seconds * share.micro_batches
    else:
        hidden = micro_batch_busy_seconds
    overlapped = min(total, hidden * fabric.constant("data_overlap"))
    return total - overlapped + fabric.constant("exposed_data") * overlapped


def _data(work: TrainingWork, share: Shard, fabric: Fabric) -> float:
    """All data-parallel traffic of a step, hidden or not; experts have groups of their own."""
    layout, ends = fabric.layout, share.embedding_parameters
    weight, of_layer = weight_bytes(master_format(work.precision)), layer_weight_bytes(work)
    reduced = weight * _trained_parameters(work, share)
    gathered = of_layer * (share.dense_stored - ends) + weight * ends
    ranks = (share.replicas, layout.tensor)
    total = _synchronised(share, fabric, ranks, reduced, gathered)
    experts = share.stage_layers * share.expert_parameters
    if experts and share.expert_replicas > 1:
        ranks = (share.expert_replicas, layout.tensor * layout.expert)
        reduced = weight * experts if work.method is Method.FULL else 0.0
        total += _synchronised(share, fabric, ranks, reduced, of_layer * experts)
    return total


def _synchronised(
    share: Shard,
    fabric: Fabric,
    ranks: tuple[int, int],
    reduced_bytes: float,
    gathered_bytes: float,
) -> float:
    """Gradients reduced and weights gathered among (ranks, stride), layer by layer; what is frozen
    has none."""

    def seconds(operation: Operation, size_bytes: float) -> float:
        return fabric.seconds(operation, size_bytes, *ranks) if size_bytes else 0.0

    if fabric.layout.zero_stage < 3:
        return seconds(Operation.ALL_REDUCE, reduced_bytes)
    layers = share.stage_layers
    gather = seconds(Operation.ALL_GATHER, gathered_bytes / layers)
    reduce = seconds(Operation.REDUCE_SCATTER, reduced_bytes / layers)
    return share.micro_batches * layers * (2 * gather + reduce)


def _trained_parameters(work: TrainingWork, share: Shard) -> float:
    return share.dense_stored if work.method is Method.FULL else share.adapter_parameters
