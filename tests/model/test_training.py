from __future__ import annotations

import math
from dataclasses import replace

import pytest

from poolwise.model import transformer
from poolwise.model.bottleneck import bottleneck
from poolwise.model.collectives import Group, Links, Operation, collective_seconds
from poolwise.model.hardware import Machine, Resource
from poolwise.model.prediction import TrainingPrediction
from poolwise.model.roofline import ceiling_flops_per_second
from poolwise.model.shapes import Custom, Experts, LatentAttention, Model, Transformer
from poolwise.model.training.communication import Fabric, micro_batch_seconds
from poolwise.model.training.maturity import MOST_POWER, clock_fraction, immaturity
from poolwise.model.training.shard import micro_batch_count, routed_width, shard
from poolwise.model.training.step import predict_training, step_seconds
from poolwise.model.work import Method, Recompute, TrainingLayout, TrainingWork
from tests.model.counted import forward_flops_per_token
from tests.model.shapes import preset
from tests.model.training_cases import CALIBRATION, cpu_machine, machine, pretraining

H100 = machine("H100-SXM5-80GB")
LAYOUT_70B = TrainingLayout(data=4, tensor=8, pipeline=2)


def seconds(work: TrainingWork, layout: TrainingLayout, here: Machine) -> float:
    return step_seconds(work, layout, here, CALIBRATION)


def term(work: TrainingWork, layout: TrainingLayout, here: Machine, name: str) -> float:
    ledger = predict_training(work, layout, here, CALIBRATION).ledger
    return sum(each.seconds for each in ledger if each.name == name)


def label(work: TrainingWork, layout: TrainingLayout, here: Machine) -> Resource:
    return bottleneck(lambda other: 1 / seconds(work, layout, other), here).resource


def is_input_bound(found: TrainingPrediction) -> bool:
    return any(each.name == "Input" for each in found.ledger)


def utilisation(work: TrainingWork, layout: TrainingLayout, here: Machine) -> float:
    """Model FLOPs of the step over what the peak would do in its time."""
    per_token = 3 * sum(forward_flops_per_token(work.model, 8192).values())
    tokens = work.global_batch_samples * (work.sequence_tokens or 0)
    peak = here.device.peak_flops_per_second["bf16"] * layout.count
    return per_token * tokens / peak / seconds(work, layout, here)


def test_70b_on_64_h100_reaches_what_clusters_report() -> None:
    work = replace(pretraining("llama-3.1-70b"), software_year=2024.5)
    assert 0.40 <= utilisation(work, LAYOUT_70B, H100) <= 0.50
    assert label(work, LAYOUT_70B, H100) is Resource.COMPUTE


MEGATRON = [
    ("gpt-1.7b-h2304", 1, 1, 32, 512, 137),
    ("gpt-3.6b", 2, 1, 64, 512, 138),
    ("gpt-7.5b", 4, 1, 128, 512, 142),
    ("gpt-18.4b", 8, 1, 256, 1024, 135),
    ("gpt-39.1b", 8, 2, 512, 1536, 138),
    ("gpt-76.1b", 8, 4, 1024, 1792, 140),
    ("gpt-145.6b", 8, 8, 1536, 2304, 148),
    ("gpt-310.1b", 8, 16, 1920, 2160, 155),
    ("gpt-529.6b", 8, 35, 2520, 2520, 163),
    ("gpt-1008b", 8, 64, 3072, 3072, 163),
]


