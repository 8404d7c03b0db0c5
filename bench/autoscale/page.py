"""``python -m bench.autoscale.page --data DIR [--results FILE]``: write docs/autoscaling-replay.md.

Replays what ``--results`` does not hold yet, which takes hours, and adds it there line by line;
then the page is written of all that it holds. A change of the controller takes
``--again ours O2 --only ours O2``: their rows anew, and nothing that is missing of others.
``--only`` without a name writes the page of what is there. On a machine that has no results,
:mod:`bench.autoscale.recall` takes what the page says of the others.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import ModuleType

from bench.autoscale import (
    beginnings,
    between,
    borrowed,
    cells,
    circumstances,
    courses,
    document,
    equal_cost,
    grid,
    hours,
    llmd,
    looks,
    others,
    plots,
    shifts,
    steps,
    strangers,
    suite,
)
from bench.autoscale.cells import Cell, Standing, cell, read, standings
from bench.autoscale.kept import RESULTS
from bench.autoscale.numbers import count
from bench.autoscale.policies.laws import LAWS
from bench.autoscale.rows import Rows
from bench.files import BadInput
from bench.pictures import style
from bench.programs import ends_on_bad_input
from bench.tables import DEFAULT_FOLDER

DOCS = Path(__file__).resolve().parents[2] / "docs"
PICTURES = DOCS / "pictures" / "autoscaling"
TEMPLATE = Path(__file__).with_name("page.md")
EPISODES = 6
ORDERS = 2
NOT_YET = "Not replayed yet."
OF_OURS = {
    "steps": steps,
    "hours": hours,
    "strangers": strangers,
    "beginnings": beginnings,
    "courses": courses,
    "looks": looks,
    "shifts": shifts,
    "others": others,
    "between": between,
    "equal_cost": equal_cost,
}
"""Programs that tell of ours in one table, by its place in the template."""


@ends_on_bad_input
def main() -> None:
    """Run what is missing and write the page."""
    parser = argparse.ArgumentParser(prog="python -m bench.autoscale.page", description=__doc__)
    parser.add_argument("--data", type=Path, default=DEFAULT_FOLDER, help="folder of the traces")
    parser.add_argument("--results", type=Path, default=RESULTS, help="lines of JSON")
    parser.add_argument("--processes", type=count, default=suite.PROCESSES)
    parser.add_argument("--again", nargs="*", default=(), choices=suite.NAMES, help="run anew")
    parser.add_argument("--only", nargs="*", choices=suite.NAMES, help="replay nobody else")
    asked = parser.parse_args()
    rows = Rows(asked.results.with_suffix(".rows.jsonl"), asked.only)
    if asked.only != []:
        _check(asked.data)
    elif not read(asked.results):
        raise BadInput(f"{asked.results}: no replays; bench.autoscale.recall reads the page's back")
    if asked.again:
        cells.write(asked.results, [c for c in read(asked.results) if c.name not in asked.again])
        rows.forget(asked.again)
    for case, names in grid.everything():
        named = names if asked.only is None else [each for each in names if each in asked.only]
        _run(asked.data, asked.results, case, named, asked.processes)
    tables = {
        f"<!-- {name.upper()} -->": rows.found(
            name, suite.OURS, partial(_told, program, asked.data, asked.processes)
        )
        or NOT_YET
        for name, program in OF_OURS.items()
    }
    tables["<!-- BORROWED -->"] = _borrowed(asked.data, asked.results, rows, asked.processes)
    tables["<!-- LLMD -->"] = _episodes(rows)
    write(read(asked.results), tables)


def _told(program: ModuleType, data: Path, processes: int) -> str:
    """The table of one of :data:`OF_OURS`, replayed."""
    text: str = program.text(program.run(data, processes))
    return text


def _check(data: Path) -> None:
    """Before rows are forgotten and hours go into others."""
    for name in sorted({case.trace for case, _ in grid.everything()}):
        grid.path_of(data, name)


def _borrowed(data: Path, results: Path, rows: Rows, processes: int) -> str:
    """Rivals with settings of other traces."""
    there = borrowed.usual(read(results))

    def replayed(name: str) -> str:
        return borrowed.line(borrowed.found(data, there, name, processes))

    if len(there) < len(grid.USUAL):
        return NOT_YET
    lines = (rows.found("borrowed", name, partial(replayed, name)) for name in LAWS)
    return borrowed.text(there, [each for each in lines if each])


def _episodes(rows: Rows) -> str:
    """llm-d's protocol: their order of the stages, and others."""
    orders = [llmd.STAGES_PER_SECOND, *llmd.permuted(llmd.STAGES_PER_SECOND, ORDERS, 0)]
    return "\n\n".join(llmd.table(each, _replayed(rows, each)) for each in orders)


