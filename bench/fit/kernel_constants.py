"""Constants of kernels, where their fit starts and how far each level may move them."""

from __future__ import annotations

from collections.abc import Mapping

from bench.fit.levels import Factored
from poolwise.model.kernels.constants import Level


def _levels(stack: float, family: float, accelerator: float = 0.1) -> dict[str, float]:
    """Priors of a constant that everything may change."""
    return {
        Level.PRECISION: stack,
        Level.ENGINE: stack,
        Level.STACK: stack,
        Level.FAMILY: family,
        Level.FAMILY_STACK: stack,
        Level.ACCELERATOR: accelerator,
    }


CONSTANTS: Mapping[str, Mapping[str, Factored]] = {
    "gemm": {
        "launch_seconds": Factored(5e-6, 0.7, {**_levels(0.4, 0.3)}),
        "bandwidth": Factored(
            0.75, 0.3, {Level.FAMILY: 0.15, Level.ACCELERATOR: 0.1, Level.PRECISION: 0.15}
        ),
        "compute": Factored(0.7, 0.4, {**_levels(0.3, 0.15, 0.07), Level.ENGINE: 0.1}),
        "idle_outputs": Factored(1e6, 1.0, dict.fromkeys((Level.FAMILY, Level.STACK), 0.3)),
        "idle_depth": Factored(200, 1.0),
        "sharpness": Factored(3.0, 0.4),
        "quantise": Factored(0.1, 1.5, {Level.STACK: 0.7, Level.FAMILY_STACK: 0.5}),
        "cache_bytes": Factored(40e6, 0.5, {Level.FAMILY: 0.5}),
        "cache_gain": Factored(1.0, 0.8, {Level.FAMILY: 0.3}),
    },
    "prefill": {
        "launch_seconds": Factored(8e-6, 0.7, _levels(0.3, 0.2)),
        "bandwidth": Factored(
            0.6, 0.3, {Level.ENGINE: 0.3, Level.FAMILY: 0.2, Level.STACK: 0.3}
        ),
        "compute": Factored(0.6, 0.4, _levels(0.2, 0.15, 0.07)),
        "softmax_size": Factored(30, 1.0),
        "idle_rows": Factored(1e4, 1.0, dict.fromkeys((Level.FAMILY, Level.ENGINE), 0.3)),
        "block_rows": Factored(32, 1.0),
        "block_keys": Factored(64, 1.0),
        "block_seconds": Factored(1e-8, 1.0, dict.fromkeys((Level.FAMILY, Level.ENGINE), 0.5)),
        "window_edge": Factored(64, 1.0, {Level.ENGINE: 0.5}),
        "sharpness": Factored(2.0, 0.4),
    },
    "decode": {
        "launch_seconds": Factored(8e-6, 0.7, _levels(0.3, 0.2)),
        "bandwidth": Factored(0.7, 0.3, _levels(0.15, 0.15, 0.05)),
        "compute": Factored(0.3, 0.6, _levels(0.3, 0.2)),
        "idle_heads": Factored(16, 0.7),
        "cache_bytes": Factored(30e6, 0.5, {Level.FAMILY: 0.5}),
        "cache_gain": Factored(2.0, 0.8, {Level.FAMILY: 0.3}),
        "key_seconds": Factored(4e-11, 1.0, {Level.FAMILY_STACK: 0.5}),
        "splitting": Factored(0.2, 1.0, {Level.FAMILY_STACK: 1.0}),
        "block_seconds": Factored(1e-8, 1.0, dict.fromkeys((Level.FAMILY, Level.ENGINE), 0.5)),
        "head_seconds": Factored(
            1e-9, 1.0, dict.fromkeys((Level.FAMILY, Level.ENGINE, Level.STACK), 0.5)
        ),
        "sharpness": Factored(2.0, 0.4),
    },
    "experts": {
        "launch_seconds": Factored(2e-5, 0.7, {**_levels(0.3, 0.2, 0.07), Level.LIBRARY: 0.3}),
        "bandwidth": Factored(0.6, 0.3, {**_levels(0.15, 0.15, 0.07), Level.LIBRARY: 0.15}),
        "compute": Factored(0.5, 0.4, {**_levels(0.25, 0.15, 0.07), Level.LIBRARY: 0.25}),
        "idle_tokens": Factored(32, 0.7, {Level.STACK: 0.5}),
        "idle_inner": Factored(64, 1.0),
        "passing": Factored(0.5, 0.5, dict.fromkeys((Level.FAMILY, Level.ENGINE), 0.3)),
        "skew": Factored(1.0, 0.5),
        "expert_seconds": Factored(
            2e-8, 1.0, dict.fromkeys((Level.ENGINE, Level.LIBRARY), 0.7)
        ),
        "walk_seconds": Factored(1e-11, 1.0, dict.fromkeys((Level.LIBRARY, Level.STACK), 0.7)),
        "largest_tile": Factored(128, 0.5),
        "sharpness": Factored(2.0, 0.4),
    },
}  # fmt: skip
"""Widths are of ln; those of levels shrink towards the common value what few rows speak for."""