@pytest.mark.parametrize(
    ("name", "tensor", "pipeline", "count", "batch", "teraflops"),
    MEGATRON,
    ids=[case[0] for case in MEGATRON],
)
def test_megatron_on_a100(
    name: str, tensor: int, pipeline: int, count: int, batch: int, teraflops: float
) -> None:
    """arXiv 2104.04473, table 1: not among the fitted runs; its FLOPs include recomputation."""
    work = pretraining(name, batch, 2048)
    shape = work.model.shape
    assert isinstance(shape, Transformer)
    layout = TrainingLayout(
        count // (tensor * pipeline), tensor, pipeline, recompute=Recompute.FULL
    )
    h, s, layers = shape.hidden, 2048, shape.layers
    flops = 96 * batch * s * layers * h**2 * (1 + s / (6 * h) + shape.vocab / (16 * layers * h))
    published = flops / (count * teraflops * 1e12)
    a100 = machine("A100-SXM4-80GB", network_bytes_per_second=200e9)
    assert seconds(work, layout, a100) == pytest.approx(published, rel=0.3)


@pytest.mark.parametrize(
    ("name", "pipeline", "batch", "micro_batch", "interleave", "full", "none"),
    [
        ("megatron-22b", 1, 4, 4, 1, 1.42, 1.10),
        ("gpt-3-175b", 8, 64, 1, 3, 18.13, 13.75),
        ("mt-nlg-530b", 35, 280, 1, 3, 49.05, 37.83),
        ("megatron-1t", 64, 512, 1, 1, 94.42, 71.49),
    ],
)
def test_recomputation_on_a100(  # noqa: PLR0913 - the columns of the published table
    name: str,
    pipeline: int,
    batch: int,
    micro_batch: int,
    interleave: int,
    full: float,
    none: float,
) -> None:
    """arXiv 2205.05198, table 5: seconds of an iteration on 8 to 512 A100, tensor 8."""
    work = pretraining(name, batch, 2048)
    layout = TrainingLayout(1, 8, pipeline, micro_batch_size=micro_batch, interleave=interleave)
    a100 = machine("A100-SXM4-80GB", network_bytes_per_second=200e9)
    whole = seconds(work, replace(layout, recompute=Recompute.FULL), a100)
    least = seconds(work, layout, a100)
    assert whole == pytest.approx(full, rel=0.25)
    assert least == pytest.approx(none, rel=0.25)
    assert whole / least == pytest.approx(full / none, rel=0.1)


@pytest.mark.parametrize(("pipeline", "interleave"), [(2, 1), (8, 1), (8, 5)])
def test_the_bubble_is_the_published_fraction(pipeline: int, interleave: int) -> None:
    """(p - 1) / (v * m) of the time that the micro-batches take (arXiv 2104.04473)."""
    work = pretraining("llama-3.1-70b", batch=64)
    layout = TrainingLayout(1, 8, pipeline, interleave=interleave)
    bubble = term(work, layout, H100, "PipelineBubble")
    fixed = CALIBRATION.value("training", "step_overhead_seconds", H100.device)
    ideal = seconds(work, layout, H100) - bubble - fixed - term(work, layout, H100, "Optimizer")
    assert bubble / ideal == pytest.approx((pipeline - 1) / (interleave * 64), rel=0.01)


def test_h200_trains_a_little_faster_than_h100() -> None:
    """MLPerf training: 1.04 to 1.28 times, with the same FLOP/s and 1.43 times the bandwidth."""
    h200 = machine("H200-SXM-141GB")
    work = replace(pretraining("llama-2-70b", 8, 8192), method=Method.LORA, precision="fp8")
    layout = TrainingLayout(1, 4, context=2)
    assert 1.0 <= seconds(work, layout, H100) / seconds(work, layout, h200) <= 1.28


def test_tensor_parallelism_over_pcie_is_hopeless() -> None:
    """Unhidden, a layer on 8 L40S talks more than 20 times as long as it computes."""
    l40s = machine("L40S")
    shape = preset("llama-3.1-70b").shape
    assert isinstance(shape, Transformer)
    tokens, dense = 8192, transformer.parameters(preset("llama-3.1-70b")).body / 80
    compute = 6 * dense * tokens / 8 / ceiling_flops_per_second(l40s.device, "bf16")
    size = 2.0 * tokens * shape.hidden
    talk = 4 * collective_seconds(Operation.ALL_REDUCE, size, Group(8, 8), l40s, CALIBRATION)
    assert talk / compute > 20
    on_h100 = collective_seconds(Operation.ALL_REDUCE, size, Group(8, 8), H100, CALIBRATION)
    assert talk / 4 / on_h100 > 100


