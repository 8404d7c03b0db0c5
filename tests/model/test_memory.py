from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from poolwise.model import transformer
from poolwise.model.hardware import Machine
from poolwise.model.prediction import Memory
from poolwise.model.shapes import Custom, Model, Transformer
from poolwise.model.training import activations
from poolwise.model.training.memory import (
    Footprint,
    needed_at_most_bytes,
    peak_bytes,
    training_memory,
    usable_bytes,
)
from poolwise.model.training.shard import shard, with_micro_batch
from poolwise.model.work import Method, Optimizer, Recompute, TrainingLayout, TrainingWork
from tests.model.shapes import preset
from tests.model.training_cases import cpu_machine, machine, pretraining

H100 = machine("H100-SXM5-80GB")
GIB = 2**30
RANKS = 64


def state_bytes(memory: Memory) -> float:
    return memory.weights_bytes + memory.gradients_bytes + memory.optimizer_bytes


def per_parameter(work: TrainingWork, layout: TrainingLayout) -> float:
    count = transformer.parameters(work.model).total
    return state_bytes(training_memory(work, layout, H100)) / count


@pytest.mark.parametrize(
    ("stage", "published"),
    [
        pytest.param(0, 16.0, id="nothing sharded"),
        pytest.param(1, 4 + 12 / RANKS, id="ZeRO-1"),
        pytest.param(2, 2 + 14 / RANKS, id="ZeRO-2"),
    ],
)
def test_bytes_per_parameter_are_those_of_zero(stage: int, published: float) -> None:
    """arXiv 1910.02054, figure 1; one micro-batch, so that gradients stay in 16 bits."""
    work = pretraining("llama-3.1-8b", batch=RANKS)
    layout = TrainingLayout(data=RANKS, zero_stage=stage)
    assert per_parameter(work, layout) == pytest.approx(published, rel=0.001)


def test_zero_3_keeps_a_share_and_two_layers() -> None:
    work = pretraining("llama-3.1-70b", batch=RANKS)
    memory = training_memory(work, TrainingLayout(data=RANKS, zero_stage=3), H100)
    count = transformer.parameters(work.model)
    layer = count.body / 80
    gathered = state_bytes(memory) - 16 * count.total / RANKS
    assert 2 * 2 * layer < gathered < 2 * 4 * layer


def test_accumulating_gradients_takes_fp32() -> None:
    """Megatron-LM: 18 bytes unsharded, 6 + 12/D with its distributed optimizer."""
    work = pretraining("llama-3.1-8b", batch=8 * RANKS)
    assert per_parameter(work, TrainingLayout(RANKS, zero_stage=0)) == pytest.approx(18)
    assert per_parameter(work, TrainingLayout(RANKS)) == pytest.approx(6 + 12 / RANKS)


@pytest.mark.parametrize(
    ("optimizer", "published"),
    [
        (Optimizer.ADAMW, 16),
        (Optimizer.ADAM_8BIT, 10),
        (Optimizer.ADAFACTOR, 8.1),
        (Optimizer.SGD, 12),
    ],
)
def test_optimizers_differ_by_their_state(optimizer: Optimizer, published: float) -> None:
    work = replace(pretraining("llama-3.1-8b", batch=1), optimizer=optimizer)
    assert per_parameter(work, TrainingLayout(zero_stage=0)) == pytest.approx(published)


def test_gelu_layers_keep_what_the_paper_counts() -> None:
    """arXiv 2205.05198: 34*s*b*h with dropout masks, which are 2*s*b*h of it."""
    shape = preset("gpt-3-175b").shape
    assert isinstance(shape, Transformer)
    assert activations.layer_bytes_per_token(shape) == 32 * shape.hidden
    assert activations.layer_bytes_per_token(shape, Recompute.FULL) == 2 * shape.hidden


def test_recomputing_more_keeps_less() -> None:
    work = pretraining("llama-3.1-8b", batch=8)
    kept = [
        training_memory(work, TrainingLayout(8, recompute=each), H100).activations_bytes
        for each in (Recompute.NONE, Recompute.SELECTIVE, Recompute.FULL)
    ]
    assert kept == sorted(kept, reverse=True)


def test_sharding_over_more_ranks_saves_what_torchtitan_measured() -> None:
    """Llama-3-8B under FSDP, 8 to 128 H100: the peak falls by 15.4 GiB."""
    needs = [
        training_memory(
            pretraining("llama-3.1-8b", batch=ranks),
            TrainingLayout(ranks, zero_stage=3, recompute=Recompute.SELECTIVE),
            H100,
        ).needed_bytes
        for ranks in (8, 128)
    ]
    assert (needs[0] - needs[1]) / GIB == pytest.approx(15.4, rel=0.1)


