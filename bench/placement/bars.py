"""What is aimed at, and what came of it."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from bench.placement.cells import Cell
from bench.placement.report import FASTEST, TOLD, Found, ratio, ratio_to_best

BUSY, QUIET = 0.95, 0.5


@dataclass(frozen=True, slots=True)
class Bar:
    """One aim."""

    name: str
    value: float
    aim: float
    is_met: bool


def bars(found: Found) -> Iterator[Bar]:
    """Those that the results tell of."""
    busy = ratio_to_best(_cells(found, "T1", BUSY))
    if busy:
        yield _most("mean JCT / best of B1-B6, T1, load 0.95, median", statistics.median(busy), 0.6)
    quiet = ratio(_cells(found, "T1", QUIET), FASTEST)
    if quiet:
        yield _most("mean JCT / B5, T1, load 0.5, worst seed", max(quiet), 1.02)
    for name, aim in (("gavel", 0.03), ("sia", 0.05)):
        if found.regrets[name]:
            later = statistics.median(each.after5 for each in found.regrets[name])
            yield _most(f"regret of choices after five, {name}", later, aim)
    if found.milp is not None:
        share = found.milp.within_2_percent / found.milp.instances
        yield _least("small instances within 2 % of the optimum", share, 0.95)
    for variant in sorted({cell.workload for cell in found.cells if cell.truth == "openb"}):
        yield _least(
            f"allocated less FGD's, points, openb {variant}", _points(found, variant), -0.5
        )
    bent = ratio(_cells(found, "T3", BUSY), TOLD)
    if bent:
        yield _most("mean JCT / told the hidden errors, T3, median", statistics.median(bent), 1.1)


def _most(name: str, value: float, aim: float) -> Bar:
    return Bar(name, value, aim, value <= aim)


def _least(name: str, value: float, aim: float) -> Bar:
    return Bar(name, value, aim, value >= aim)


def _cells(found: Found, truth: str, load: float) -> list[Cell]:
    return [
        cell
        for cell in found.cells
        if (cell.truth, cell.load) == (truth, load) and cell.pools in ("gavel-108", "modern-S")
    ]


def _points(found: Found, variant: str) -> float:
    """Mean over seeds of ours less FGD's."""
    of_variant = [cell for cell in found.cells if (cell.truth, cell.workload) == ("openb", variant)]
    ours, fgd = (_mean(of_variant, policy) for policy in ("ours", "B7"))
    return ours - fgd


def _mean(cells: Iterable[Cell], policy: str) -> float:
    return statistics.mean(
        cell.allocation_percent or 0.0 for cell in cells if cell.policy == policy
    )
