"""What a device reaches in training, by part and number format."""

from __future__ import annotations

from dataclasses import replace

import pytest

from poolwise.errors import InvalidInput
from poolwise.model.efficiency import Calibration
from poolwise.model.presets import model
from poolwise.model.shapes import Custom, Model, Transformer
from poolwise.model.training.layer import micro_batch
from poolwise.model.training.rates import Reachable, rates, reachable
from poolwise.model.training.shard import shard
from poolwise.model.work import Method, TrainingLayout, TrainingWork
from poolwise.plan.nodes.machines import device
from poolwise.tables import load

TABLES = load()
CALIBRATION = Calibration(TABLES.efficiencies)
DEVICES = ("A100-SXM4-80GB", "H100-SXM5-80GB", "B200-SXM-180GB")
by_device = pytest.mark.parametrize("name", DEVICES)


def work(precision: str = "bf16") -> TrainingWork:
    row = TABLES.model("llama-3.1-70b")
    assert row is not None
    return TrainingWork(model(row), 128, 8192, precision)


def found(name: str, precision: str = "bf16") -> Reachable:
    row = TABLES.accelerator(name)
    assert row is not None
    return reachable(work(precision), device(row), CALIBRATION)


@pytest.mark.parametrize("name", [*DEVICES, "A10G", "H20-96GB", "L20", "RTX-3090"])
def test_watts_to_spare_lift_no_part_over_its_peak(name: str) -> None:
    row = TABLES.accelerator(name)
    assert row is not None
    part = device(row)
    share = CALIBRATION.value("training", "products", part, "bf16")
    peak = row.peak_flops_per_second["bf16"]
    for watts in (part.power_watts, 10 * part.power_watts):
        spared = replace(part, power_watts=watts)
        reached = rates(work(), spared, CALIBRATION, "products").flops_per_second
        assert reached <= peak * share * (1 + 1e-12)


@by_device
def test_no_part_reaches_more_than_the_data_sheet(name: str) -> None:
    row = TABLES.accelerator(name)
    assert row is not None
    speed, peak = found(name), row.peak_flops_per_second["bf16"]
    for each in (speed.products, speed.wide, speed.attention, speed.expert_rates(1e6)):
        assert 0.0 < each.flops_per_second < peak
        assert 0.0 < each.bytes_per_second <= row.memory_bandwidth_bytes_per_second


def test_a_layer_that_scans_moves_more_than_its_norms_and_attention() -> None:
    """Worked out for Llama 3.1 70B with half of its 80 layers scans: inputs of two norms and of the
    products of the mixer (8 h), and of attention queries, keys, values and output (4 d (a + g))."""
    row = TABLES.accelerator("H100-SXM5-80GB")
    assert row is not None
    of, layout = work(), TrainingLayout()
    dense = of.model.shape
    assert isinstance(dense, Transformer)
    moved = []
    for scans in (0, 40):
        hybrid = replace(of.model, shape=replace(dense, linear_attention_layers=scans))
        known = replace(of, model=hybrid)
        share = shard(known, layout)
        once = micro_batch(known, layout, share, device(row), CALIBRATION)
        moved.append(once.moved_bytes)
    speed = found("H100-SXM5-80GB")
    mixer_bytes = 8 * 8192 + 4 * 128 * (64 + 8)
    passes, tokens = 3, 8192
    more = passes * tokens * speed.traffic * speed.scan_traffic * 40 * mixer_bytes
    assert moved[1] - moved[0] == pytest.approx(more)


