"""What ranks exchange once a step: gradients, and weights that are gathered."""

from __future__ import annotations

from dataclasses import replace

import pytest

from poolwise.model.collectives import Group, Links, Operation
from poolwise.model.training import communication
from poolwise.model.training.communication import Fabric
from poolwise.model.training.shard import shard
from poolwise.model.work import Method, TrainingLayout, TrainingWork
from tests.model.training_cases import CALIBRATION, machine, pretraining

H100 = machine("H100-SXM5-80GB")


def _synchronisation_seconds(work: TrainingWork, zero_stage: int) -> float:
    """Over 64 devices between which only 1 GB/s pass."""
    layout = TrainingLayout(data=64, zero_stage=zero_stage)
    slow = replace(H100, interconnect=replace(H100.interconnect, inter_node_bytes_per_second=1e9))
    fabric = Fabric(layout, Links(slow, CALIBRATION))
    return communication.step_seconds(work, shard(work, layout), 0.0, fabric)


def test_packed_weights_are_gathered_packed() -> None:
    """ZeRO-3 of an 8B model over 64 devices: a QLoRA run gathers 5.8 GB where LoRA gathers 16.1."""
    work = pretraining("llama-3.1-8b", batch=64)
    packed, plain = (
        _synchronisation_seconds(replace(work, method=method), zero_stage=3)
        for method in (Method.QLORA, Method.LORA)
    )
    assert packed / plain == pytest.approx(5.8 / 16.06, rel=0.05)


def test_gradients_in_32_bits_are_twice_as_many_bytes() -> None:
    work = pretraining("llama-3.1-8b", batch=64)
    wide, narrow = (
        _synchronisation_seconds(replace(work, precision=precision), zero_stage=1)
        for precision in ("fp32", "bf16")
    )
    assert wide / narrow == pytest.approx(2.0, rel=0.05)


@pytest.mark.parametrize("stage", [1, 3])
def test_frozen_experts_have_no_gradients_to_send(stage: int) -> None:
    """Not even an empty message, which would wait for all ranks."""
    work = replace(pretraining("mixtral-8x7b", batch=64), method=Method.LORA)
    layout = TrainingLayout(data=64, expert=8, zero_stage=stage)
    share, asked = shard(work, layout), list[tuple[Operation, float]]()

    class Listened(Links):
        def seconds(self, operation: Operation, size_bytes: float, members: Group) -> float:
            asked.append((operation, size_bytes))
            return super().seconds(operation, size_bytes, members)

    communication.step_seconds(work, share, 0.0, Fabric(layout, Listened(H100, CALIBRATION)))
    assert asked and all(size_bytes > 0.0 for _, size_bytes in asked)
