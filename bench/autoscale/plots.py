"""Pictures of docs/autoscaling-replay.md."""

from __future__ import annotations

import math
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bench.autoscale.cells import Cell, Standing
from bench.autoscale.suite import NAMES, ORACLES, OURS
from bench.pictures import style

COLUMNS = 2
PANEL_INCHES = 2.6
LEAST_MISSED_PERCENT = 0.01
"""Where a logarithmic axis ends; nothing missed is drawn there."""
MOST_COST = 4.0
"""Over the oracle; what is dearer is drawn at the edge."""
TOLD = {OURS: style.BLUE, "O1": style.GREEN, "O2": style.TEAL, "best_static": style.ORANGE}


def pareto(found: Sequence[Standing]) -> Figure:
    """Requests that missed a target against cost, a panel for each trace."""
    rows = math.ceil(len(found) / COLUMNS)
    drawn = style.figure(PANEL_INCHES * rows + 0.3)
    panels = drawn.subplots(rows, COLUMNS, squeeze=False).flatten().tolist()
    for axes, standing in zip(panels, found, strict=False):
        _panel(axes, standing)
    for axes in panels[len(found) :]:
        axes.set_axis_off()
    style.note(drawn, "Cost: replica-hours over those of O1. Line: the aim. Lower left is better.")
    return drawn


def _panel(axes: Axes, standing: Standing) -> None:
    style.gridded(axes)
    for each in standing.cells:
        at = min(each.replica_hours / standing.unit_hours, MOST_COST), _missed_percent(each)
        colour = TOLD.get(each.name, style.GREY)
        axes.plot(*at, "o", color=colour, markersize=6 if each.name in TOLD else 4)
        axes.annotate(each.name, at, (3, 3), textcoords="offset points", fontsize=6, color=colour)
    axes.axhline(100.0 * (1.0 - standing.cells[0].aim), color=style.MUTED, linewidth=0.8)
    axes.set_yscale("log")
    axes.set_ylim(LEAST_MISSED_PERCENT / 1.5, 150.0)
    axes.set_xlabel("cost")
    axes.set_ylabel("missed, %")
    axes.set_title(standing.case.trace)


def _missed_percent(each: Cell) -> float:
    return max(100.0 * (1.0 - each.attainment), LEAST_MISSED_PERCENT)


def calm(found: Sequence[Standing]) -> Figure:
    """Direction changes per hour and seconds to recover, by policy, the worst of the traces."""
    drawn = style.figure(3.6)
    left, right = drawn.subplots(1, 2, sharey=True)
    names = [n for n in reversed(NAMES) if n not in ORACLES and _of(found, n)]
    _bars(left, names, [max(c.direction_changes_per_hour for c in _of(found, n)) for n in names])
    _bars(right, names, [max(_recovery(each) for each in _of(found, n)) for n in names])
    left.set_title("Direction changes per hour")
    right.set_title("Seconds back to the targets")
    right.set_xlim(0.0, NEVER_SECONDS)
    style.note(drawn, f"The worst of the traces; {NEVER_SECONDS:g} s: not until the end.")
    return drawn


NEVER_SECONDS = 1200.0


def _recovery(each: Cell) -> float:
    return NEVER_SECONDS if each.seconds_to_recover is None else each.seconds_to_recover


def _bars(axes: Axes, names: Sequence[str], values: Sequence[float]) -> None:
    style.gridded(axes)
    axes.barh(
        range(len(names)), values, color=[TOLD.get(name, style.GREY) for name in names], height=0.7
    )
    axes.set_yticks(range(len(names)), list(names), fontsize=7.5)


def _of(found: Sequence[Standing], name: str) -> list[Cell]:
    return [each for standing in found if (each := standing.of(name)) is not None]