@pytest.mark.parametrize(
    ("network", "published_tokens"), [(400e9, 1100), (50e9, 8000), (12.5e9, 32000)]
)
def test_fsdp_breaks_even_where_the_network_says(network: float, published_tokens: float) -> None:
    """Gathering and reducing 6 bytes a parameter takes as long as 6 FLOPs a token and parameter:
    tokens = F / bus bandwidth, at 400 TFLOP/s reached. Published for the measured classes."""
    here = machine("H100-SXM5-80GB", network)
    layer_bytes = 2 * 856e6
    gather = collective_seconds(Operation.ALL_GATHER, layer_bytes, Group(64, 8), here, CALIBRATION)
    tokens = 3 * gather * 400e12 / (6 * 856e6)
    assert tokens == pytest.approx(published_tokens, rel=0.35)


def test_fsdp_over_a_slow_network_is_bound_by_it() -> None:
    work = pretraining("llama-3.1-8b", 64, 8192)
    layout = TrainingLayout(64, zero_stage=3)
    fast, slow = machine("H100-SXM5-80GB"), machine("H100-SXM5-80GB", 12.5e9)
    assert label(work, layout, fast) is Resource.COMPUTE
    assert label(work, layout, slow) is Resource.INTERCONNECT


RESNET = TrainingWork(
    preset("resnet-50"), 1024, None, "bf16", bytes_per_sample=115e3, cpu_seconds_per_sample=0.03
)
VISION = TrainingLayout(8, zero_stage=0, micro_batch_size=128)


def test_an_input_bound_job_gains_nothing_from_a_faster_chip() -> None:
    a10g = machine("A10G")
    assert label(RESNET, VISION, H100) is Resource.INPUT
    assert label(RESNET, VISION, a10g) is Resource.INPUT
    assert seconds(RESNET, VISION, H100) == pytest.approx(seconds(RESNET, VISION, a10g))


def test_the_same_job_well_fed_wants_the_faster_chip() -> None:
    fed = replace(RESNET, cpu_seconds_per_sample=0.0001)
    assert label(fed, VISION, machine("A10G")) is not Resource.INPUT
    assert seconds(fed, VISION, machine("A10G")) > 3 * seconds(fed, VISION, H100)


def test_adapters_save_the_weight_gradients() -> None:
    """4N instead of 6N FLOPs a token; no gradients to reduce."""
    full = pretraining("llama-3.1-8b", 64, 4096)
    layout = TrainingLayout(8)
    adapted = seconds(replace(full, method=Method.LORA), layout, H100)
    assert 0.6 < adapted / seconds(full, layout, H100) < 0.8


def test_checkpoints_are_amortised() -> None:
    work = pretraining("llama-3.1-70b", 256)
    saving = replace(work, checkpoint_interval_seconds=600)
    share = seconds(saving, LAYOUT_70B, H100) / seconds(work, LAYOUT_70B, H100) - 1
    assert share == pytest.approx(14 * 70.55e9 / 80e9 / 600, rel=0.01)


