"""Constants of the training step: where their fit starts, and what nobody measured."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bench.fit.pooling import Constant
from poolwise.model.efficiency import EVERY
from poolwise.model.training.maturity import MILLENNIUM
from poolwise.tables import Tables
from poolwise.tables.efficiencies import EfficiencyRow

PHASE = "training"
SHARE = 1.0
FAMILY, ACCELERATOR = 0.08, 0.05
"""Widths of the levels of ``products``: how far families and accelerators differ, as ln. Narrower
than runs of known accelerators ask for: with 0.12 and 0.08 one that is left out is met worse."""
CONSTANTS = (
    Constant(
        PHASE,
        "products",
        start=0.95,
        width=0.15,
        formats=("bf16", "fp8", "nvfp4", "fp32"),
        family_width=FAMILY,
        accelerator_width=ACCELERATOR,
        most=1.3,
    ),
    Constant(PHASE, "attention", 0.5, 0.3, family_width=0.25),
    Constant(PHASE, "power_exponent", 0.5, 0.5, most=SHARE),
    Constant(PHASE, "immaturity", 0.5, 0.7),
    Constant(PHASE, "maturity_years", 1.0, 0.5),
    Constant(PHASE, "unhidden", 0.4, 0.2, most=SHARE),
    Constant(PHASE, "experts", 0.6, 0.4, family_width=0.15, most=1.2),
    Constant(PHASE, "experts_half_tokens", 500.0, 1.0),
    Constant(PHASE, "elementwise_traffic", 1.5, 0.4, ("bf16", "fp8", "nvfp4", EVERY)),
    Constant(PHASE, "scan_traffic", 3.0, 0.7),
    Constant(PHASE, "layer_launch_seconds", 1.5e-4, 0.5),
    Constant(PHASE, "expert_launch_seconds", 4e-4, 0.7),
    Constant(PHASE, "routing_launch_seconds", 2e-3, 0.7),
    Constant(PHASE, "graph_years", 1.0, 0.5),
    Constant(PHASE, "step_overhead_seconds", 0.015, 1.0),
    Constant(PHASE, "exposed_tensor", 0.5, 0.5, most=SHARE),
    Constant(PHASE, "exposed_expert", 0.7, 0.5, most=SHARE),
    Constant(PHASE, "expert_overlap", 0.7, 0.3, most=SHARE),
    Constant(PHASE, "exposed_context", 0.2, 0.7, most=SHARE),
    Constant(PHASE, "exposed_pipeline", 0.5, 0.7, most=SHARE),
    Constant(PHASE, "exposed_data", 0.1, 0.7, most=SHARE),
    Constant(PHASE, "data_overlap", 0.6, 0.3, most=SHARE),
)

CPU = "cpu"
SPECIFIED = (
    ("bandwidth", EVERY, 0.85, 0.1, "STREAM-like copies reach 80 to 92 % of the data sheet"),
    ("bandwidth", CPU, 0.75, 0.2, "STREAM triad on two-socket servers"),
    ("custom", EVERY, 0.45, 0.3, "ResNet-50 in MLPerf: 0.3 to 0.45 of the ceiling on A100, H100"),
    ("custom", CPU, 0.3, 0.4, "oneDNN convolutions; the data sheet itself is good to 20 %"),
    ("products", CPU, 0.5, 0.4, "oneDNN products in bf16; the data sheet is good to 20 %"),
    ("attention", CPU, 0.3, 0.4, "as products, unfused"),
    ("newest_software_years", EVERY, 26.6, 0.0, "newest release in train_measured: 26.08"),
)
"""Term, scope, value, spread, source of what no run in the tables measures."""


def specified(tables: Tables) -> list[EfficiencyRow]:
    """Rows that no run in the tables measures."""
    return [_specified(each) for each in (*SPECIFIED, *_usual_power(tables), *_begun(tables))]


def _usual_power(tables: Tables) -> Iterator[tuple[str, str, float, float, str]]:
    """FLOP/s for each watt of a family's middle part: what others of it are held against."""
    figures: dict[str, list[float]] = {}
    for row in tables.accelerators:
        if row.bf16_flops_per_second and row.power_watts:
            flops_per_watt = row.bf16_flops_per_second / row.power_watts
            figures.setdefault(row.family, []).append(flops_per_watt)
    for family, several in sorted(figures.items()):
        source = f"median of the data sheets of {len(several)} parts"
        yield "usual_flops_per_watt", family, float(np.median(several)), 0.0, source


def _begun(tables: Tables) -> Iterator[tuple[str, str, float, float, str]]:
    """When the first part of each family could be had: kernels are written for the family."""
    years: dict[str, list[float]] = {}
    for row in tables.accelerators:
        if row.released_year:
            years.setdefault(row.family, []).append(row.released_year)
    for family, several in sorted(years.items()):
        since = min(several) - MILLENNIUM
        yield "architecture_years", family, since, 0.0, "first release in accelerators.csv"


def _specified(figures: tuple[str, str, float, float, str]) -> EfficiencyRow:
    name, scope, value, spread, source = figures
    return EfficiencyRow(
        phase=PHASE,
        term=name,
        scope=scope,
        value=value,
        spread=spread,
        count=0,
        provenance="specification",
        source=source,
    )
