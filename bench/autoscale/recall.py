"""``python -m bench.autoscale.recall [--page FILE] [--results FILE]``: read the page back.

All replays of docs/autoscaling-replay.md take a day on two cores, and what is kept of them lies in
build/, which a fresh checkout has not. The page itself says what became of the others, to the
digits that it shows; with these a change of the controller takes half an hour anywhere ::

    python -m bench.autoscale.recall
    python -m bench.autoscale.page --again ours O2 --only ours O2

What the page does not say of a replay is NaN, and the aim of a trace is that with the usual start.
A page that is made of what was read back is the same, but for the last digits of ratios.
"""

from __future__ import annotations

import argparse
import math
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from itertools import takewhile
from pathlib import Path
from statistics import fmean

from bench.autoscale import cells, grid, kept
from bench.autoscale.cells import Cell
from bench.autoscale.circumstances import NOTHING
from bench.autoscale.grid import Case
from bench.autoscale.kept import RESULTS
from bench.autoscale.page import DOCS, OF_OURS, TEMPLATE
from bench.autoscale.rows import Row
from bench.autoscale.sizing import ATTAINMENT
from bench.autoscale.suite import O1, O2, OURS
from bench.autoscale.tuning import BEST_STATIC
from bench.files import BadInput, opened
from bench.programs import ends_on_bad_input

PAGE = DOCS / "autoscaling-replay.md"
UNKNOWN = math.nan
_CASE = re.compile(r"### (\S+), ([\d.]+) replicas at its busiest minute")
_STAGES = re.compile(r"Stages ([\d., ]+) requests/s")
_SPREAD = re.compile(r"([\d.]+) \(([\d.]+)\)")
Columns = list[str]