DEEPSEEK_LIKE = Transformer(
    layers=12,
    hidden=2048,
    ffn=8192,
    heads=16,
    kv_heads=16,
    head_dim=192,
    vocab=100_000,
    experts=Experts(count=64, top_k=6, shared=2, ffn=1408, dense_layers=1),
    latent_attention=LatentAttention(0, 512, 128, 64, 128),
)
CASES = [
    pytest.param(pretraining("llama-3.1-70b", 64), LAYOUT_70B, id="dense"),
    pytest.param(pretraining("llama-3.1-8b", 64), TrainingLayout(16, zero_stage=3), id="fsdp"),
    pytest.param(pretraining("mixtral-8x7b", 64), TrainingLayout(16, 2, expert=8), id="experts"),
    pytest.param(
        TrainingWork(Model("latent", DEEPSEEK_LIKE), 64, 4096, "fp8"),
        TrainingLayout(8, 1, 2, expert=8, context=2),
        id="latent",
    ),
    pytest.param(
        pretraining("gpt-oss-120b", 128, 2048),
        TrainingLayout(32, 2, zero_stage=3),
        id="launches",  # which outlast the device, beside traffic that hides
    ),
    pytest.param(
        pretraining("qwen3-30b-a3b", 256, 2048),
        TrainingLayout(64, expert=8, zero_stage=1),
        id="launches and dispatch",
    ),
    pytest.param(RESNET, VISION, id="vision"),
    pytest.param(
        TrainingWork(Model("mine", Custom(1e9, 5e8, 1e12, 1e9)), 64, None, "fp32"),
        TrainingLayout(16),
        id="custom",
    ),
    pytest.param(
        replace(pretraining("llama-3.1-8b", 64), method=Method.QLORA),
        TrainingLayout(8, recompute=Recompute.FULL),
        id="qlora",
    ),
]
MACHINES = ["H100-SXM5-80GB", "L40S", "MI300X", "GB200-NVL72", "TPU v5e", "Gaudi3", "T4"]
REFUSED = {("latent", "TPU v5e"), ("latent", "T4"), ("custom", "TPU v5e")}
"""Case and machine, where it computes in fp8 or fp32 and the machine does not."""
ON_MACHINES = [
    pytest.param(*case.values, name, id=f"{case.id}-{name}")
    for case in CASES
    for name in MACHINES
    if (case.id, name) not in REFUSED
]


@pytest.mark.parametrize(("work", "layout", "name"), ON_MACHINES)
def test_the_ledger_sums_to_the_step(work: TrainingWork, layout: TrainingLayout, name: str) -> None:
    found = predict_training(work, layout, machine(name), CALIBRATION)
    step = found.step_seconds
    assert math.fsum(each.seconds for each in found.ledger) == pytest.approx(step.mid, rel=1e-9)
    assert 0 < step.low <= step.mid <= step.high < math.inf
    assert is_input_bound(found) or step.low < step.mid < step.high
    alone = step_seconds(work, layout, machine(name), CALIBRATION)
    assert step.mid == pytest.approx(alone, rel=1e-12)
    assert found.samples_per_second == work.global_batch_samples / step.mid
    assert found.power_watts <= machine(name).device.power_watts


@pytest.mark.parametrize("resource", [each for each in Resource if each is not Resource.LATENCY])
@pytest.mark.parametrize(("work", "layout", "name"), ON_MACHINES)
def test_more_of_a_resource_is_never_slower(
    work: TrainingWork, layout: TrainingLayout, name: str, resource: Resource
) -> None:
    here = machine(name)
    more = seconds(work, layout, here.with_more(resource, 1.5))
    assert more <= seconds(work, layout, here) * (1 + 1e-12)


@pytest.mark.parametrize(("work", "layout"), CASES)
def test_a_larger_batch_takes_longer_and_yields_more(
    work: TrainingWork, layout: TrainingLayout
) -> None:
    larger = replace(work, global_batch_samples=2 * work.global_batch_samples)
    base, more = (predict_training(each, layout, H100, CALIBRATION) for each in (work, larger))
    assert more.step_seconds.mid > base.step_seconds.mid
    assert more.samples_per_second >= base.samples_per_second * (1 - 1e-9)


def test_a_measured_device_is_surer_than_one_nobody_measured() -> None:
    work, layout = pretraining("llama-3.1-8b", 64), TrainingLayout(8)
    known = predict_training(work, layout, H100, CALIBRATION)
    unknown = predict_training(work, layout, machine("Gaudi3"), CALIBRATION)
    assert (known.provenance, unknown.provenance) == ("fitted", "inherited")
    widths = [each.step_seconds.high / each.step_seconds.mid for each in (known, unknown)]
    assert widths[0] < widths[1]


