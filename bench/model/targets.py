"""All that is scored: each measured table with its figures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from bench import tables as measured
from bench.calibrations import Calibrations
from bench.files import BadInput, check_folder
from bench.jobs import JOBS, shared
from bench.model import kernels, links, serving, training
from bench.model.outcome import Outcome, Target
from bench.tables import Row
from poolwise.tables import Tables

TARGETS = (training.TARGET, serving.TARGET, links.TARGET, kernels.TARGET)
WITH_JOBS = (training.TARGET, serving.TARGET)
"""Those whose rows are compared with one another."""


def readable(folder: Path) -> tuple[list[Target], dict[str, str]]:
    """Those whose tables are in ``folder``, and why each that is there cannot be read, if any.

    Raises :class:`BadInput` where none can be read.
    """
    found, unreadable = [], {}
    for target in present(folder):
        try:
            measured.read(folder, target.table)
        except BadInput as error:
            unreadable[target.table] = str(error)
        else:
            found.append(target)
    if not found:
        raise BadInput("; ".join(unreadable.values()))
    return found, unreadable


def without_rows(folder: Path, targets: Iterable[Target]) -> Iterator[str]:
    """A sentence for each of these tables that ends with its header: it adds to no score."""
    for target in targets:
        if not measured.read(folder, target.table):
            yield f"{folder}: {target.table} has no row below its header"


def present(folder: Path, targets: Iterable[Target] = TARGETS) -> list[Target]:
    """Those whose tables are in ``folder``; raises :class:`BadInput` where there are none."""
    check_folder(folder)
    found = [target for target in targets if measured.exists(folder, target.table)]
    if not found:
        wanted = ", ".join(f"{target.table}.csv[.gz]" for target in targets)
        raise BadInput(f"{folder}: has none of {wanted}")
    return found


def outcomes(
    folder: Path, tables: Tables, targets: Iterable[Target] = TARGETS
) -> Iterator[Outcome]:
    """Every figure of the tables that are in ``folder``, no row by constants it had a part in."""
    for target in present(folder, targets):
        constants = Calibrations.load(target.phases, tables)
        rows = measured.read(folder, target.table)
        yield from target.outcomes(rows, tables, constants.of)


def stated(folder: Path, targets: Iterable[Target] = TARGETS) -> list[Row]:
    """All rows of these tables."""
    there = present(folder, targets)
    return [row for target in there for row in measured.read(folder, target.table)]


def compared(
    folder: Path, tables: Tables, targets: Iterable[Target] = TARGETS
) -> Iterator[Outcome]:
    """Figures of jobs that several accelerators ran: all rows of a job by the same constants, that
    none of them had a part in (:mod:`bench.jobs`)."""
    for target in targets:
        if target in WITH_JOBS and measured.exists(folder, target.table):
            rows = shared(measured.read(folder, target.table))
            constants = Calibrations.load(target.phases, tables, JOBS).with_companions(rows)
            yield from target.outcomes(rows, tables, constants.of)
