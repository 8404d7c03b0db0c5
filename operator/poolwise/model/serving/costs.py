"""From a model, a layout and a machine to the coefficients of an engine step.

Formats decide bytes and arithmetic apart: a format without a unit on the device is expanded to 16
bits, so its weights shrink and its products do not get faster (fp8 on Ampere, int4 anywhere).
"""

from __future__ import annotations

from dataclasses import replace

from poolwise.model import formats, kv_cache, transformer
from poolwise.model.efficiency import Calibration
from poolwise.model.hardware import Device, Machine
from poolwise.model.kv_cache import reads
from poolwise.model.roofline import ceiling_flops_per_second
from poolwise.model.serving.exchange import all_reduce, exchange_row_seconds, stage_seconds
from poolwise.model.serving.iteration import AllReduce, Products, StepCosts
from poolwise.model.serving.memory import (
    PHASE,
    dense_weight_bytes,
    item_traffic_bytes,
    replica_machine,
    unquantised_weight_bytes,
)
from poolwise.model.serving.queueing import log_normal
from poolwise.model.shapes import Custom, Experts, Transformer
from poolwise.model.work import ServingLayout, ServingWork

KERNELS_PER_LAYER = 12
"""Of a transformer: norms, projections, attention, products, residuals."""
CUSTOM_KERNELS = 50
"""Of one pass of a model whose layers are not known: ResNet-50's convolutions, each fused with its
norm and activation."""
NONE = Products(0.0, 0.0)


def arithmetic(weight_format: str, device: Device) -> str:
    """The unit that multiplies a format here.

    16-bit formats stand in for each other (fp16 on Turing and Volta, which have no bf16);
    quantised ones without a unit of their own are expanded to 16 bits: bytes shrink, FLOPs do not.
    mxfp4 weights meet 8-bit activations (gpt-oss), and mixed operands run at the rate of fp8.
    """
    peaks = device.peak_flops_per_second
    if weight_format == "mxfp4" and "fp4" in peaks:
        return "fp8"
    sixteen = next((unit for unit in ("bf16", "fp16") if unit in peaks), None)
    native = formats.native_arithmetic(weight_format, peaks)
    if weight_format in ("bf16", "fp16") and sixteen is not None:
        return native if native == weight_format else sixteen
    return native or sixteen or "fp32"


def step_costs(
    work: ServingWork, layout: ServingLayout, machine: Machine, calibration: Calibration
) -> StepCosts:
    """Coefficients from the model's counts, the device's peaks and the fitted efficiencies."""
    machine = replica_machine(layout, machine)
    rates = _Rates(machine.device, calibration)
    if isinstance(work.model.shape, Custom):
        return _custom_costs(work.model.shape, layout, machine, rates)
    return _transformer_costs(work, work.model.shape, layout, machine, rates)


class _Rates:
    """Effective rates of one device: what its best kernels reach times fitted efficiencies."""

    def __init__(self, device: Device, calibration: Calibration) -> None:
        self.device = device
        self.calibration = calibration
        self.weight_bandwidth = self._bandwidth("weight_bandwidth")
        self.cache_bandwidth = self._bandwidth("cache_bandwidth")

    def constant(self, term: str, number_format: str = "*") -> float:
        return self.calibration.value(PHASE, term, self.device, number_format)

    def flops_per_second(self, weight_format: str) -> float:
        unit = arithmetic(weight_format, self.device)
        stands_in = unit in ("bf16", "fp16") or weight_format == "mxfp4"
        ceiling = ceiling_flops_per_second(self.device, unit if stands_in else weight_format)
        return ceiling * self.constant("compute", unit)

    @property
    def attention_flops_per_second(self) -> float:
        """Attention computes in 16 bits whatever the weights are."""
        ceiling = ceiling_flops_per_second(self.device, arithmetic("bf16", self.device))
        return ceiling * self.constant("attention_compute")

    def _bandwidth(self, term: str) -> float:
        return self.device.memory_bandwidth_bytes_per_second * self.constant(term)


def _transformer_costs(
    work: ServingWork, shape: Transformer, layout: ServingLayout, machine: Machine, rates: _Rates
) -> StepCosts:
    count, calibration = transformer.parameters(work.model), rates.calibration
    dense_format = "bf16" if layout.weight_format == "mxfp4" else layout.weight_format
    dense = count.body - count.experts
    head = count.head + count.tied_head if shape.is_decoder else 0.0
    attention_flops = rates.attention_flops_per_second * layout.tensor
    cache_bytes = kv_cache.bytes_per_key(shape, formats.weight_bytes(layout.kv_format))
    cache_bytes /= kv_cache.shards(shape, layout.tensor)
    return StepCosts(
        dense=_products(dense, dense_weight_bytes(layout), dense_format, layout, rates),
        experts=_experts(work, layout, rates),
        head=_products(head, unquantised_weight_bytes(layout), "bf16", layout, rates),
        reads=reads(shape),
        key_read_seconds=cache_bytes / rates.cache_bandwidth,
        key_attend_seconds=transformer.decode_attention_flops_per_key(shape) / attention_flops,
        prompt_key_seconds=transformer.attention_flops_per_key(shape) / attention_flops,
        prompt_keys=_prompt_keys(work, shape),
        all_reduces=2.0 * shape.layers if layout.tensor > 1 else 0.0,
        all_reduce=all_reduce(shape, layout, machine, calibration),
        exchange_row_seconds=exchange_row_seconds(shape, layout, machine, calibration),
        data=float(layout.data),
        stage_seconds=stage_seconds(shape, layout, machine, calibration),
        latency_seconds=_latency_seconds(shape, rates, work.engine),
        sequence_seconds=rates.constant("sequence_seconds", work.engine),
        host_seconds=rates.constant("host_seconds", work.engine) / machine.host.dispatch_speed,
    )


