"""Fitted factors of kernels, looked up level by level.

A constant is the product of a common value and factors for the precision, the engine, the
library behind it, these three together, the family of the device, that family with that software,
and the accelerator itself. A factor that nobody measured is 1, so an accelerator or a library that
no measurement covers inherits what is known of its family and its precision. The widths of the
factors are priors of the fit (``bench/fit/kernels.py``).
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from poolwise.model.efficiency import EVERY, Calibration
from poolwise.model.hardware import Device

PHASE = "kernels"


class Level(enum.StrEnum):
    """What a factor depends on."""

    PRECISION = "precision"
    ENGINE = "engine"
    LIBRARY = "library"
    STACK = "stack"
    """Engine, library and precision together."""
    FAMILY = "family"
    FAMILY_STACK = "family-stack"
    ACCELERATOR = "accelerator"


@dataclass(frozen=True, slots=True)
class Software:
    """What launches a kernel; empty: not known."""

    engine: str = ""
    """``vllm``, ``sglang``, ``trtllm``."""
    library: str = ""
    """Behind the engine: ``triton``, ``cutlass``, ``trtllm``, ``marlin``, ``cutedsl``."""


TERMS: Mapping[str, tuple[str, ...]] = {
    "gemm": (
        "launch_seconds", "bandwidth", "compute", "idle_outputs", "idle_depth", "sharpness",
        "quantise", "cache_bytes", "cache_gain",
    ),
    "prefill": (
        "launch_seconds", "bandwidth", "compute", "softmax_size", "idle_rows", "block_rows",
        "block_keys", "block_seconds", "window_edge", "sharpness",
    ),
    "decode": (
        "launch_seconds", "bandwidth", "compute", "idle_heads", "cache_bytes", "cache_gain",
        "key_seconds", "splitting", "block_seconds", "head_seconds", "sharpness",
    ),
    "experts": (
        "launch_seconds", "bandwidth", "compute", "idle_tokens", "idle_inner", "passing", "skew",
        "expert_seconds", "walk_seconds", "largest_tile", "sharpness",
    ),
}  # fmt: skip
"""Constants of each operation's formula."""


@cache
def term_of(operation: str, term: str, level: Level | None = None) -> str:
    """Name in the table: of the common value, or of a level's factor."""
    name = f"{operation}.{term}"
    return name if level is None else f"{name}/{level}"


def places(device: Device, precision: str, software: Software) -> dict[Level, tuple[str, str]]:
    """Scope and format of each level's factor."""
    known = [each for each in (software.engine, software.library) if each]
    stack = "/".join([*known, precision])
    return {
        Level.PRECISION: (EVERY, precision),
        Level.ENGINE: (EVERY, software.engine or "-"),
        Level.LIBRARY: (EVERY, software.library or "-"),
        Level.STACK: (EVERY, stack),
        Level.FAMILY: (device.family, EVERY),
        Level.FAMILY_STACK: (device.family, stack),
        Level.ACCELERATOR: (device.name, EVERY),
    }


def constants(
    operation: str, device: Device, precision: str, software: Software, calibration: Calibration
) -> dict[str, float]:
    """All constants of one operation, for its formula."""
    where = places(device, precision, software)
    found = {}
    for term in TERMS[operation]:
        value = calibration.value(PHASE, term_of(operation, term), device)
        for level, (_, number_format) in where.items():
            factor = calibration.find(PHASE, term_of(operation, term, level), device, number_format)
            value *= 1.0 if factor is None else factor.value
        found[term] = value
    return found
