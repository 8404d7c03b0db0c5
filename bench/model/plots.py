"""Pictures of docs/accuracy.md: predicted against measured, error by accelerator, rooflines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bench.model.attained import KINDS, Attained
from bench.model.outcome import Outcome, scored
from bench.pictures import style
from poolwise.model.hardware import Device
from poolwise.plan.nodes.machines import device
from poolwise.tables import AcceleratorRow, Tables

PANELS = {
    "tokens/s per accelerator, training": ("train_dense", "train_moe"),
    "seconds per token": ("tpot", "tpot_disagg"),
    "seconds to the first token": ("ttft", "ttft_disagg"),
    "tokens/s, offline": ("offline_throughput",),
    "seconds of a collective": ("collectives",),
    "seconds of a kernel": ("kernels",),
}
POINTS = 220
"""Of each panel at most, drawn evenly from all rows: more would only make the file larger."""
BAND = 1.25
COMPARED = ("train_dense", "train_moe", "tpot", "ttft", "offline_throughput")
FEWEST_ROWS = 5
ROOFED = ("A100-SXM4-80GB", "L40S", "H100-SXM5-80GB", "B200-SXM-180GB")
"""From few and slow bytes to many: most points stand under one of these."""
ROOFS = (("bf16", "-"), ("int8", "--"), ("fp8", "--"), ("fp4", ":"))
"""8 bits are drawn once: the units share their peak."""
UNDER = 45
"""Points of each kind and panel at most."""
INTENSITIES, TERAFLOPS = (0.5, 2e4), (0.03, 2e4)
MARKS = (
    (style.BLUE, "."),
    (style.TEAL, "."),
    (style.GREEN, "."),
    (style.PURPLE, "."),
    (style.RED, "^"),
    (style.ORANGE, "s"),
)
"""Of each kind; kernels are dots."""


def predicted_against_measured(outcomes: Iterable[Outcome]) -> Figure:
    """Six panels, both axes logarithmic; the band is a quarter either way."""
    counted = scored(outcomes)
    drawn = style.figure(5.4)
    for axes, (title, names) in zip(drawn.subplots(2, 3).flat, PANELS.items(), strict=True):
        _scatter(axes, title, [each for each in counted if each.score in names])
    drawn.supylabel("predicted", fontsize=9.5)
    style.note(drawn, "x: measured. Rows of the fit are predicted by constants of the other folds.")
    return drawn


def _scatter(axes: Axes, title: str, chosen: Sequence[Outcome]) -> None:
    style.gridded(axes)
    axes.set(xscale="log", yscale="log")
    axes.set_title(title, fontsize=8.5)
    if not chosen:
        return
    at = np.linspace(0, len(chosen) - 1, min(POINTS, len(chosen))).astype(int)
    for colour, score in zip(style.COLOURS, sorted({each.score for each in chosen}), strict=False):
        some = [chosen[i] for i in at if chosen[i].score == score]
        predicted = [each.predicted.mid for each in some if each.predicted]
        measured = [each.measured for each in some]
        axes.plot(measured, predicted, ".", color=colour, markersize=2.5, label=score)
    ends = np.array(axes.get_xlim())
    axes.plot(ends, ends, color=style.MUTED, linewidth=0.8)
    axes.fill_between(ends, ends / BAND, ends * BAND, color=style.MUTED, alpha=0.15, linewidth=0)
    axes.legend(fontsize=7, loc="upper left", handletextpad=0.1)


def error_by_accelerator(document: Mapping[str, Any]) -> Figure:
    """Median error of each accelerator with enough rows, one mark for each score."""
    cells = {
        gpu: {name: score["mdape"] for name, score in scores.items() if _has_enough(name, score)}
        for gpu, scores in document["by_gpu"].items()
    }
    names = [gpu for gpu, found in cells.items() if found][::-1]
    drawn = style.figure(0.9 + 0.26 * len(names))
    axes = style.panel(drawn)
    for colour, score in zip(style.COLOURS, COMPARED, strict=False):
        at = [index for index, gpu in enumerate(names) if score in cells[gpu]]
        wrong = [cells[names[index]][score] for index in at]
        axes.plot(wrong, at, "o", color=colour, markersize=5, label=score)
    axes.set_yticks(range(len(names)), names, fontsize=8.5)
    axes.set_xlim(left=0)
    axes.set_xlabel(f"median absolute error, percent (at least {FEWEST_ROWS} rows)")
    axes.legend(fontsize=8, loc="lower right")
    return drawn


def _has_enough(name: str, score: Mapping[str, Any]) -> bool:
    return name in COMPARED and score["predicted"] >= FEWEST_ROWS


def rooflines(points: Sequence[Attained], tables: Tables) -> Figure:
    """One panel for each accelerator of :data:`ROOFED`: what was attained, under its roofs."""
    drawn = style.figure(6.6)
    grid = drawn.subplots(2, 2, sharex=True, sharey=True)
    for axes, gpu in zip(grid.flat, ROOFED, strict=True):
        style.gridded(axes)
        axes.set(xscale="log", yscale="log", xlim=INTENSITIES, ylim=TERAFLOPS)
        axes.set_title(gpu, fontsize=8.5)
        axes.set_xticks([1, 10, 100, 1000, 10000], ["1", "10", "100", "1,000", "10,000"])
        axes.set_yticks([0.1, 1, 10, 100, 1000], ["0.1", "1", "10", "100", "1,000"])
        _roofs(axes, device(_known(tables, gpu)))
        _under(axes, [each for each in points if each.gpu == gpu])
    handles, labels = grid[0, 1].get_legend_handles_labels()
    drawn.legend(handles, labels, loc="outside upper center", ncols=3, fontsize=8)
    drawn.supylabel("TFLOP/s of one accelerator, measured", fontsize=9.5)
    style.note(
        drawn,
        "x: FLOP per byte of memory, by the model's ledger; only time is measured. Lines: the data "
        "sheet's bandwidth and dense peaks.\nA kernel whose operands fit the last cache may stand "
        f"left of the slope. At most {UNDER} points of a kind, drawn evenly.",
    )
    return drawn


def _known(tables: Tables, gpu: str) -> AcceleratorRow:
    row = tables.accelerator(gpu)
    assert row is not None, gpu
    return row


def _roofs(axes: Axes, here: Device) -> None:
    """One for each peak that differs, with its format and TFLOP/s."""
    bandwidth = here.memory_bandwidth_bytes_per_second
    peaks = {here.peak_flops_per_second.get(unit): (unit, line) for unit, line in ROOFS}
    for peak, (unit, line) in peaks.items():
        if peak is None:
            continue
        at = np.array([INTENSITIES[0], peak / bandwidth, INTENSITIES[1]])
        reach = np.minimum(peak, at * bandwidth) / 1e12
        axes.plot(at, reach, line, color=style.MUTED, linewidth=1.2)
        axes.annotate(
            f"{unit} {peak / 1e12:,.0f}", (INTENSITIES[1], peak / 1e12), (-1, 2),
            textcoords="offset points", ha="right", fontsize=7, color=style.INK,
        )  # fmt: skip


def _under(axes: Axes, points: Sequence[Attained]) -> None:
    for (colour, marker), kind in zip(MARKS, KINDS, strict=True):
        some = [each for each in points if each.kind == kind]
        at = np.linspace(0, len(some) - 1, min(UNDER, len(some))).astype(int)
        x, y = ([getattr(some[i], name) for i in at] for name in ("intensity", "flops_per_second"))
        axes.plot(x, np.array(y) / 1e12, marker, color=colour, markersize=3, label=kind)
