"""Pictures of docs/placement-replay.md."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bench.pictures import style
from bench.placement.cells import Cell
from bench.placement.report import ORDER, Found

PANELS = (("T1", 0.5), ("T1", 0.95), ("T3", 0.95))
HEIGHT_INCHES = 4.2


def completions(found: Found) -> Figure:
    """Mean JCT by policy over what no schedule beats, the median of the seeds and their range."""
    drawn = style.figure(HEIGHT_INCHES)
    for axes, (truth, load) in zip(drawn.subplots(1, len(PANELS)), PANELS, strict=True):
        of_panel = [cell for cell in found.cells if (cell.truth, cell.load) == (truth, load)]
        _panel(axes, [cell for cell in of_panel if cell.pools in ("gavel-108", "modern-S")])
        axes.set_title(f"{truth}, load {load}")
    style.note(drawn, "Mean time from arrival to end over the lower bound U1; lines: all seeds.")
    return drawn


def _panel(axes: Axes, cells: Sequence[Cell]) -> None:
    style.gridded(axes)
    bound = {cell.seed: cell.mean_jct_seconds or 0.0 for cell in cells if cell.policy == "U1"}
    names = [name for name in ORDER if not name.startswith("U") and _of(cells, name, bound)]
    for at, name in enumerate(reversed(names)):
        values = _of(cells, name, bound)
        colour = style.BLUE if name.startswith("ours") else style.GREY
        axes.barh(at, statistics.median(values) - 1.0, left=1.0, color=colour, height=0.7)
        axes.plot([min(values), max(values)], [at, at], color=style.INK, linewidth=1.0)
    axes.set_yticks(range(len(names)), list(reversed(names)))
    if names:
        axes.set_xlim(left=1.0)
    axes.set_xlabel("mean JCT / U1")


def _of(cells: Sequence[Cell], name: str, bound: dict[int, float]) -> list[float]:
    return [
        (cell.mean_jct_seconds or 0.0) / bound[cell.seed]
        for cell in cells
        if cell.policy == name and cell.seed in bound
    ]


def choices(found: Found) -> Figure:
    """Regret at first sight and after five observations, and what is allocated of openb."""
    drawn = style.figure(2.6)
    left, right = drawn.subplots(1, 2)
    for axes in (left, right):
        style.gridded(axes)
    for at, (_, regrets) in enumerate(sorted(found.regrets.items())):
        first = statistics.median(100 * each.first for each in regrets)
        later = statistics.median(100 * each.after5 for each in regrets)
        left.bar(at - 0.2, first, 0.36, color=style.GREY, label="first sight" if not at else None)
        left.bar(at + 0.2, later, 0.36, color=style.BLUE, label="after five" if not at else None)
    left.set_xticks(range(len(found.regrets)), sorted(found.regrets))
    left.set_ylabel("speed lost, %")
    left.set_title("Regret of choices")
    if found.regrets:
        left.legend()
    _openb(right, [cell for cell in found.cells if cell.truth == "openb"])
    return drawn


def _openb(axes: Axes, cells: Sequence[Cell]) -> None:
    variants = sorted({cell.workload for cell in cells})
    for at, variant in enumerate(variants):
        for shift, policy, colour in ((-0.2, "B7", style.GREY), (0.2, "ours", style.BLUE)):
            values = [
                cell.allocation_percent or 0.0
                for cell in cells
                if (cell.workload, cell.policy) == (variant, policy)
            ]
            label = {"B7": "FGD", "ours": "ours"}[policy] if not at else None
            if values:
                axes.bar(at + shift, statistics.mean(values), 0.36, color=colour, label=label)
    axes.set_xticks(range(len(variants)), variants)
    axes.set_ylim(90, 102)
    axes.set_ylabel("allocated, %")
    axes.set_title("openb at 130 % pressure")
    if variants:
        axes.legend(loc="upper left", ncols=2)
