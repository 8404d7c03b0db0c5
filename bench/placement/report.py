"""What the replays came to: the JSON document, and tables for people."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from bench.placement.assignments import Score
from bench.placement.cells import BESIDES, Cell
from bench.placement.regret import Regret
from bench.placement.suite import Result

ORDER = (
    "ours",
    "ours*",
    "B0",
    "B1",
    "B2",
    "B3",
    "B4",
    "B4+",
    "B5",
    "B6",
    "B7",
    "B8",
    "B9",
    "U1",
    "U2",
)
RIVALS = ("B1", "B2", "B3", "B4", "B5", "B6")
"""Those that the bars compare with: what a cluster runs today, without a solver."""
FASTEST, TOLD = "B5", "ours*"
Group = tuple[str, str, str, float]
"""Truth, workload, pools, load."""


@dataclass(slots=True)
class Found:
    """Results as they come."""

    cells: list[Cell] = field(default_factory=list)
    regrets: defaultdict[str, list[Regret]] = field(default_factory=lambda: defaultdict(list))
    milp: Score | None = None
    missing: set[str] = field(default_factory=set)
    unusable: set[str] = field(default_factory=set)

    def add(self, result: Result) -> None:
        """Takes one in."""
        if result.cell is not None:
            self.cells.append(result.cell)
        if result.regret is not None:
            name, regret = result.regret
            self.regrets[name].append(regret)
        self.milp = result.milp or self.milp
        if result.missing:
            (self.unusable if result.is_unusable else self.missing).add(result.missing)


def document(found: Found) -> dict[str, Any]:
    """As ``--json`` prints it. Regrets are shares of the best speed, the median of the seeds."""
    milp = found.milp
    return {
        "cells": [
            asdict(each) for each in sorted(found.cells, key=_order) if each.policy not in BESIDES
        ],
        "regret": {
            name: {
                "first": statistics.median(each.first for each in regrets),
                "after5": statistics.median(each.after5 for each in regrets),
            }
            for name, regrets in sorted(found.regrets.items())
        },
        "milp": {
            "instances": milp.instances if milp else 0,
            "within_2_percent": milp.within_2_percent if milp else 0,
        },
    }


def text(found: Found) -> str:
    """Tables in Markdown, the cells that are lost at the end of each."""
    parts = [_group(group, cells) for group, cells in _groups(found.cells) if group[0] != "openb"]
    parts += [_openb(group, cells) for group, cells in _groups(found.cells) if group[0] == "openb"]
    return "\n\n".join([*parts, _regrets(found), _milp(found.milp)])


def ratio(cells: Iterable[Cell], other: str) -> list[float]:
    """Mean JCT of ``ours`` over that of another policy, seed by seed."""
    by_policy = _by_policy(cells)
    ours, theirs = by_policy.get("ours", {}), by_policy.get(other, {})
    return [_jct(ours[seed]) / _jct(theirs[seed]) for seed in sorted(ours.keys() & theirs.keys())]


def ratio_to_best(cells: Iterable[Cell]) -> list[float]:
    """Of ``ours`` over the best of B1 to B6 on that very seed."""
    by_policy = _by_policy(cells)
    ours = by_policy.get("ours", {})
    found = []
    for seed, cell in sorted(ours.items()):
        rivals = [_jct(by_policy[name][seed]) for name in RIVALS if seed in by_policy.get(name, {})]
        if rivals:
            found.append(_jct(cell) / min(rivals))
    return found


def _group(group: Group, cells: list[Cell]) -> str:
    truth, workload, pools, load = group
    lines = [
        f"## {truth} {workload} on {pools}, load {load}",
        "",
        "| policy (seeds) | mean JCT h | p99 h | makespan h | GPU-h | $ | allocated % | ours/it |",
        "|---|---|---|---|---|---|---|---|",
    ]
    lines += [_line(name, each, cells) for name, each in _named(cells)]
    best = ratio_to_best(cells)
    if best:
        lines += ["", f"ours / best of B1-B6: {_spread(best)}"]
    return "\n".join([*lines, "", *_lost(cells)])


def _line(name: str, each: list[Cell], cells: list[Cell]) -> str:
    figures = [
        _median([_hours(cell.mean_jct_seconds) for cell in each], 2),
        _median([_hours(cell.p99_jct_seconds) for cell in each], 1),
        _median([_hours(cell.makespan_seconds) for cell in each], 0),
        _median([cell.gpu_hours for cell in each], 0),
        _median([cell.cost for cell in each], 0),
        _median([cell.allocation_percent for cell in each], 1),
        _spread(ratio(cells, name)) if name != "ours" else "",
    ]
    return f"| {name} ({len(each)}) | " + " | ".join(figures) + " |"


def _lost(cells: list[Cell]) -> Iterator[str]:
    """Seeds in which a rival has the lower mean JCT."""
    by_policy = _by_policy(cells)
    for name in ORDER[1:]:
        if name.startswith("U") or name == TOLD:
            continue
        for seed, theirs in sorted(by_policy.get(name, {}).items()):
            ours = by_policy.get("ours", {}).get(seed)
            if ours is not None and _jct(ours) > _jct(theirs):
                worse = 100 * (_jct(ours) / _jct(theirs) - 1)
                yield f"- lost to {name}, seed {seed}: {worse:.1f} % longer mean JCT"


def _openb(group: Group, cells: list[Cell]) -> str:
    lines = [f"## openb {group[1]}, whole accelerators, {100 * group[3]:.0f} % asked for", ""]
    lines += ["| policy | allocated % |", "|---|---|"]
    for name, each in _named(cells):
        lines.append(f"| {name} | {_spread([cell.allocation_percent or 0.0 for cell in each])} |")
    return "\n".join(lines)


def _regrets(found: Found) -> str:
    lines = ["## Regret of choices", "", "| truth | first sight | after five |", "|---|---|---|"]
    for name, regrets in sorted(found.regrets.items()):
        first, later = ([100 * getattr(each, when) for each in regrets] for when in _WHEN)
        lines.append(f"| {name} | {_spread(first)} % | {_spread(later)} % |")
    return "\n".join(lines)


_WHEN = ("first", "after5")


def _milp(score: Score | None) -> str:
    if score is None:
        return ""
    above = f"the relaxation is {100 * score.relaxed_gap:.1f} % above it"
    return (
        f"## Small instances\n\nWithin 2 % of the exact optimum: {score.within_2_percent} of"
        f" {score.instances} (greedy alone {score.greedy_within_2_percent}); worst"
        f" {100 * score.worst:.2f} % of it; {above}."
    )


def _groups(cells: Iterable[Cell]) -> list[tuple[Group, list[Cell]]]:
    found: defaultdict[Group, list[Cell]] = defaultdict(list)
    for each in sorted(cells, key=_order):
        found[each.truth, each.workload, each.pools, each.load].append(each)
    return sorted(found.items())


def _named(cells: Iterable[Cell]) -> list[tuple[str, list[Cell]]]:
    found: defaultdict[str, list[Cell]] = defaultdict(list)
    for each in cells:
        found[each.policy].append(each)
    return sorted(found.items(), key=lambda item: ORDER.index(item[0]))


def _by_policy(cells: Iterable[Cell]) -> dict[str, dict[int, Cell]]:
    found: defaultdict[str, dict[int, Cell]] = defaultdict(dict)
    for each in cells:
        found[each.policy][each.seed] = each
    return dict(found)


def _order(cell: Cell) -> tuple[str, str, str, float, int, int]:
    policy = ORDER.index(cell.policy)
    return cell.truth, cell.workload, cell.pools, cell.load, policy, cell.seed


def _jct(cell: Cell) -> float:
    return math.nan if cell.mean_jct_seconds is None else cell.mean_jct_seconds


def _hours(seconds: float | None) -> float | None:
    return None if seconds is None else seconds / 3600.0


def _median(values: Iterable[float | None], digits: int) -> str:
    known = [value for value in values if value is not None]
    return f"{statistics.median(known):,.{digits}f}" if known else ""


def _spread(values: list[float]) -> str:
    """Median, and the range of the seeds."""
    if not values:
        return ""
    return f"{statistics.median(values):.3f} ({min(values):.3f}-{max(values):.3f})"
