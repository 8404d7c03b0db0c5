"""Constants of the training step: where their fit starts, and what nobody measured."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from bench.accuracy import Vector
from bench.dates import span
from bench.fit.pooling import Constant
from poolwise.model.efficiency import EVERY
from poolwise.model.training.maturity import MILLENNIUM
from poolwise.tables import AcceleratorRow, Tables
from poolwise.tables.efficiencies import EfficiencyRow

PHASE = "training"
SHARE = 1.0
FAMILY, ACCELERATOR = 0.08, 0.05
"""Widths of the levels of ``products``: how far families and accelerators differ, as ln. Narrower
than runs of known accelerators ask for: with 0.12 and 0.08 one that is left out is met worse."""
ATTENTION_FAMILY = 0.15
"""Width of the families of ``attention``. Kernels of 4,096 tokens and more reach medians of 0.63
(Ampere), 0.61 (Hopper), 0.50 to 0.63 (Blackwell) and 0.44 (Ada) of the peak at heads of 128
(kernels_measured, bf16), a deviation of 0.15 of ln. Blackwell has no run beyond 8,192 tokens: with
0.25 it came out at 0.99, and a long context four times as fast as on Hopper. Runs of 16,384 tokens
and more that had no part are met within 4.0 % (4.9), all within 6.3 (6.1)."""
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
    Constant(PHASE, "attention", 0.5, 0.3, family_width=ATTENTION_FAMILY),
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
WRITTEN = "2026-11-22"
"""The day on which a figure without a document was judged and written here."""


@dataclass(frozen=True, slots=True)
class Specified:
    """A constant that no run in the tables measures."""

    term: str
    scope: str
    value: float
    spread: float
    """Of ln of the value; 0 is exact by definition, as a date is."""
    source: str
    date: str = WRITTEN

    @property
    def row(self) -> EfficiencyRow:
        """As it ships."""
        return EfficiencyRow(
            phase=PHASE, count=0, provenance="specification", **dataclasses.asdict(self)
        )


SPECIFIED = (
    Specified(
        "bandwidth", EVERY, 0.85, 0.1, "STREAM-like copies reach 80 to 92 % of the data sheet"
    ),
    Specified("bandwidth", CPU, 0.75, 0.2, "STREAM triad on two-socket servers"),
    Specified(
        "custom", EVERY, 0.45, 0.3, "ResNet-50 in MLPerf: 0.3 to 0.45 of the ceiling on A100, H100"
    ),
    Specified(
        "custom", CPU, 0.3, 0.4, "oneDNN convolutions; the data sheet itself is good to 20 %"
    ),
    Specified("products", CPU, 0.5, 0.4, "oneDNN products in bf16; the data sheet is good to 20 %"),
    Specified("attention", CPU, 0.3, 0.4, "as products, unfused"),
    Specified(
        "newest_software_years",
        EVERY,
        26.6,
        0.0,
        "newest release in train_measured: 26.08",
        "2026-08",
    ),
)
"""What no run in the tables measures."""


def specified(tables: Tables) -> list[EfficiencyRow]:
    """Rows that no run in the tables measures."""
    return [each.row for each in (*SPECIFIED, *_usual_power(tables), *_begun(tables))]


def _usual_power(tables: Tables) -> Iterator[Specified]:
    """FLOP/s for each watt of a family's middle part: what others of it are held against.

    Its spread is that of the family's parts. One part has none that could be known, and that of a
    family is no sign of another's, so it has that of all families with several parts together.
    """
    families: dict[str, list[AcceleratorRow]] = {}
    for row in tables.accelerators:
        if row.bf16_flops_per_second and row.power_watts:
            families.setdefault(row.family, []).append(row)
    figures = {family: _log_flops_per_watt(several) for family, several in families.items()}
    pooled = _pooled_deviation(figures.values())
    for family, several in sorted(families.items()):
        logarithms = figures[family]
        own = float(np.std(logarithms, ddof=1)) if len(several) > 1 else pooled
        source = f"median of the data sheets of {len(several)} parts"
        value = float(np.median(np.exp(logarithms)))
        yield Specified(
            "usual_flops_per_watt", family, value, own or pooled, source, _years(several)
        )


def _log_flops_per_watt(several: Iterable[AcceleratorRow]) -> Vector:
    pairs = [(row.bf16_flops_per_second or 0.0, row.power_watts or 0.0) for row in several]
    return np.log([flops / watts for flops, watts in pairs])


def _pooled_deviation(families: Iterable[Vector]) -> float:
    """Of parts about their family's mean."""
    several = [each for each in families if len(each) > 1]
    squares = sum(float(np.sum((each - each.mean()) ** 2)) for each in several)
    return math.sqrt(squares / sum(len(each) - 1 for each in several))


def _begun(tables: Tables) -> Iterator[Specified]:
    """When the first part of each family could be had: kernels are written for the family."""
    families: dict[str, list[AcceleratorRow]] = {}
    for row in tables.accelerators:
        if row.released_year:
            families.setdefault(row.family, []).append(row)
    source = "first release in accelerators.csv"
    for family, several in sorted(families.items()):
        since = min(row.released_year or 0.0 for row in several) - MILLENNIUM
        first = f"{int(since + MILLENNIUM)}"
        yield Specified("architecture_years", family, since, 0.0, source, first)


def _years(several: Iterable[AcceleratorRow]) -> str:
    """Of the parts' releases, which are those of their data sheets."""
    years = [f"{int(row.released_year)}" for row in several if row.released_year]
    return span(years) or WRITTEN