def test_8b_under_fsdp_meets_torchtitan() -> None:
    """64 H200, 2 x 8,192 tokens each: 46.97 GiB at the peak."""
    work = pretraining("llama-3.1-8b", batch=128)
    layout = TrainingLayout(64, zero_stage=3, micro_batch_size=2, recompute=Recompute.SELECTIVE)
    needed = training_memory(work, layout, H100).needed_bytes / GIB
    assert needed == pytest.approx(46.97, rel=0.25)


@pytest.mark.parametrize(
    ("data", "context", "measured_gib"), [(8, 1, 75.3), (4, 2, 75.9), (2, 4, 77.1), (1, 8, 84.9)]
)
def test_405b_in_four_dimensions_meets_torchtitan(
    data: int, context: int, measured_gib: float
) -> None:
    """512 H100, tensor 8, pipeline 8, 32,768 tokens a rank, everything recomputed."""
    work = pretraining("llama-3.1-405b", 8 * data, 32768 * context)
    layout = TrainingLayout(data, 8, 8, context=context, recompute=Recompute.FULL)
    needed = training_memory(work, layout, H100).needed_bytes / GIB
    assert needed == pytest.approx(measured_gib, rel=0.2)


def test_adapters_leave_the_weights_and_little_else() -> None:
    full = pretraining("llama-2-70b", batch=8, sequence=4096)
    lora = replace(full, method=Method.LORA)
    qlora = replace(full, method=Method.QLORA)
    layout = TrainingLayout(1, 8)
    frozen = [
        state_bytes(training_memory(work, layout, H100)) * 8 / 68.98e9
        for work in (full, lora, qlora)
    ]
    assert frozen[0] == pytest.approx(18, rel=0.01)
    assert frozen[1] == pytest.approx(2, rel=0.05)
    assert frozen[2] == pytest.approx(0.53, rel=0.15)


@pytest.mark.parametrize("name", ["llama-3.1-70b", "mixtral-8x7b", "deepseek-v3"])
@pytest.mark.parametrize("size", ["tensor", "pipeline", "context"])
def test_dividing_more_never_needs_more(name: str, size: str) -> None:
    work = pretraining(name, batch=1)
    base = TrainingLayout(zero_stage=0)
    needs = []
    for count in (1, 2, 4, 8):
        parts: dict[str, Any] = {size: count}
        layout = replace(base, **parts)
        needs.append(training_memory(work, layout, H100).needed_bytes)
    assert needs == sorted(needs, reverse=True)


def test_expert_parallelism_divides_the_experts() -> None:
    work = pretraining("mixtral-8x7b", batch=8)
    alone = training_memory(work, TrainingLayout(8, zero_stage=0), H100)
    spread = training_memory(work, TrainingLayout(8, expert=8, zero_stage=0), H100)
    experts = transformer.parameters(work.model).experts
    assert alone.weights_bytes - spread.weights_bytes == pytest.approx(2 * experts * 7 / 8)


def test_a_pipeline_holds_several_micro_batches() -> None:
    work = pretraining("llama-3.1-70b", batch=64)
    one, many = (
        training_memory(replace(work, global_batch_samples=count), TrainingLayout(1, 8, 8), H100)
        for count in (1, 64)
    )
    assert many.activations_bytes > 3 * one.activations_bytes


def test_a_custom_model_keeps_what_it_says() -> None:
    model = Model("mine", Custom(25e6, 25e6, 8e9, 9e7))
    work = TrainingWork(model, 256, None, "fp32")
    memory = training_memory(work, TrainingLayout(zero_stage=0, micro_batch_size=256), H100)
    assert memory.activations_bytes == 256 * 9e7
    assert state_bytes(memory) == pytest.approx(16 * 25e6)


@pytest.mark.parametrize("here", [H100, cpu_machine()], ids=["accelerator", "cpu"])
def test_a_process_cannot_fill_more_than_there_is(here: Machine) -> None:
    assert 0 < usable_bytes(here.device) <= here.device.memory_bytes


