"""Accuracy on what the fit has never seen: each accelerator and each model left out in turn.

Constants are fitted again without the unit, with the same program that made the shipped ones, and
predict the unit's rows. Figures are over all rows, and medians over units, since a few accelerators
have most of the rows.

Two accelerators are compared twice, each time by one set of constants for both: without either, as
two that are both new, and without the one, as a new one beside a known one (whose row had a part in
the fit). By each one's own refit, which has seen the other, what they truly differ by would come
back reversed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from statistics import median
from typing import Any, NoReturn

from bench import tables as measured
from bench.attempts import attempt
from bench.fit import residuals
from bench.fit.residual_data import always
from bench.jobs import job_of, shared
from bench.model.choice import choices, decided, serving_jobs, training_jobs
from bench.model.outcome import Outcome, Target, scored
from bench.model.scores import by_name
from bench.model.targets import TARGETS, WITH_JOBS
from bench.rivals.comparison import by_row, compare, predictions
from bench.tables import Row
from poolwise.errors import InvalidInput
from poolwise.model.efficiency import Calibration
from poolwise.tables import Tables, load

UNITS = {"accelerator": "gpu", "model": "model"}
"""What is left out, and the column that names it."""


@dataclass(frozen=True, slots=True)
class _Task:
    """One refit; targets go by their index, since processes share nothing."""

    folder: Path
    target: int
    column: str
    units: tuple[str, ...]


def leave_one_out(folder: Path, targets: Collection[Target] = TARGETS) -> dict[str, Any]:
    """Scores by kind of unit, and beside a rival that has no run of the accelerator either;
    ``folder`` must hold rows of the open data only."""
    found: dict[str, list[Unit]] = {kind: [] for kind in UNITS}
    kinds = {column: kind for kind, column in UNITS.items()}
    tasks, pairs = list(_tasks(folder, targets)), list(_pairs(folder, targets))
    with ProcessPoolExecutor() as pool:
        for task, unit in zip(tasks, pool.map(_held_out, tasks), strict=True):
            found[kinds[task.column]].append(unit)
        compared = choices(*pool.map(_held_out_formulas, pairs))
    summaries: dict[str, Any] = {kind: _summary(units) for kind, units in found.items()}
    summaries["accelerator"]["choice"] = compared
    summaries["accelerator"]["choice_beside_known"] = beside_known(found["accelerator"])
    summaries["against_aiconfigurator"] = _against_rival(found["accelerator"])
    return summaries


def left_out(folder: Path, target: Target, kind: str, workers: int | None = None) -> list[Unit]:
    """Of one table and one kind of unit alone."""
    tasks = [
        each
        for each in _tasks_of(folder, TARGETS.index(target), load())
        if each.column == UNITS[kind]
    ]
    with ProcessPoolExecutor(workers) as pool:
        return list(pool.map(_held_out, tasks))


def _tasks(folder: Path, targets: Collection[Target]) -> Iterator[_Task]:
    tables = load()
    for index, target in enumerate(TARGETS):
        if target in targets and measured.exists(folder, target.table):
            yield from _tasks_of(folder, index, tables)


def _tasks_of(folder: Path, index: int, tables: Tables) -> Iterator[_Task]:
    """Units with a row that counts: to leave another out would be scored by nothing."""
    target, shipped = TARGETS[index], Calibration(tables.efficiencies)
    counted = scored(target.outcomes(_rows(folder, target.table), tables, lambda _: shipped))
    for column in UNITS.values():
        for unit in sorted({each.row.get(column, "") for each in counted} - {""}):
            yield _Task(folder, index, column, (unit,))


def _pairs(folder: Path, targets: Collection[Target]) -> Iterator[_Task]:
    """Accelerators that differ in a job that both ran."""
    tables = load()
    shipped = Calibration(tables.efficiencies)
    for index, target in enumerate(TARGETS):
        is_asked = target in WITH_JOBS and target in targets
        if is_asked and measured.exists(folder, target.table):
            rows = shared(_rows(folder, target.table))
            counted = scored(target.outcomes(rows, tables, lambda _: shipped))
            for pair in sorted(decided([*training_jobs(counted), *serving_jobs(counted)])):
                yield _Task(folder, index, UNITS["accelerator"], pair)


@cache
def _rows(folder: Path, table: str) -> list[Row]:
    """Once in each process, whatever number of units it leaves out."""
    return measured.read(folder, table)


@dataclass(frozen=True, slots=True)
class Unit:
    """An accelerator or model that had no part in what predicted it."""

    name: str
    outcomes: list[Outcome]
    beside: list[Outcome]
    """All rows of jobs that this accelerator ran and others too, by the formulas alone: what a
    residual knows of a job is how fast the other ran it."""


def _held_out(task: _Task) -> Unit:
    target, tables = TARGETS[task.target], load()
    rows = _rows(task.folder, target.table)
    found = attempt(partial(_learnt, task, rows, tables))
    if isinstance(found, str):
        unpredicted = target.outcomes(_inside(task, rows), tables, partial(_unfitted, found))
        return Unit(task.units[0], list(unpredicted), [])
    constants, learnt = found
    beside = _outcomes(task, _beside(task, rows), tables, constants)
    return Unit(task.units[0], _outcomes(task, _inside(task, rows), tables, learnt), beside)


def _learnt(task: _Task, rows: Sequence[Row], tables: Tables) -> tuple[Calibration, Calibration]:
    """Constants without the unit, and the same with residuals."""
    target, constants = TARGETS[task.target], _without(task, rows, tables)
    others = [row for row in rows if row[task.column] not in task.units]
    learnt = residuals.refit(target, others, tables, constants)
    return constants, constants.with_residuals(learnt)


def _unfitted(problem: str, _: Row) -> NoReturn:
    """What the rest is too little for: some constants need rows of several kinds."""
    raise InvalidInput("", f"what is left cannot be fitted: {problem}")


def _held_out_formulas(task: _Task) -> list[Outcome]:
    """Two accelerators that are both unknown share one residual, which cancels."""
    target, tables = TARGETS[task.target], load()
    rows = _rows(task.folder, target.table)
    constants = attempt(partial(_without, task, rows, tables))
    if isinstance(constants, str):
        return []
    return _outcomes(task, _inside(task, shared(rows)), tables, constants)


def _inside(task: _Task, rows: Iterable[Row]) -> list[Row]:
    return [row for row in rows if row[task.column] in task.units]


def _beside(task: _Task, rows: Sequence[Row]) -> list[Row]:
    """Of the jobs that the unit ran, if it is an accelerator."""
    if task.column != UNITS["accelerator"] or TARGETS[task.target] not in WITH_JOBS:
        return []
    ran = set(map(job_of, _inside(task, rows)))
    return [row for row in shared(rows) if job_of(row) in ran]


def _outcomes(
    task: _Task, rows: Iterable[Row], tables: Tables, constants: Calibration
) -> list[Outcome]:
    return list(TARGETS[task.target].outcomes(rows, tables, partial(always, constants)))


def beside_known(units: Iterable[Unit]) -> dict[str, dict[str, float | int | None]]:
    """Choices between each accelerator that was left out and each that was not: a pair counts
    twice, with the one and with the other new."""
    pairs = []
    for unit in units:
        for known in sorted({each.row["gpu"] for each in unit.beside} - {unit.name}):
            two = (unit.name, known)
            pairs.append([each for each in unit.beside if each.row["gpu"] in two])
    return choices(*pairs)


def _without(task: _Task, rows: Iterable[Row], tables: Tables) -> Calibration:
    target = TARGETS[task.target]
    others = [row for row in rows if row[task.column] not in task.units]
    fixed = [row for row in tables.efficiencies if row.phase not in target.phases]
    return Calibration([*fixed, *target.refit(others, tables)])


def _summary(units: Sequence[Unit]) -> dict[str, Any]:
    every = [each for unit in units for each in unit.outcomes]
    scores: dict[str, dict[str, Any]] = dict(by_name(every))
    by_unit: dict[str, dict[str, Any]] = {}
    for unit in units:
        for name, score in by_name(unit.outcomes).items():
            by_unit.setdefault(name, {})[unit.name] = {
                key: score[key] for key in ("predicted", "mdape", "coverage90")
            }
    for name, each in by_unit.items():
        medians = [score["mdape"] for score in each.values() if score["mdape"] is not None]
        scores[name]["mdape_median_of_units"] = round(median(medians), 3) if medians else None
    return {"scores": scores, "by_unit": by_unit}


def _against_rival(units: Sequence[Unit]) -> dict[str, Any]:
    """Both on the rows that both predict, by target and slice."""
    held = [each for unit in units for each in unit.outcomes]
    ours = by_row(
        (each.row["row_id"], each.score, each.predicted.mid if each.predicted else None)
        for each in held
    )
    rows = {each.row["row_id"]: each.row for each in held if "mode" in each.row}
    found = compare(ours, predictions(), rows.values())
    return {
        f"{target}, {value or 'all'}": each.as_dict() for (target, _, value), each in found.items()
    }
