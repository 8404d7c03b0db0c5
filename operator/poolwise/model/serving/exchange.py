"""What the devices of one replica send each other in a step.

Tensor parallelism sums the outputs of attention and MLP over its ranks, two all-reduces a layer.
Under attention DP each group of devices has its own requests, and the experts of all: their inputs
are gathered and their outputs reduced, once a sparse layer.
"""

from __future__ import annotations

from poolwise.model import transformer
from poolwise.model.collectives import Links, Operation, collective_seconds, group, wire_factor
from poolwise.model.efficiency import Calibration
from poolwise.model.hardware import Machine
from poolwise.model.serving.iteration import AllReduce
from poolwise.model.serving.memory import ACTIVATION_BYTES, PHASE
from poolwise.model.shapes import Transformer
from poolwise.model.work import ServingLayout


def all_reduce(
    shape: Transformer, layout: ServingLayout, machine: Machine, calibration: Calibration
) -> AllReduce:
    """Inside one node engines have kernels of their own; beyond it they call the library."""
    if layout.tensor == 1:
        return AllReduce()
    ranks = group(layout.tensor, 1, machine.interconnect)
    token = shape.hidden * ACTIVATION_BYTES
    if ranks.domains == 1:
        wire = token * wire_factor(Operation.ALL_REDUCE, layout.tensor)
        link = machine.interconnect.intra_node_bytes_per_second
        row = calibration.value(PHASE, "all_reduce", machine.device) * wire / link
        return AllReduce(calibration.value(PHASE, "all_reduce_seconds", machine.device), row)

    def seconds(rows: float) -> float:
        return collective_seconds(Operation.ALL_REDUCE, rows * token, ranks, machine, calibration)

    return _through(seconds(0.0), seconds(256.0), seconds(4096.0))


def exchange_row_seconds(
    shape: Transformer, layout: ServingLayout, machine: Machine, calibration: Calibration
) -> float:
    """Attention DP: every device gathers all tokens in 8 bits and reduces their sums in 16."""
    if layout.data == 1 or shape.experts is None:
        return 0.0
    ranks = layout.tensor * layout.data
    away = (ranks - 1) / ranks * shape.hidden * (1.0 + ACTIVATION_BYTES)
    across = ranks > max(machine.interconnect.domain_accelerators, 1)
    links = machine.interconnect
    link = links.inter_node_bytes_per_second if across else links.intra_node_bytes_per_second
    return (
        calibration.value(PHASE, "exchange", machine.device)
        * transformer.sparse_layers(shape)
        * away
        / link
    )


def _through(at_none: float, at_256: float, at_4096: float) -> AllReduce:
    """``a + b*n + c*sqrt(n)`` through n = 0, 256, 4096: roots 16 and 64, so two equations."""
    small, large = at_256 - at_none, at_4096 - at_none
    row = max(0.0, (large - 4.0 * small) / (4096.0 - 4.0 * 256.0))
    return AllReduce(at_none, row, max(0.0, (small - 256.0 * row) / 16.0))


def stage_seconds(
    shape: Transformer, layout: ServingLayout, machine: Machine, calibration: Calibration
) -> float:
    """Hand-over between all pipeline stages."""
    if layout.pipeline == 1:
        return 0.0
    size = shape.hidden * ACTIVATION_BYTES * layout.max_num_seqs / layout.pipeline
    one = Links(machine, calibration).hop_seconds(size, layout.pipeline, layout.tensor)
    return one * (layout.pipeline - 1)
