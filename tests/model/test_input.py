from __future__ import annotations

from dataclasses import replace

import pytest

from poolwise.model.training.input import checkpoint_seconds, checkpoint_share, supply_seconds
from poolwise.model.work import Method, Optimizer, TrainingWork
from tests.model.shapes import preset
from tests.model.training_cases import machine, pretraining

H100 = machine("H100-SXM5-80GB")
VISION = TrainingWork(preset("resnet-50"), 400 * 8, None, "bf16")


def test_storage_feeds_as_mlperf_storage_asks() -> None:
    """ResNet-50: 400 samples of 114,660 bytes per accelerator and 0.224 s are 205 MB/s each."""
    work = replace(VISION, bytes_per_sample=114_660)
    here = replace(H100, host=replace(H100.host, storage_read_bytes_per_second=8 * 205e6))
    assert supply_seconds(work, 8, here) == pytest.approx(0.224, rel=0.01)


def test_the_shared_storage_caps_many_nodes() -> None:
    work = replace(VISION, bytes_per_sample=1e6)
    host = replace(H100.host, storage_read_bytes_per_second=1e9, shared_read_bytes_per_second=2e9)
    here = replace(H100, host=host)
    assert supply_seconds(work, 16, here) == supply_seconds(work, 64, here)
    assert supply_seconds(work, 8, here) == 2 * supply_seconds(work, 16, here)


def test_the_slower_of_reading_and_decoding_counts() -> None:
    decoding = replace(VISION, cpu_seconds_per_sample=0.03)
    assert supply_seconds(decoding, 8, H100) == pytest.approx(3200 * 0.03 / 96)
    both = replace(decoding, bytes_per_sample=1.0)
    assert supply_seconds(both, 8, H100) == supply_seconds(decoding, 8, H100)


def test_part_of_a_node_gets_part_of_its_cores() -> None:
    decoding = replace(VISION, cpu_seconds_per_sample=0.03)
    assert supply_seconds(decoding, 2, H100) == 4 * supply_seconds(decoding, 8, H100)


def test_text_needs_next_to_nothing() -> None:
    work = replace(pretraining("llama-3.1-70b"), bytes_per_sample=32 * 1024)
    assert supply_seconds(work, 64, H100) < 0.01


def test_a_checkpoint_writes_weights_and_state() -> None:
    work = replace(pretraining("llama-3.1-70b"), checkpoint_interval_seconds=1800)
    seconds = checkpoint_seconds(work, 64, H100)
    assert seconds == pytest.approx(14 * 70.55e9 / 80e9, rel=0.001)
    assert checkpoint_share(work, 64, H100) == seconds / 1800


def test_no_interval_is_no_checkpoint() -> None:
    assert checkpoint_share(pretraining("llama-3.1-8b"), 8, H100) == 0.0


def test_a_checkpoint_of_adapters_writes_the_adapters() -> None:
    """Rank 16 on Llama 3.1 70B: 16 * 80 * (4*8192 + 2*8192 + 2*1024 + 3*(8192 + 28672)) = 207 M."""
    work = replace(pretraining("llama-3.1-70b"), method=Method.LORA)
    assert checkpoint_seconds(work, 64, H100) == pytest.approx(14 * 207.1e6 / 80e9, rel=0.001)


@pytest.mark.parametrize(
    ("optimizer", "bytes_per_parameter"),
    [(Optimizer.ADAMW, 14.0), (Optimizer.ADAM_8BIT, 8.0), (Optimizer.SGD, 10.0)],
)
def test_a_checkpoint_has_what_the_optimizer_keeps(
    optimizer: Optimizer, bytes_per_parameter: float
) -> None:
    work = replace(pretraining("llama-3.1-70b"), optimizer=optimizer)
    expected = bytes_per_parameter * 70.55e9 / 80e9
    assert checkpoint_seconds(work, 64, H100) == pytest.approx(expected, rel=0.001)
