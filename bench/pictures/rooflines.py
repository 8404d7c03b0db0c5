"""Rooflines of four accelerators, and where the examples stand under one of them."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bench.pictures import style
from bench.pictures.examples import CALIBRATION, examples, machine, shipped_device
from poolwise.model.roofline import ridge_point
from poolwise.model.serving.prediction import predict_serving
from poolwise.model.work import ServingLayout
from poolwise.plan.requests.request import ServingRequest

FORMAT = "bf16"
DRAWN = (
    ("B200-SXM-180GB", style.RED, (-4, 5, "right")),
    ("H100-SXM5-80GB", style.BLUE, (-4, 5, "right")),
    ("L40S", style.GREEN, (-4, 5, "right")),
    ("A10G", style.ORANGE, (3, -13, "left")),
)
UNDER = "H100-SXM5-80GB"
LEAST, MOST = 0.7, 3000.0
TOPS = (0.1, 4500.0)
ALONE = ("chat", "chat, alone", 0.01)
"""A service, its name where nothing shares a step, and the requests a second of that."""
TITLE = "What an accelerator can reach: memory sets the slope, arithmetic the roof"


def draw() -> Figure:
    """FLOP/s over FLOP per byte, both logarithmic."""
    drawn = style.figure(4.9)
    axes = style.panel(drawn)
    axes.set(xscale="log", yscale="log", xlim=(LEAST, MOST), ylim=TOPS)
    axes.set_xlabel("arithmetic intensity, FLOP per byte of memory traffic")
    axes.set_ylabel("reachable TFLOP/s of one accelerator")
    axes.set_title(TITLE)
    axes.set_xticks([1, 10, 100, 1000], ["1", "10", "100", "1,000"])
    axes.set_yticks([0.1, 1, 10, 100, 1000], ["0.1", "1", "10", "100", "1,000"])
    for name, colour, place in DRAWN:
        _roof(axes, name, colour, place)
    for name, intensity in _intensities().items():
        _workload(axes, name, intensity)
    style.note(
        drawn,
        f"Dense {FORMAT} peaks and memory bandwidths of the shipped table; circles: ridge points, "
        f"in FLOP per byte.\nIntensities: examples/ as predicted on {UNDER}.",
    )
    return drawn


def _roof(axes: Axes, name: str, colour: str, place: tuple[int, int, str]) -> None:
    device = shipped_device(name)
    peak, bandwidth = device.peak_flops_per_second[FORMAT], device.memory_bandwidth_bytes_per_second
    ridge = ridge_point(device, FORMAT)
    at = np.array([LEAST, ridge, MOST])
    axes.plot(at, np.minimum(peak, at * bandwidth) / 1e12, color=colour)
    axes.plot(ridge, peak / 1e12, "o", color=colour, markersize=6, zorder=4)
    axes.annotate(
        f"{ridge:.0f}", (ridge, peak / 1e12), place[:2], textcoords="offset points",
        ha=place[2], fontsize=8.5, color=colour,
    )  # fmt: skip
    axes.annotate(
        f"{name}  {peak / 1e12:.0f}", (MOST, peak / 1e12), (-3, 4), textcoords="offset points",
        ha="right", color=colour, fontweight="bold", fontsize=8.5,
        bbox={"facecolor": style.PAPER, "edgecolor": "none", "pad": 0.5},
    )  # fmt: skip


def _intensities() -> dict[str, float]:
    """Of the examples, and of one token stream alone."""
    name, alone, rate = ALONE
    request, layout = examples()[name].request, examples()[name].layout(UNDER)
    assert isinstance(request, ServingRequest) and isinstance(layout, ServingLayout)
    lone = predict_serving(request.work, layout, machine(UNDER), CALIBRATION, rate)
    every = {each.name: each.prediction(UNDER) for each in examples().values()}
    return {
        alone: lone.arithmetic_intensity,
        **{name: each.arithmetic_intensity for name, each in every.items()},
    }


def _workload(axes: Axes, name: str, intensity: float) -> None:
    """A line up to the roof, its name along it."""
    device = shipped_device(UNDER)
    reach = min(
        device.peak_flops_per_second[FORMAT], intensity * device.memory_bandwidth_bytes_per_second
    )
    axes.plot([intensity] * 2, [TOPS[0], reach / 1e12], ":", color=style.MUTED, linewidth=1.1)
    axes.plot(intensity, reach / 1e12, "s", color=style.INK, markersize=4, zorder=5)
    axes.annotate(
        name, (intensity, TOPS[0]), (-2, 5), textcoords="offset points", rotation=90, ha="right",
        va="bottom", fontsize=8.5,
    )  # fmt: skip