@pytest.mark.parametrize(("method", "passes"), [(Method.FULL, 3), (Method.LORA, 2)])
def test_the_output_projection_of_frozen_weights_has_no_gradient_of_its_own(
    method: Method, passes: int
) -> None:
    """Llama 3.1 70B with twice the vocabulary: 8192 more products an entry and token, 2 FLOPs each
    and pass."""
    row, of, layout = TABLES.accelerator("H100-SXM5-80GB"), work(), TrainingLayout()
    assert row is not None
    known = of.model.shape
    assert isinstance(known, Transformer)
    flops = []
    for times in (1, 2):
        wider = replace(of.model, shape=replace(known, vocab=times * known.vocab))
        trained = replace(of, model=wider, method=method)
        share = shard(trained, layout)
        flops.append(micro_batch(trained, layout, share, device(row), CALIBRATION).flops)
    tokens = 8192
    added = passes * 2 * 8192 * known.vocab * tokens
    assert flops[1] - flops[0] == pytest.approx(added)


def test_a_routed_token_is_carried_to_its_expert_and_back() -> None:
    """Per element that it carries and each of two experts: 4 bytes into and out of their products,
    4 that are kept on both sides of the exchange, and 12 to sort it out and back."""
    row, of = TABLES.accelerator("H100-SXM5-80GB"), TABLES.model("mixtral-8x7b")
    assert row is not None
    assert of is not None
    known, layout = TrainingWork(model(of), 128, 8192, "bf16"), TrainingLayout()
    share = shard(known, layout)
    assert share.routed_width == 4096
    once, wider = (
        micro_batch(known, layout, each, device(row), CALIBRATION).moved_bytes
        for each in (share, replace(share, routed_width=2 * 4096))
    )
    tokens, passes, layers, experts = 8192, 3, 32, 2
    each_bytes = 4 + 4 * found("H100-SXM5-80GB").traffic + 12
    assert wider - once == pytest.approx(tokens * passes * layers * experts * 4096 * each_bytes)


@by_device
def test_experts_with_fewer_tokens_multiply_slower(name: str) -> None:
    speed = found(name)
    tokens = [1.0, 64.0, 1024.0, 65536.0]
    reached = [speed.expert_rates(each).flops_per_second for each in tokens]
    assert reached == sorted(reached)
    assert reached[-1] < speed.products.flops_per_second


def test_eight_bits_speed_up_products_alone() -> None:
    """The head stays in 16 bits, and attention multiplies in 16 whatever the weights are in."""
    wide, narrow = found("H100-SXM5-80GB"), found("H100-SXM5-80GB", "fp8")
    assert narrow.products.flops_per_second > 1.3 * wide.products.flops_per_second
    assert narrow.wide == wide.products
    assert narrow.attention == wide.attention


def test_less_bandwidth_is_reached_on_a_device_with_less() -> None:
    row = TABLES.accelerator("H100-SXM5-80GB")
    assert row is not None
    whole = device(row)
    half = replace(
        whole, memory_bandwidth_bytes_per_second=whole.memory_bandwidth_bytes_per_second / 2
    )
    of_whole, of_half = (rates(work(), each, CALIBRATION, "products") for each in (whole, half))
    assert of_half.bytes_per_second == pytest.approx(of_whole.bytes_per_second / 2)
    assert of_half.flops_per_second == of_whole.flops_per_second


@pytest.mark.parametrize("name", [*DEVICES, "H200-SXM-141GB", "MI300X", "L40S"])
def test_both_formats_of_16_bits_reach_the_same_where_nobody_measured_fp16(name: str) -> None:
    row = TABLES.accelerator(name)
    assert row is not None
    assert row.peak_flops_per_second["fp16"] == row.peak_flops_per_second["bf16"]
    assert found(name, "fp16") == found(name)


@pytest.mark.parametrize("name", ["A100-SXM4-80GB", "V100-SXM2-32GB", "T4", "A10G"])
def test_nothing_is_trained_in_a_format_that_the_device_does_not_compute_in(name: str) -> None:
    row = TABLES.accelerator(name)
    assert row is not None
    told = f"{name}: does not compute in fp8; it has fp32"
    with pytest.raises(InvalidInput, match=told):
        found(name, "fp8")
    custom = TrainingWork(Model("mine", Custom(1e9, 1e9, 1e12, 1e9)), 64, None, "fp8")
    with pytest.raises(InvalidInput, match=told):
        rates(custom, device(row), CALIBRATION, "custom")
