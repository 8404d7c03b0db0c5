"""From a model, a layout and a machine to the coefficients of an engine step."""

from __future__ import annotations

from poolwise.model import formats, kv_cache, transformer
from poolwise.model.efficiency import Calibration
from poolwise.model.hardware import Machine
from poolwise.model.kv_cache import reads
from poolwise.model.serving.exchange import all_reduce, exchange_row_seconds, stage_seconds
from poolwise.model.serving.experts import expert_products
from poolwise.model.serving.front_end import early_share
from poolwise.model.serving.iteration import AllReduce, Products, StepCosts
from poolwise.model.serving.memory import (
    dense_format,
    item_traffic_bytes,
    replica_machine,
    unquantised_weight_bytes,
)
from poolwise.model.serving.queueing import log_normal
from poolwise.model.serving.rates import NONE, Rates, products
from poolwise.model.shapes import Custom, Transformer
from poolwise.model.work import ServingLayout, ServingWork

KERNELS_PER_LAYER = 12
"""Of a transformer: norms, projections, attention, products, residuals."""
LEAST_COMPUTED_SHARE = 0.01
"""Of a prompt: its last block is computed even when all of it is cached."""
CUSTOM_KERNELS = 50
"""Of one pass of a model whose layers are not known: ResNet-50's convolutions, each fused with its
norm and activation."""


def step_costs(
    work: ServingWork, layout: ServingLayout, machine: Machine, calibration: Calibration
) -> StepCosts:
    """Coefficients from the model's counts, the device's peaks and the fitted efficiencies."""
    machine = replica_machine(layout, machine)
    rates = Rates(machine.device, calibration)
    if isinstance(work.model.shape, Custom):
        return _custom_costs(work.model.shape, layout, machine, rates)
    return _transformer_costs(work, work.model.shape, layout, machine, rates)


def _transformer_costs(
    work: ServingWork, shape: Transformer, layout: ServingLayout, machine: Machine, rates: Rates
) -> StepCosts:
    count, calibration = transformer.parameters(work.model), rates.calibration
    dense, of_dense = count.body - count.experts, dense_format(layout)
    head = count.head + count.tied_head if shape.is_decoder else 0.0
    attention_flops = rates.attention_flops_per_second * layout.tensor
    cache_bytes = kv_cache.bytes_per_key(shape, formats.weight_bytes(layout.kv_format))
    cache_bytes /= kv_cache.shards(shape, layout.tensor)
    return StepCosts(
        dense=products(dense, formats.weight_bytes(of_dense), of_dense, layout, rates),
        experts=expert_products(work, layout, rates),
        head=products(head, unquantised_weight_bytes(layout), "bf16", layout, rates),
        reads=reads(shape),
        key_read_seconds=cache_bytes / rates.cache_bandwidth,
        key_attend_seconds=transformer.decode_attention_flops_per_key(shape) / attention_flops,
        prompt_key_seconds=transformer.attention_flops_per_key(shape) / attention_flops,
        prompt_keys=_prompt_keys(work, layout, shape),
        all_reduces=2.0 * shape.layers if layout.tensor > 1 else 0.0,
        all_reduce=all_reduce(shape, layout, machine, calibration),
        exchange_row_seconds=exchange_row_seconds(shape, layout, machine, calibration),
        data=float(layout.data),
        stage_seconds=stage_seconds(shape, layout, machine, calibration),
        latency_seconds=_latency_seconds(work, shape, rates),
        sequence_seconds=rates.constant("sequence_seconds", work.engine),
        host_seconds=rates.constant("host_seconds", work.engine) / machine.host.dispatch_speed,
    )


def _prompt_keys(work: ServingWork, layout: ServingLayout, shape: Transformer) -> float:
    """Keys per computed token of a prompt, of which a leading part may come from the cache."""
    lengths = log_normal(work.input_tokens.p50, work.input_tokens.p95)
    lengths = lengths.at_most(float(layout.max_model_tokens))
    tokens, computed = max(lengths.biased_mean, 1.0), computed_share(work)
    whole, hit = transformer.attended_keys(shape, tokens), 1.0 - computed
    if hit <= 0.0:
        return whole
    cached = transformer.attended_keys(shape, max(tokens * hit, 1.0)) * hit
    return (whole - cached) / computed


def computed_share(work: ServingWork) -> float:
    """Of a prompt, what the prefix cache does not have."""
    return max(1.0 - work.prefix_hit_fraction, LEAST_COMPUTED_SHARE)


def _latency_seconds(work: ServingWork, shape: Transformer, rates: Rates) -> float:
    """Launch and drain of all kernels; routing, and an index over the keys, have some more."""
    per_layer = rates.constant("layer_seconds", work.engine)
    if shape.indexed_tokens:
        per_layer += rates.constant("index_layer_seconds")
    sparse = transformer.sparse_layers(shape)
    routing = _routing_seconds(work, rates) * sparse if sparse else 0.0
    return per_layer * shape.layers + routing


def _routing_seconds(work: ServingWork, rates: Rates) -> float:
    """Of one layer of experts. Software matures: engines have fused what releases of 2025 launched
    kernel by kernel."""
    late = rates.constant("expert_layer_seconds", work.engine)
    early = early_share(work.software_year)
    if early <= 0.0:
        return late
    return late + early * rates.constant("early_expert_layer_seconds", work.engine)


def _custom_costs(
    shape: Custom, layout: ServingLayout, machine: Machine, rates: Rates
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


def _kernel_seconds(rates: Rates) -> float:
    """Launch and drain of one kernel, from what a transformer's layer takes."""
    return rates.constant("layer_seconds") / KERNELS_PER_LAYER
