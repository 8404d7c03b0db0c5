"""``python -m bench.autoscale.swings [--data DIR]``: what a large fleet bears more.

Each trace of the page is scaled to several sizes, and the fewest replicas that attain the aim are
found for each. Printed is the slope of ln(busiest minute / replicas) on 1 / sqrt(busiest minute),
both in full replicas, beside the root of the index of dispersion of the arrivals: what
:data:`poolwise.plan.scaling.swings.SWING` is held against.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np

from bench.autoscale import grid, suite
from bench.autoscale.scene import Scene
from bench.autoscale.tuning import BEST_STATIC
from bench.programs import ends_on_bad_input
from bench.tables import DEFAULT_FOLDER
from poolwise.plan.scaling.swings import Dispersion

PEAKS = (2.5, 5.0, 10.0, 20.0)

Fleet = tuple[float, float]
"""Replicas' worth of the busiest minute, and the fewest replicas that attained the aim."""


@ends_on_bad_input
def main() -> None:
    """Each trace with its fleets and its slope."""
    parser = argparse.ArgumentParser(prog="python -m bench.autoscale.swings", description=__doc__)
    parser.add_argument("--data", type=Path, default=DEFAULT_FOLDER)
    data: Path = parser.parse_args().data
    for case in grid.USUAL:
        found = list(fleets(data, case))
        told = ", ".join(f"{peak:g}: {replicas:g}" for peak, replicas in found)
        print(
            f"{case.trace}: slope {slope(found):.2f}, root of dispersion "
            f"{dispersion(grid.scene_of(data, case)).root:.1f} (busiest minute: replicas {told})",
            flush=True,
        )


def fleets(data: Path, case: grid.Case) -> Iterator[Fleet]:
    """Of each size, the smallest first."""
    for peak in PEAKS:
        scene = grid.scene_of(data, replace(case, peak_replicas=peak))
        best = suite.result(scene, BEST_STATIC)
        yield peak, float(best.setting["replicas"])


def dispersion(scene: Scene) -> Dispersion:
    """Of the arrivals, as the controller counts them from scrape to scrape."""
    seconds = scene.scraping.interval_seconds
    edges = np.arange(0.0, scene.trace.seconds, seconds)
    counts, _ = np.histogram(scene.trace.requests.arrival_seconds, edges)
    found = Dispersion()
    for before, arrivals in pairwise(counts.tolist()):
        found = found.after(before, arrivals, seconds)
    return found


def slope(found: Sequence[Fleet]) -> float:
    """By least squares; positive where small fleets bear less."""
    peaks, replicas = (np.array(each) for each in zip(*found, strict=True))
    root, edge = 1.0 / np.sqrt(peaks), np.log(peaks / replicas)
    return float(-np.polyfit(root, edge, 1)[0])


if __name__ == "__main__":
    sys.exit(main())
