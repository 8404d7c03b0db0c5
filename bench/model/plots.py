"""Pictures of docs/accuracy.md: predicted against measured, error by accelerator, rooflines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bench.model.outcome import Outcome, scored
from bench.pictures import style

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
