"""What arithmetic and what memory bandwidth cost: why no pool is best for everything."""

from __future__ import annotations

import math

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bench.pictures import style
from bench.pictures.examples import TABLES, shipped_device
from poolwise.model.roofline import ridge_point

FORMAT = "bf16"
PLACES = {
    "A10G": (7, -3, "left"),
    "L4": (7, -3, "left"),
    "L40S": (-7, 3, "right"),
    "A100-SXM4-80GB": (0, 8, "center"),
    "H100-SXM5-80GB": (7, 4, "left"),
    "H200-SXM-141GB": (7, -8, "left"),
    "B200-SXM-180GB": (-7, -9, "right"),
    "MI300X": (7, -7, "left"),
    "MI355X": (7, -9, "left"),
    "TPU v5e": (7, -5, "left"),
    "TPU v6e": (-7, -3, "right"),
}
"""Accelerators, and where their names stand beside them (points, alignment)."""
RIDGES = {100.0: 9.6, 200.0: 5.0, 400.0: 2.55}
"""Lines of equal ridge, and where on each its name stands (dollars for 1 PFLOP/s)."""
ACROSS, UP = (2.4, 18.0), (0.9, 3.4)
WIDE = 250.0
"""FLOP per byte; an accelerator beyond has much arithmetic for its bandwidth."""
TITLE = "The same dollar buys arithmetic on one accelerator and bandwidth on another"


def draw() -> Figure:
    """Price of bandwidth over price of arithmetic, both logarithmic: left and low is cheap."""
    drawn = style.figure(4.7)
    axes = style.panel(drawn)
    axes.set(xscale="log", yscale="log", xlim=ACROSS, ylim=UP)
    _plain_ticks(axes)
    axes.set_xlabel(f"dollars an hour for 1 PFLOP/s of {FORMAT}: training buys these")
    axes.set_ylabel("dollars an hour for 1 TB/s of memory:\ngenerating tokens buys these")
    axes.set_title(TITLE)
    for ridge, at in RIDGES.items():
        _equal_ridge(axes, ridge, at)
    for name, place in PLACES.items():
        _accelerator(axes, name, place)
    style.note(
        drawn,
        "Peaks, bandwidths and dated prices of the shipped table, one accelerator, mostly on "
        "demand. Sellers differ by several times:\na price of your own in an AcceleratorPool "
        f"moves its point along the diagonal, never off it. Orange: ridge above {WIDE:.0f}.",
    )
    return drawn


def _plain_ticks(axes: Axes) -> None:
    for axis, values in ((axes.xaxis, (3, 5, 8, 12, 18)), (axes.yaxis, (1, 1.5, 2, 3))):
        axis.set_ticks(values, [f"{value:g}" for value in values])
        axis.set_ticks([], minor=True)


def _equal_ridge(axes: Axes, ridge: float, at: float) -> None:
    """Points on one diagonal have one ridge point: FLOP/s over bytes/s does not know the price."""
    across = np.array(ACROSS)
    axes.plot(across, across * ridge / 1000, "--", color=style.GREY, linewidth=1)
    axes.text(
        at,
        at * ridge / 1000 * 0.985,
        f"ridge {ridge:.0f} FLOP per byte",
        rotation=math.degrees(math.atan(ridge / 1000)),
        rotation_mode="anchor",
        transform_rotates_text=True,
        va="top",
        fontsize=8,
        color=style.MUTED,
    )


def _accelerator(axes: Axes, name: str, place: tuple[int, int, str]) -> None:
    row, device = TABLES.accelerator(name), shipped_device(name)
    assert row is not None and row.price_per_hour_usd is not None
    arithmetic = row.price_per_hour_usd / (device.peak_flops_per_second[FORMAT] / 1e15)
    bandwidth = row.price_per_hour_usd / (device.memory_bandwidth_bytes_per_second / 1e12)
    is_wide = ridge_point(device, FORMAT) > WIDE
    colour = style.ORANGE if is_wide else style.BLUE
    axes.plot(arithmetic, bandwidth, "o", color=colour, markersize=7, zorder=4)
    axes.annotate(
        name, (arithmetic, bandwidth), place[:2], textcoords="offset points", ha=place[2],
        fontsize=8.5,
    )  # fmt: skip