@pytest.mark.parametrize(
    ("name", "layout", "method", "device"),
    [
        pytest.param(
            "llama-3.1-8b",
            TrainingLayout(),
            Method.FULL,
            "H100-SXM5-80GB",
            id="8B: 128 GB",
        ),
        pytest.param(
            "llama-3.1-70b",
            TrainingLayout(data=8, zero_stage=1),
            Method.FULL,
            "H200-SXM-141GB",
            id="70B ZeRO-1: (4 + 12 / 8) * 70 = 385 GB",
        ),
        pytest.param(
            "llama-3.1-405b",
            TrainingLayout(data=32, zero_stage=3, recompute=Recompute.FULL),
            Method.FULL,
            "H200-SXM-141GB",
            id="405B over 32: 16 * 405 / 32 = 203 GB",
        ),
        pytest.param(
            "llama-3.1-70b",
            TrainingLayout(recompute=Recompute.FULL),
            Method.QLORA,
            "L4",
            id="70B in 4 bits: 0.53 * 70 = 37 GB",
        ),
        pytest.param(
            "llama-3.1-70b",
            TrainingLayout(recompute=Recompute.FULL),
            Method.LORA,
            "A100-SXM4-80GB",
            id="70B frozen: 2 * 70 = 140 GB",
        ),
    ],
)
def test_what_cannot_fit_is_refused(
    name: str, layout: TrainingLayout, method: Method, device: str
) -> None:
    """Even with every activation left out."""
    work = replace(pretraining(name, batch=layout.data), method=method, sequence_tokens=1)
    assert not training_memory(work, layout, machine(device)).fits


def test_a_peak_has_a_range_around_what_is_needed() -> None:
    memory = training_memory(pretraining("llama-3.1-8b", batch=1), TrainingLayout(), H100)
    peak = peak_bytes(memory)
    assert peak.low < peak.mid == memory.needed_bytes < peak.high


@pytest.mark.parametrize("stage", [0, 1, 2, 3])
@pytest.mark.parametrize("recompute", list(Recompute))
@pytest.mark.parametrize(
    ("name", "method"),
    [("llama-3.1-8b", Method.FULL), ("mixtral-8x7b", Method.FULL), ("llama-3.1-8b", Method.LORA)],
)
def test_one_footprint_tells_every_micro_batch(
    name: str, method: Method, recompute: Recompute, stage: int
) -> None:
    """What a search asks of a division is what is told of each of its layouts."""
    work = replace(pretraining(name, batch=64), method=method, lora_rank=16)
    sizes = TrainingLayout(2, 2, 2, zero_stage=stage)
    footprint = Footprint(work, sizes, H100, shard(work, sizes))
    for size in (1, 4, 32):
        layout = replace(sizes, micro_batch_size=size, recompute=recompute)
        memory = training_memory(work, layout, H100)
        told = (memory.needed_bytes, memory.activations_bytes)
        assert footprint.needed_bytes(recompute, size) == pytest.approx(told, rel=1e-12)


def test_what_is_needed_at_most_is_surely_within() -> None:
    memory = training_memory(pretraining("llama-3.1-8b"), TrainingLayout(), H100)
    most_bytes = needed_at_most_bytes(memory.usable_bytes)
    told = replace(memory, reserve_bytes=memory.reserve_bytes + most_bytes - memory.needed_bytes)
    assert peak_bytes(told).high == pytest.approx(memory.usable_bytes)


def test_another_micro_batch_of_the_same_ranks() -> None:
    work, layout = pretraining("mixtral-8x7b", batch=64), TrainingLayout(2, 2, 2, expert=2)
    larger = replace(layout, micro_batch_size=8)
    assert with_micro_batch(shard(work, layout), work, larger) == shard(work, larger)


def test_qlora_leaves_embedding_and_head_in_16_bits() -> None:
    """Llama 3.1 8B: 6.98 G parameters of layers at 0.53 bytes, and twice 0.525 G at 2."""
    work = replace(pretraining("llama-3.1-8b", batch=1), method=Method.QLORA)
    memory = training_memory(work, TrainingLayout(zero_stage=0), H100)
    adapters = 2 * shard(work, TrainingLayout()).adapter_parameters
    held = memory.weights_bytes - adapters
    assert held == pytest.approx(0.53 * 6.98e9 + 2 * 1.05e9, rel=0.01)


def test_qlora_shards_what_it_leaves_in_16_bits_too() -> None:
    work = replace(pretraining("llama-3.1-8b", batch=8), method=Method.QLORA)
    stages = [TrainingLayout(data=8, zero_stage=stage) for stage in (0, 3)]
    whole, sharded = (training_memory(work, each, H100).weights_bytes for each in stages)
    layer = 6.98e9 / 32
    gathered = 4 * max(layer, 1.05e9 / 2)
    adapters = 2 * shard(work, stages[0]).adapter_parameters
    assert sharded - gathered - adapters == pytest.approx((whole - adapters) / 8, rel=0.02)