@ends_on_bad_input
def main() -> int:
    """Write what the page says where the page's program looks for results; 2 where some are."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.autoscale.recall",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--page", type=Path, default=PAGE, help="as it was written")
    parser.add_argument("--results", type=Path, default=RESULTS, help="lines of JSON to write")
    asked = parser.parse_args()
    if asked.results.exists():
        raise BadInput(f"{asked.results} is there: results are exact, and the page is not")
    with opened(asked.page) as file:
        text = file.read()
    found = replays(text)
    cells.write(asked.results, found)
    kept.write(asked.results.with_suffix(".rows.jsonl"), map(asdict, tables(text)))
    print(f"{asked.results}: {len(found)} replays, as {asked.page} says", file=sys.stderr)
    return 0


def replays(text: str) -> list[Cell]:
    """Of all cases that the page has, in its order."""
    found = [*_replayed(_section(text, "Results"), is_whole=False)]
    ours = {each.case.trace: each for each in found if each.name == OURS}
    found += _started(_section(text, "Other starts"), ours)
    found += _replayed(_section(text, "Whole days"), is_whole=True)
    timely = {
        case: fmean(each.timely_share for each in found if _is_ours(each, case))
        for case in grid.USUAL
    }
    found += _slower(_section(text, "The model wrong by 30 %"), timely)
    return found


def tables(text: str) -> Iterator[Row]:
    """Rows and tables that are no cells."""
    told = _section(text, "Rivals that have not seen the trace")
    for name, lines in _by_policy(told).items():
        if name != OURS:
            yield Row("borrowed", name, "\n".join(lines))
    protocol = _section(text, "llm-d's own protocol")
    for stages in _STAGES.finditer(protocol):
        key = f"llmd {stages[1].replace(' ', '')}"
        for name, lines in _by_policy(protocol[stages.end() :]).items():
            yield Row(key, name, "\n".join(lines))
    for name, heading in _headings().items():
        yield Row(name, OURS, "\n".join(_table(_section(text, heading))))


def _headings() -> dict[str, str]:
    """Of the sections that hold one table each, as the template has them."""
    template = TEMPLATE.read_text(encoding="utf-8")
    return {
        name: template[: template.index(f"<!-- {name.upper()} -->")].rpartition("\n## ")[2]
        .partition("\n")[0]
        for name in OF_OURS
    }  # fmt: skip


def _section(text: str, heading: str) -> str:
    """From its heading to the next one of its kind; BadInput where there is none."""
    begin = text.find(f"\n## {heading}\n")
    if begin < 0:
        raise BadInput(f"no section {heading!r}: this is no page of replays")
    return text[begin + 1 :].partition("\n## ")[0]


def _table(section: str) -> list[str]:
    """The lines of the first one."""
    lines = section[section.index("\n|") + 1 :].splitlines()
    return list(takewhile(lambda line: line.startswith("|"), lines))


def _columns(section: str) -> Iterator[Columns]:
    """Of the rows of the first table, without its head."""
    for line in _table(section)[2:]:
        yield [each.strip() for each in line.strip("|").split("|")]


def _by_policy(section: str) -> dict[str, list[str]]:
    """Lines of the first table."""
    found: dict[str, list[str]] = {}
    for line in _table(section)[2:]:
        found.setdefault(line.split("|")[1].strip(), []).append(line)
    return found


def _replayed(section: str, is_whole: bool) -> Iterator[Cell]:
    """Of a section of tables of all policies."""
    for heading in _CASE.finditer(section):
        case = Case(heading[1], float(heading[2]), is_whole=is_whole)
        told = section[heading.end() :]
        aim = _share(told.partition("Aim: ")[2].partition(" %")[0])
        for row in _columns(told):
            recovery = None if row[7] == "never" else float(row[7])
            yield Cell(
                case, row[0], _setting(row[1]), aim, _share(row[2]), float(row[3]), UNKNOWN,
                float(row[6]), recovery, float(row[8]), 1e-3 * float(row[9]),
            )  # fmt: skip


def _setting(told: str) -> dict[str, float | str]:
    """Of what :func:`bench.autoscale.document.setting` wrote."""
    pairs = (each.rsplit(" ", 1) for each in told.split(", ") if each)
    return {name: _number(value) for name, value in pairs}


def _number(value: str) -> float | str:
    try:
        return int(value) if value.isdecimal() else float(value)
    except ValueError:
        return value


def _started(section: str, ours: Mapping[str, Cell]) -> Iterator[Cell]:
    """By trace, what became of ``ours`` with the usual start."""
    for trace, start, *told in _columns(section):
        case = Case(trace, grid.PEAKS[trace], float(start))
        usual, aim = ours[trace], ours[trace].aim
        if case == usual.case:  # the others stand under Results, with more figures
            yield from _seeds(case, aim, told[0], told[1], usual)
            continue
        yield from _seeds(case, aim, told[0], told[1], None)
        yield _cell(case, BEST_STATIC, aim, _share(told[2]), told[3])
        if told[4] != NOTHING:
            yield _cell(case, told[4], aim, _share(told[5]), told[6])
        yield _cell(case, O2, aim, _share(told[7]), told[8])
        yield _cell(case, O1, aim, aim, told[9])


def _is_ours(cell: Cell, case: Case) -> bool:
    """By any seed."""
    return cell.name == OURS and replace(cell.case, seed=0) == case


def _slower(section: str, timely: Mapping[Case, float]) -> Iterator[Cell]:
    """The aim follows from what is lost of the ``timely`` share with a right model, what O1 takes
    from ours over it."""
    for trace, slowness, *told in _columns(section):
        right = Case(trace, grid.PEAKS[trace])
        case = replace(right, slowness=float(slowness))
        mean = _share(told[0].partition(" ")[0])
        aim = ATTAINMENT * mean / (timely[right] - _share(told[2]))
        yield from _seeds(case, aim, told[0], told[1], None)
        yield _cell(case, BEST_STATIC, aim, _share(told[5]), told[6])
        yield _cell(case, O1, aim, aim, float(told[1]) / float(told[3]))


def _seeds(case: Case, aim: float, shares: str, hours: str, first: Cell | None) -> Iterator[Cell]:
    """Of ours: two that have the mean and the least that are told; ``first`` is the one of seed 0
    where that is known."""
    spread = _SPREAD.fullmatch(shares)
    if spread is None:
        raise BadInput(f"{shares!r} is not a mean with the least of the seeds")
    mean, least = _share(spread[1]), _share(spread[2])
    zero = first or _cell(case, OURS, aim, least, hours)
    if first is None:
        yield zero
    yield replace(
        zero,
        case=replace(case, seed=grid.SEEDS[0]),
        attainment=max(2.0 * mean - zero.attainment, least),
        replica_hours=2.0 * float(hours) - zero.replica_hours,
    )


def _cell(case: Case, name: str, aim: float, attainment: float, hours: str | float) -> Cell:
    """Of which no more is told."""
    unknown = (UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN)
    return Cell(case, name, {}, aim, attainment, float(hours), *unknown)


def _share(percent: str) -> float:
    return float(percent) / 100.0


if __name__ == "__main__":
    sys.exit(main())
