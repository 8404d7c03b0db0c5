"""What feeds a training step: samples from storage through CPU decoding, and checkpoints back.

Reading and decoding run ahead of the accelerators, so that a step waits only for the slower of
the two, and only when that is slower than the step itself (MLPerf Storage measures exactly this
share of time).
"""

from __future__ import annotations

from poolwise.model.formats import master_format, weight_bytes
from poolwise.model.hardware import Host, Machine
from poolwise.model.training.memory import optimizer_bytes
from poolwise.model.training.shard import adapter_parameters
from poolwise.model.transformer import parameters
from poolwise.model.work import Method, TrainingWork


def supply_seconds(work: TrainingWork, accelerators: float, machine: Machine) -> float:
    """Time in which the host side delivers one global batch to this many accelerators."""
    if not (work.bytes_per_sample or work.cpu_seconds_per_sample):
        return 0.0
    samples, host = work.global_batch_samples, machine.host
    nodes = _nodes(accelerators, machine)
    reading = samples * work.bytes_per_sample / _read_bytes_per_second(host, nodes)
    cores = host.cores * accelerators / max(machine.interconnect.accelerators_per_node, 1)
    decoding = samples * work.cpu_seconds_per_sample / cores if cores else 0.0
    return max(reading, decoding)


def checkpoint_seconds(work: TrainingWork, accelerators: float, machine: Machine) -> float:
    """Stall of one checkpoint that is written while training waits.

    Storage writes as fast as it reads; all nodes write their shards at once.
    """
    nodes = _nodes(accelerators, machine)
    return _checkpoint_bytes(work) / _read_bytes_per_second(machine.host, nodes)


def checkpoint_share(work: TrainingWork, accelerators: float, machine: Machine) -> float:
    """Seconds of checkpointing per second of training."""
    if not work.checkpoint_interval_seconds:
        return 0.0
    return checkpoint_seconds(work, accelerators, machine) / work.checkpoint_interval_seconds


def _checkpoint_bytes(work: TrainingWork) -> float:
    """Weights and the optimizer's state of what is trained: frozen weights change nothing."""
    is_full = work.method is Method.FULL
    trained = parameters(work.model).total if is_full else adapter_parameters(work)
    return (weight_bytes(master_format(work.precision)) + optimizer_bytes(work)) * trained


def _nodes(accelerators: float, machine: Machine) -> float:
    """Nodes that take part; a job on part of a node gets that part of its storage rate."""
    return accelerators / max(machine.interconnect.accelerators_per_node, 1)


def _read_bytes_per_second(host: Host, nodes: float) -> float:
    return min(host.storage_read_bytes_per_second * nodes, host.shared_read_bytes_per_second)
