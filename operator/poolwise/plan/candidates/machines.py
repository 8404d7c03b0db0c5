"""A pool's machine as one workload feels it: pools that differ in nothing else are asked once.

What a workload cannot feel is set to a stand-in, so that equal questions look equal and
:class:`~poolwise.plan.memo.Memo` answers all but the first. The model gets the machine
that the question names, so no answer can depend on what was left out.
"""

from __future__ import annotations

from poolwise.model.hardware import Host, Interconnect, Machine
from poolwise.model.work import TrainingWork

ANY_RATE_BYTES_PER_SECOND = 1e30
"""Of links and storage that nothing goes through, or that nothing waits for."""


def felt_by_run(machine: Machine, work: TrainingWork, count: int) -> Machine:
    """For a training run on ``count`` devices: networks count beyond a node, and storage and CPU
    cores where samples or checkpoints go through them."""
    link, host = machine.interconnect, machine.host
    if count <= link.accelerators_per_node:
        link = _without_network(link)
    if not reads_or_writes(work):
        host = _without_input(machine)
    return Machine(machine.device, link, host)


def fully_fed(machine: Machine) -> Machine:
    """With storage that nothing waits for, and cores that need not decode."""
    return Machine(machine.device, machine.interconnect, _without_input(machine))


def felt_by_replica(machine: Machine, keeps_to_node: bool = True) -> Machine:
    """For a service, whose replicas read no samples, and may keep to one node."""
    link = machine.interconnect
    return Machine(
        machine.device,
        _without_network(link) if keeps_to_node else link,
        _without_input(machine),
    )


def reads_or_writes(work: TrainingWork) -> bool:
    """Whether samples or checkpoints go through storage or CPU cores."""
    samples = work.bytes_per_sample or work.cpu_seconds_per_sample
    return bool(samples or work.checkpoint_interval_seconds)


def _without_network(link: Interconnect) -> Interconnect:
    """For who stays in one node, unless its fast links join only a part of it."""
    if link.domain_accelerators < link.accelerators_per_node:
        return link
    return Interconnect(
        accelerators_per_node=link.accelerators_per_node,
        intra_node_bytes_per_second=link.intra_node_bytes_per_second,
        inter_node_bytes_per_second=ANY_RATE_BYTES_PER_SECOND,
        domain_accelerators=link.domain_accelerators,
        is_switched=link.is_switched,
        peer_bytes_per_second=link.peer_bytes_per_second,
    )


def _without_input(machine: Machine) -> Host:
    """The cores and the memory of a CPU node are what it computes with."""
    host = machine.host
    return Host(
        cores=host.cores if machine.device.is_cpu else 0.0,
        memory_bytes=host.memory_bytes if machine.device.is_cpu else 0.0,
        storage_read_bytes_per_second=ANY_RATE_BYTES_PER_SECOND,
        shared_read_bytes_per_second=ANY_RATE_BYTES_PER_SECOND,
        model_load_bytes_per_second=ANY_RATE_BYTES_PER_SECOND,
        dispatch_speed=host.dispatch_speed,
    )
