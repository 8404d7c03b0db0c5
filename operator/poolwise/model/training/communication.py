"""Communication that a training step waits for: tensor, context, expert, pipeline and data.

Volumes per rank (Megatron-LM, arXiv 2104.04473 and 2205.05198; ZeRO, arXiv 1910.02054), for T
tokens of a micro-batch, in 16 bits:

- tensor: 4 all-reduces of ``2*T*h`` per layer (2 forward, 2 backward; as reduce-scatter and
  all-gather under sequence parallelism), 6 under full recomputation;
- context: keys and values of the other ranks, ``4*T*g*d*(c-1)/t`` forward, twice that backward;
- expert: 4 all-to-alls per layer of experts (dispatch and combine, both ways) of ``2*k*T*h``;
- pipeline: ``2*T*h/t`` to the next stage and back, for each virtual stage;
- data: gradients reduced and weights gathered once a step (ZeRO-3: gathered twice and reduced
  once every micro-batch).

What overlaps is hidden up to a fitted share of the time that the device computes or waits for
launches (``busy_seconds``).
"""

from __future__ import annotations

from dataclasses import dataclass

from poolwise.model.collectives import Group, Links, Operation, group
from poolwise.model.formats import master_format, weight_bytes
from poolwise.model.shapes import Transformer
from poolwise.model.training.maturity import PHASE, is_folded
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
    return (
        share.stage_layers * _tensor(shape, share, fabric)
        + _expert(work, shape, share, busy_seconds, fabric)
        + _context(shape, share, busy_seconds, fabric)
        + _pipeline(shape, share, fabric)
    )


def _tensor(shape: Transformer, share: Shard, fabric: Fabric) -> float:
    layout = fabric.layout
    if layout.tensor == 1:
        return 0.0
    count = 6 if layout.recompute is Recompute.FULL else 4
    size = 2.0 * share.tokens * shape.hidden
    one = fabric.seconds(Operation.ALL_REDUCE, size, layout.tensor, 1)
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
    size = 2.0 * copies * share.tokens * share.routed_width / layout.tensor
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


def _context(shape: Transformer, share: Shard, busy_seconds: float, fabric: Fabric) -> float:
    """Over all layers of the stage; the ring hides under attention."""
    layout = fabric.layout
    if layout.context == 1:
        return 0.0
    size = 4.0 * share.tokens * shape.kv_heads * shape.head_dim * layout.context / layout.tensor
    one = fabric.seconds(Operation.ALL_GATHER, size, layout.context, layout.tensor)
    total = 3 * one * share.stage_layers
    return max(fabric.constant("exposed_context") * total, total - busy_seconds)


def _pipeline(shape: Transformer, share: Shard, fabric: Fabric) -> float:
    layout = fabric.layout
    if layout.pipeline == 1:
        return 0.0
    size = 2.0 * share.tokens * shape.hidden / layout.tensor
    stride = layout.tensor * layout.context * layout.data
    one = fabric.seconds(Operation.SEND_RECEIVE, size, 2, stride)
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
    layout = fabric.layout
    weight = weight_bytes(master_format(work.precision))
    trained = _trained_parameters(work, share)
    total = _synchronised(
        share, fabric, (share.replicas, layout.tensor), trained, weight * share.dense_stored
    )
    experts = share.stage_layers * share.expert_parameters
    if experts and share.expert_replicas > 1:
        ranks = (share.expert_replicas, layout.tensor * layout.expert)
        reduced = experts if work.method is Method.FULL else 0.0
        total += _synchronised(share, fabric, ranks, reduced, weight * experts)
    return total


def _synchronised(
    share: Shard, fabric: Fabric, ranks: tuple[int, int], trained: float, gathered_bytes: float
) -> float:
    """Gradients reduced and weights gathered among (ranks, stride), in 16 bits, layer by layer."""
    size, stride = ranks
    reduced_bytes = 2.0 * trained
    if fabric.layout.zero_stage < 3:
        return fabric.seconds(Operation.ALL_REDUCE, reduced_bytes, size, stride)
    layers = share.stage_layers
    gather = fabric.seconds(Operation.ALL_GATHER, gathered_bytes / layers, size, stride)
    reduce = fabric.seconds(Operation.REDUCE_SCATTER, reduced_bytes / layers, size, stride)
    return share.micro_batches * layers * (2 * gather + reduce)


def _trained_parameters(work: TrainingWork, share: Shard) -> float:
    return share.dense_stored if work.method is Method.FULL else share.adapter_parameters
