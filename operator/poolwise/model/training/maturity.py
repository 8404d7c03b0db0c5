"""How software's age and a part's power change what a family's constants promise."""

from __future__ import annotations

import math

from poolwise.model.efficiency import Calibration
from poolwise.model.hardware import Device
from poolwise.model.work import TrainingWork

PHASE = "training"
LEAST_POWER, MOST_POWER = 0.5, 1.2
"""Bounds of a part's power for each FLOP/s over its family's usual: parts whose arithmetic was cut
for export (H20) have watts to spare that speed nothing up."""
MILLENNIUM = 2000.0
"""Year that dates among the constants count from."""
FOLDED_SINCE_YEAR = 2025.2
"""Since then expert parallelism runs over tensor-parallel ranks too, each with its own tokens
(MoE Parallel Folding, arXiv 2504.14960; Megatron-Core 0.10)."""


def immaturity(work: TrainingWork, device: Device, calibration: Calibration) -> float:
    """Factor on kernels that are young for their device: ``1 + A*exp(-age/T)``.

    The age is that of the software since the first device of the family could be had: kernels are
    written for an architecture. Unknown software is as new as the newest that was measured; a
    device of unknown age has none to make up for.
    """
    family = calibration.find(PHASE, "architecture_years", device)
    released = device.released_year if family is None else MILLENNIUM + family.value
    if released is None:
        return 1.0
    age = max(0.0, software_year(work, device, calibration) - released)
    years = calibration.value(PHASE, "maturity_years", device)
    return 1 + calibration.value(PHASE, "immaturity", device) * math.exp(-age / years)


def software_year(work: TrainingWork, device: Device, calibration: Calibration) -> float:
    """As asked, else that of the newest software behind the constants."""
    newest = MILLENNIUM + calibration.value(PHASE, "newest_software_years", device)
    return work.software_year or newest


def clock_fraction(device: Device, calibration: Calibration) -> float:
    """How a part runs against its family's usual one where it has less power for each FLOP/s.

    Dynamic power grows faster than the clock, so a part with its watts cut keeps more of its speed
    than of its power: ``(own watts per FLOP/s / the family's) ** exponent``.
    """
    usual = calibration.find(PHASE, "usual_flops_per_watt", device)
    peak = device.peak_flops_per_second.get("bf16")
    if usual is None or peak is None or not device.power_watts:
        return 1.0
    share = usual.value * device.power_watts / peak
    exponent = calibration.value(PHASE, "power_exponent", device)
    return float(min(max(share, LEAST_POWER), MOST_POWER) ** exponent)


def is_folded(work: TrainingWork) -> bool:
    """Whether experts live across tensor-parallel ranks too, and none is cut by them."""
    return work.software_year is None or work.software_year >= FOLDED_SINCE_YEAR