def test_cpus_train_small_models_slowly() -> None:
    work = pretraining("bert-base", 64, 512)
    here = cpu_machine()
    layout = TrainingLayout(2, zero_stage=0, micro_batch_size=8)
    slow = seconds(work, layout, here)
    assert 20 < slow / seconds(work, layout, H100) < 2000


def test_tokens_have_no_meaning_for_a_custom_model() -> None:
    assert predict_training(RESNET, VISION, H100, CALIBRATION).tokens_per_second is None
    text = predict_training(pretraining("llama-3.1-8b", 64), TrainingLayout(8), H100, CALIBRATION)
    assert text.tokens_per_second == pytest.approx(text.samples_per_second * 8192)


def test_young_software_is_slower_on_a_young_device() -> None:
    """DeepSeek-V3 and Llama on B200 gained release by release; A100 no longer did."""
    old, new = (
        replace(pretraining("llama-3.1-70b"), software_year=year) for year in (2025.0, 2026.5)
    )
    b200, a100 = (
        seconds(old, LAYOUT_70B, here) / seconds(new, LAYOUT_70B, here)
        for here in (machine("B200-SXM-180GB"), machine("A100-SXM4-80GB"))
    )
    assert b200 > 1.05 > a100 >= 1.0


def test_software_is_never_younger_than_the_first_device_of_its_family() -> None:
    """Older kernels were not written for it at all: they are new to it, and not newer than new."""
    device = H100.device
    first_year = 2000 + CALIBRATION.value("training", "architecture_years", device)
    at_first, before = (
        immaturity(replace(pretraining("llama-3.1-70b"), software_year=year), device, CALIBRATION)
        for year in (first_year, first_year - 2.0)
    )
    assert before == at_first
    assert at_first == 1 + CALIBRATION.value("training", "immaturity", device)


def test_unknown_software_is_the_newest() -> None:
    work, here = pretraining("llama-3.1-70b"), machine("B200-SXM-180GB")
    newest = 2000 + CALIBRATION.value("training", "newest_software_years", here.device)
    assert seconds(work, LAYOUT_70B, here) == pytest.approx(
        seconds(replace(work, software_year=newest), LAYOUT_70B, here)
    )


def test_a_part_with_less_power_keeps_less_of_its_clock() -> None:
    capped = replace(H100, device=replace(H100.device, power_watts=500.0))
    work = pretraining("llama-3.1-70b")
    ratio = seconds(work, LAYOUT_70B, capped) / seconds(work, LAYOUT_70B, H100)
    assert 1.05 < ratio < 700 / 500


def test_watts_to_spare_lift_the_clock_only_so_far() -> None:
    spared = replace(H100.device, power_watts=100 * H100.device.power_watts)
    exponent = CALIBRATION.value("training", "power_exponent", H100.device)
    assert clock_fraction(spared, CALIBRATION) == pytest.approx(MOST_POWER**exponent)


@pytest.mark.parametrize(
    ("batch", "data", "micro_batch_size", "expected"),
    [
        pytest.param(8, 4, 1, 2, id="all full"),
        pytest.param(9, 4, 1, 3, id="one sample more"),
        pytest.param(10, 4, 1, 3, id="half of the last"),
        pytest.param(9, 2, 4, 2, id="the last not full"),
        pytest.param(1, 8, 1, 1, id="fewer samples than ranks"),
    ],
)
def test_the_last_micro_batch_counts_though_it_is_not_full(
    batch: int, data: int, micro_batch_size: int, expected: int
) -> None:
    work = pretraining("llama-3.1-8b", batch)
    assert micro_batch_count(work, data, micro_batch_size) == expected