def _products(
    count: float, stored_bytes: float, weight_format: str, layout: ServingLayout, rates: _Rates
) -> Products:
    return Products(
        read_seconds=count * stored_bytes / layout.tensor / rates.weight_bandwidth,
        row_seconds=2.0 * count / layout.tensor / rates.flops_per_second(weight_format),
    )


def _experts(work: ServingWork, layout: ServingLayout, rates: _Rates) -> Products:
    """Routed experts: those that the batch touches are read, and their groups padded to tiles.

    Cut by tensor parallelism, every device sees all rows of all chosen experts at full width, and
    writes and reads them on the way; laid out whole (``expert``), it sees only its share. Slices
    that are narrow multiply slower: ``w / (w + half)``. Weights without a unit of their own are
    expanded on the way, which takes time beside the products.
    """
    shape, count = work.model.shape, transformer.parameters(work.model)
    if isinstance(shape, Custom) or shape.experts is None:
        return NONE
    stored = formats.weight_bytes(layout.weight_format)
    ranks = layout.tensor * layout.data
    owners = min(layout.expert, ranks)
    whole = _products(count.experts / layout.data, stored, layout.weight_format, layout, rates)
    exchanged = rates.constant("expert_exchange_bytes") * shape.hidden * shape.experts.top_k
    exchanged *= transformer.sparse_layers(shape) / owners
    share = count.routed_fraction
    return replace(
        whole,
        row_seconds=whole.row_seconds
        * share
        / _expert_speed(shape.experts, owners / ranks, layout, rates),
        row_traffic_seconds=exchanged / rates.weight_bandwidth,
        idle_share=1.0 - share,
        padding_rows=rates.constant("expert_padding_rows") / share,
    )


def _expert_speed(
    experts: Experts, slice_share: float, layout: ServingLayout, rates: _Rates
) -> float:
    """Speed of grouped products over that of dense ones."""
    width = experts.ffn * slice_share
    speed = rates.constant("expert_compute") * width
    speed /= width + rates.constant("expert_half_width")
    native = formats.native_arithmetic(layout.weight_format, rates.device.peak_flops_per_second)
    return (
        speed
        if native or layout.weight_format in ("bf16", "fp16")
        else (speed * rates.constant("expanded_compute"))
    )


def _prompt_keys(work: ServingWork, shape: Transformer) -> float:
    """Keys per computed token of a prompt, of which a leading part may come from the cache."""
    lengths = log_normal(work.input_tokens.p50, work.input_tokens.p95)
    tokens, hit = max(lengths.biased_mean, 1.0), work.prefix_hit_fraction
    whole = transformer.attended_keys(shape, tokens)
    if hit <= 0.0:
        return whole
    cached = transformer.attended_keys(shape, max(tokens * hit, 1.0)) * hit
    return (whole - cached) / max(1.0 - hit, 1e-9)


def _latency_seconds(shape: Transformer, rates: _Rates, engine: str) -> float:
    """Launch and drain of all kernels; routing, and an index over the keys, have some more."""
    per_layer = rates.constant("layer_seconds", engine)
    if shape.indexed_tokens:
        per_layer += rates.constant("index_layer_seconds")
    sparse = transformer.sparse_layers(shape)
    routing = rates.constant("expert_layer_seconds", engine) * sparse if sparse else 0.0
    return per_layer * shape.layers + routing


def _custom_costs(
    shape: Custom, layout: ServingLayout, machine: Machine, rates: _Rates
) -> StepCosts:
    """One item is one row.

    The caches of its own that an item reads belong to passes that do little else (the tokens of a
    decoder), so they overlap with nothing: a product of their own.
    """
    answer = shape.answer
    flops = rates.flops_per_second(layout.weight_format) * layout.tensor
    bandwidth = rates.weight_bandwidth * layout.tensor
    stored = shape.active_parameters * formats.weight_bytes(layout.weight_format)
    return StepCosts(
        dense=Products(
            read_seconds=stored * answer.passes / bandwidth,
            row_seconds=answer.flops / flops,
            row_traffic_seconds=item_traffic_bytes(shape, layout) / bandwidth,
        ),
        experts=NONE,
        head=Products(0.0, 0.0, answer.cache_bytes / rates.cache_bandwidth / layout.tensor),
        reads=None,
        key_read_seconds=0.0,
        key_attend_seconds=0.0,
        prompt_key_seconds=0.0,
        prompt_keys=0.0,
        all_reduces=0.0,
        all_reduce=AllReduce(),
        exchange_row_seconds=0.0,
        data=1.0,
        stage_seconds=0.0,
        latency_seconds=_kernel_seconds(rates) * CUSTOM_KERNELS * answer.passes,
        sequence_seconds=rates.constant("sequence_seconds"),
        host_seconds=rates.constant("host_seconds") / machine.host.dispatch_speed,
    )


def _kernel_seconds(rates: _Rates) -> float:
    """Launch and drain of one kernel, from what a transformer's layer takes."""
    return rates.constant("layer_seconds") / KERNELS_PER_LAYER
