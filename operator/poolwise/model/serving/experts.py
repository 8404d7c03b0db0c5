"""Routed experts of a step: grouped products of few rows each.

How much slower they are than dense ones depends on the kernels of a format, on how narrow the
slices are and on the rows that a group is padded to. With few models measured, the fit starts from
kernels that were measured by themselves (:mod:`poolwise.model.kernels.experts`).
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from statistics import NormalDist

from poolwise.model import formats, transformer
from poolwise.model.hardware import Device
from poolwise.model.serving.iteration import Products
from poolwise.model.serving.rates import NONE, Rates, arithmetic, products
from poolwise.model.shapes import Custom, Experts
from poolwise.model.work import ServingLayout, ServingWork

EXPANDED_TILE_ROWS = 16.0
"""Rows that kernels for expanded weights pad an expert's group to: Marlin's smallest block is 8
(vLLM, ``marlin_moe.py``, ``block_size_m``), Triton's smallest product has 16."""
EXPANDED, BLOCK_SCALED = "expanded", "fp8_block"
"""Formats of ``expert_compute`` beside units: weights without a unit, and a scale per 128 x 128."""


def expert_products(work: ServingWork, layout: ServingLayout, rates: Rates) -> Products:
    """Routed experts: those that the batch touches are read, and their groups padded to tiles.

    Cut by tensor parallelism, every device sees all rows of all chosen experts at full width, and
    writes and reads them on the way; laid out whole (``expert``), it sees only its share. Slices
    that are narrow multiply slower: ``w / (w + half)``. Weights without a unit of their own are
    expanded on the way, by kernels that take small groups.

    A step waits for the device with the most to do. Of ``n`` experts that it holds, each touched
    with probability t, it reads ``n*t`` and a few deviations ``sqrt(n*t*(1-t))`` more; of ``r*k``
    choices it gets one in R likewise. So few rows cost more where experts are laid out whole.
    """
    shape, count = work.model.shape, transformer.parameters(work.model)
    if isinstance(shape, Custom) or shape.experts is None:
        return NONE
    stored = formats.weight_bytes(layout.weight_format)
    ranks = layout.tensor * layout.data
    owners = min(layout.expert, ranks)
    whole = products(count.experts / layout.data, stored, layout.weight_format, layout, rates)
    exchanged = rates.constant("expert_exchange_bytes") * shape.hidden * shape.experts.top_k
    exchanged *= transformer.sparse_layers(shape) / owners
    share, fullest = count.routed_fraction, fullest_of(owners)
    return replace(
        whole,
        row_seconds=whole.row_seconds
        * share
        / _expert_speed(work, shape.experts, owners / ranks, layout, rates),
        row_traffic_seconds=exchanged / rates.weight_bandwidth,
        idle_share=1.0 - share,
        padding_rows=_padding_rows(layout, rates) / share,
        touched_unevenness=fullest * math.sqrt(owners / shape.experts.count),
        row_unevenness=fullest * math.sqrt((owners - 1.0) / shape.experts.top_k),
    )


@cache
def fullest_of(devices: int) -> float:
    """How far the fullest of several devices is above their mean, in standard deviations: the
    largest of so many normal variates, by Blom's approximation (Statistical Estimates and
    Transformed Beta-Variables, 1958)."""
    return NormalDist().inv_cdf((devices - 0.375) / (devices + 0.25)) if devices > 1 else 0.0


def _expert_speed(
    work: ServingWork, experts: Experts, slice_share: float, layout: ServingLayout, rates: Rates
) -> float:
    """Speed of grouped products over that of dense ones: a matter of the kernels of a format."""
    width = experts.ffn * slice_share
    speed = rates.constant("expert_compute", expert_format(work, layout, rates.device))
    return speed * width / (width + rates.constant("expert_half_width"))


def expert_format(work: ServingWork, layout: ServingLayout, device: Device) -> str:
    """What kernels of experts differ by; models trained in fp8 have a scale for each block."""
    if _is_expanded(layout.weight_format, device):
        return EXPANDED
    if layout.weight_format == "fp8" and work.model.native_format == "fp8":
        return BLOCK_SCALED
    if layout.weight_format == "mxfp4":
        return "mxfp4"
    unit = arithmetic(layout.weight_format, device)
    return unit if unit in ("fp8", "fp4", "int8") else "bf16"


def _padding_rows(layout: ServingLayout, rates: Rates) -> float:
    if _is_expanded(layout.weight_format, rates.device):
        return EXPANDED_TILE_ROWS
    return rates.constant("expert_padding_rows")


def _is_expanded(weight_format: str, device: Device) -> bool:
    """Whether no unit of the device multiplies the format."""
    native = formats.native_arithmetic(weight_format, device.peak_flops_per_second)
    return native is None and weight_format not in ("bf16", "fp16")