def test_a_shorter_last_stage_hides_the_head() -> None:
    """126 layers over 8 stages: 16 each, but 14 on the last, which has the head."""
    shape = preset("llama-3.1-405b").shape
    assert isinstance(shape, Transformer)
    layout = TrainingLayout(tensor=8, pipeline=8)
    times = [
        seconds(
            TrainingWork(Model("m", replace(shape, layers=layers)), 64, 8192, "bf16"), layout, H100
        )
        for layers in (126, 128)
    ]
    assert times[1] > 1.02 * times[0]


def test_latent_experts_are_narrower_than_the_model() -> None:
    """Nemotron 3 Super projects 4,096 down to about 1,024; DeepSeek-V3 does not."""
    assert routed_width(preset("Nemotron-3-Super")) == pytest.approx(1024, rel=0.2)
    assert routed_width(preset("deepseek-v3")) == 7168


def test_experts_are_spread_over_tensor_ranks_since_folding() -> None:
    """Then 64 ranks on 8-GPU nodes meet in 8 domains, before in 64."""
    work = pretraining("deepseek-v3", batch=1024, sequence=4096)
    layout = TrainingLayout(data=64, tensor=8, expert=64)
    before, after = (
        term(replace(work, software_year=year), layout, H100, "Interconnect")
        for year in (2025.1, 2025.3)
    )
    assert after < before


@pytest.mark.parametrize(("tensor", "is_slower"), [(1, False), (8, True)])
def test_since_folding_each_tensor_rank_has_its_own_tokens_of_an_expert(
    tensor: int, is_slower: bool
) -> None:
    """Fewer for each, which are multiplied more slowly; without tensor ranks newer is faster."""
    work = pretraining("mixtral-8x7b", batch=64, sequence=4096)
    layout = TrainingLayout(tensor=tensor)
    before, after = (
        term(replace(work, software_year=year), layout, H100, "Compute")
        for year in (2025.1, 2025.3)
    )
    assert (after > before) is is_slower


def test_key_value_heads_that_are_copied_are_sent_by_each_copy() -> None:
    """Four of them over eight ranks: two ranks have the same, and each rank sends one whole."""
    eight, four = (
        Model("m", replace(_transformer(), heads=32, kv_heads=count, head_dim=128))
        for count in (8, 4)
    )
    layout = TrainingLayout(data=1, tensor=8, context=4, zero_stage=1)
    runs = [TrainingWork(each, 1, 1_048_576, "bf16") for each in (eight, four)]
    waits = [_context_seconds(run, layout) for run in runs]
    assert waits[1] == pytest.approx(waits[0])


def _transformer() -> Transformer:
    shape = preset("llama-3.1-8b").shape
    assert isinstance(shape, Transformer)
    return shape


def _context_seconds(work: TrainingWork, layout: TrainingLayout) -> float:
    shape, fabric = work.model.shape, Fabric(layout, Links(H100, CALIBRATION))
    assert isinstance(shape, Transformer)
    whole = micro_batch_seconds(work, shard(work, layout), 0.0, fabric)
    alone = replace(layout, context=1)
    share = replace(shard(work, layout))
    return whole - micro_batch_seconds(work, share, 0.0, replace(fabric, layout=alone))


@pytest.mark.parametrize("sequence", [128, 2048])
def test_packed_weights_are_unpacked_for_every_pass(sequence: int) -> None:
    """Forward and backward, 6.48 billion parameters are read in 0.53 bytes and written in 2, in
    each of 16 micro-batches: 0.26 s at the bandwidth of an A100, however long the samples are.
    No layout makes QLoRA faster than LoRA, but for the memory that it leaves."""
    work = pretraining("llama-2-7b", batch=16, sequence=sequence)
    packed, plain = (
        predict_training(
            replace(work, method=method), TrainingLayout(1), machine("A100-SXM4-80GB"), CALIBRATION
        ).step_seconds.mid
        for method in (Method.QLORA, Method.LORA)
    )
    assert 1.0 < (packed - plain) / (16 * 2 * 6.48e9 * 2.53 / 2.039e12) < 1.3