def _replayed(rows: Rows, stages: Sequence[float]) -> Iterator[str]:
    key = f"llmd {','.join(f'{rate:g}' for rate in stages)}"
    for name in (*llmd.POLICIES, llmd.O1):
        make = partial(llmd.scored_one, name, stages, range(EPISODES))
        text = rows.found(key, name, partial(_row, make))
        if text:
            yield text


def _row(make: Callable[[], llmd.Scored]) -> str:
    return llmd.row(make())


def _run(data: Path, results: Path, case: grid.Case, names: Sequence[str], processes: int) -> None:
    there = {each.name for each in read(results) if each.case == case}
    missing = [each for each in names if each not in there]
    if not missing:
        return
    found = grid.scene_of(data, case)
    for done in suite.run(found, missing, processes):
        cells.append(results, cell(found, case, done))


def write(replayed: Sequence[Cell], tables: Mapping[str, str]) -> None:
    """The page and its pictures; ``tables`` by their place in the template."""
    there = {each.case: each for each in standings(replayed)}
    found = [there[case] for case in grid.USUAL if case in there]
    style.save(PICTURES / "pareto.svg", plots.pareto(found), "Missed targets against cost by trace")
    style.save(PICTURES / "calm.svg", plots.calm(found), "Direction changes and recovery by policy")
    text = TEMPLATE.read_text(encoding="utf-8")
    text = text.replace("<!-- STANDINGS -->", _words(found))
    text = text.replace("<!-- RESULTS -->", "\n\n".join("\n".join(_table(s)) for s in found))
    text = text.replace("<!-- STARTS -->", circumstances.starts(replayed))
    text = text.replace("<!-- SLOWNESS -->", circumstances.slowness(replayed))
    days = ["\n".join(_table(there[case])) for case in grid.DAYS if case in there]
    text = text.replace("<!-- DAYS -->", "\n\n".join(days) or NOT_YET)
    for place, table in tables.items():
        text = text.replace(place, table)
    (DOCS / "autoscaling-replay.md").write_text(text, encoding="utf-8")


def _words(found: Sequence[Standing]) -> str:
    return "\n".join(f"- {each.case.trace}: {each.words()}" for each in found)


def _table(standing: Standing) -> Iterator[str]:
    case = standing.case
    yield f"### {case.trace}, {case.peak_replicas:g} replicas at its busiest minute"
    yield ""
    yield f"Aim: {100 * standing.cells[0].aim:.2f} %."
    yield ""
    yield (
        "| policy | setting | attainment % | replica-h | over the best rival at the aim | over O1 "
        "| changes/h | recovery s | p99 TTFT s | p99 TPOT ms |"
    )
    yield "|---|---|---|---|---|---|---|---|---|---|"
    for each in sorted(standing.cells, key=lambda each: suite.NAMES.index(each.name)):
        yield _line(standing, each)


def _line(standing: Standing, each: Cell) -> str:
    rival, oracle = standing.best_rival, standing.of(suite.O1)
    recovery = each.seconds_to_recover
    values = (
        each.name,
        document.setting(each.setting),
        f"{100 * each.attainment:.2f}",
        f"{each.replica_hours:.2f}",
        f"{each.replica_hours / rival.replica_hours:.2f}" if rival and each.is_good else "",
        f"{each.replica_hours / oracle.replica_hours:.2f}" if oracle else "",
        f"{each.direction_changes_per_hour:.1f}",
        "never" if recovery is None else f"{recovery:.0f}",
        f"{each.p99_ttft_seconds:.2f}",
        f"{1e3 * each.p99_tpot_seconds:.0f}",
    )
    return f"| {' | '.join(values)} |"


if __name__ == "__main__":
    sys.exit(main())
