"""Fit the kernels: ``python -m bench.fit.kernels --data DIR [--write]``.

Each operation is fitted by itself (``bench/fit/levels.py``). The spreads that ship are those of
rows that the fit did not see (``bench/fit/spreads.py``).
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from bench.accuracy import FOLDS, Vector, fold_of
from bench.fit.arguments import arguments
from bench.fit.kernel_constants import CONSTANTS
from bench.fit.levels import Levels, Values
from bench.fit.open_rows import open_rows, some
from bench.fit.rows import Behind, constant_row
from bench.fit.shipping import ship, ship_folds
from bench.fit.spreads import LeftOut, spreads, units
from bench.kernel_runs import KernelRun, kernel_runs
from bench.programs import ends_on_bad_input
from poolwise.model.efficiency import EVERY
from poolwise.model.kernels.constants import PHASE, TERMS, Level, places, term_of
from poolwise.model.kernels.precision import speeds
from poolwise.model.kernels.predicting import multiplied, precision_key, spread_term
from poolwise.tables import Tables, load
from poolwise.tables.efficiencies import EfficiencyRow

TABLE = "kernels_measured"
HEADER = """Constants of kernels: common values, and factors on them by level (a factor that is
not here is 1). Written by `python -m bench.fit.kernels --write`."""
SOURCE = "kernels_measured: aiconfigurator 095f58a"
VOICE = 40
"""Rows of a group beyond which it counts no more: a sweep is one configuration."""
NEGLIGIBLE = 0.02
"""Factors this close to 1 are left out of the table."""


class Fit:
    """One operation over some rows; fitted to all, or to those with a weight above 0."""

    def __init__(self, operation: str, runs: Sequence[KernelRun]) -> None:
        self.operation, self.runs = operation, runs
        self.places = [places(run.device, key(run), run.software) for run in runs]
        self.levels = Levels(
            CONSTANTS[operation],
            [{str(level): place for level, place in each.items()} for each in self.places],
        )
        self.speeds = [speeds(run.device, multiplied(run.kernel, run.precision)) for run in runs]
        self.measured: Vector = np.log([run.seconds for run in runs])
        of_group = Counter(run.group for run in runs)
        self.weights: Vector = np.array([min(1.0, VOICE / of_group[run.group]) for run in runs])

    def without(self, left_out: Vector, start: Vector | None = None) -> Vector:
        """Parameters from the rows that are not left out."""
        return self.levels.fit(
            self.predict, self.measured, np.where(left_out, 0.0, self.weights), start
        )

    def errors(self, parameters: Vector) -> Vector:
        """ln(predicted / measured) of all rows."""
        return self.predict(self.levels.values(parameters)) - self.measured

    def predict(self, values: Values) -> Vector:
        """ln(seconds) of all rows."""
        terms = TERMS[self.operation]
        columns = zip(*(values[term].tolist() for term in terms), strict=True)
        rows = zip(self.runs, self.speeds, columns, strict=True)
        return np.log(
            [
                run.kernel.seconds(speed, dict(zip(terms, row, strict=True)))
                for run, speed, row in rows
            ]
        )

    def rows(self, parameters: Vector, left_out: Vector) -> list[EfficiencyRow]:
        """Common values, and the factors that say anything."""
        kept = [
            (places, run.row)
            for places, run, out in zip(self.places, self.runs, left_out, strict=True)
            if not out
        ]
        known = self._deviations(parameters, left_out)
        found = []
        for parameter, value, spread in zip(
            self.levels.parameters, parameters.tolist(), known, strict=True
        ):
            if parameter.level is None:
                start = CONSTANTS[self.operation][parameter.term].start
                common = term_of(self.operation, parameter.term)
                behind = Behind.of(row for _, row in kept)
                mid = start * math.exp(value)
                found.append(_row(common, (EVERY, EVERY), mid, behind, spread))
                continue
            level, place = Level(parameter.level), parameter.key
            assert isinstance(place, tuple)
            if abs(value) <= NEGLIGIBLE:
                continue
            behind = Behind.of(row for places, row in kept if places.get(level) == place)
            if behind.count:
                term = term_of(self.operation, parameter.term, level)
                found.append(_row(term, place, math.exp(value), behind, spread))
        return found

    def _deviations(self, parameters: Vector, left_out: Vector) -> list[float]:
        """Of each parameter; a factor's is its own, without that of what it multiplies."""
        weights = np.where(left_out, 0.0, self.weights)
        groups = [run.group for run in self.runs]
        known = self.levels.covariance(self.predict, parameters, self.measured, weights, groups)
        deviations: list[float] = np.sqrt(np.diag(known)).tolist()
        return deviations


def key(run: KernelRun) -> str:
    """Format of a run's constants."""
    return precision_key(run.kernel, run.precision)


def _row(
    term: str, place: tuple[str, str], value: float, behind: Behind, spread: float
) -> EfficiencyRow:
    return constant_row((PHASE, term, *place), value, behind, spread, SOURCE)


def by_operation(runs: Iterable[KernelRun]) -> dict[str, list[KernelRun]]:
    """Runs of each operation that has any."""
    found: dict[str, list[KernelRun]] = {operation: [] for operation in CONSTANTS}
    for run in runs:
        found[run.kernel.operation].append(run)
    return {operation: kept for operation, kept in found.items() if kept}


def folds_of(runs: Sequence[KernelRun]) -> Vector:
    """The fold of each run."""
    return np.array([fold_of(run.group) for run in runs])


def left_out_errors(fit: Fit, labels: Vector, start: Vector) -> Vector:
    """Residual of each row from the fit without the rows of its label."""
    errors = np.zeros(len(fit.runs))
    for label in np.unique(labels):
        inside = labels == label
        errors[inside] = fit.errors(fit.without(inside, start))[inside]
    return errors


def spread_rows(fit: Fit, start: Vector) -> list[EfficiencyRow]:
    """How wide predictions of an operation are."""
    devices = [run.device for run in fit.runs]
    errors = LeftOut(
        left_out_errors(fit, folds_of(fit.runs), start),
        left_out_errors(fit, np.array(units(devices)), start),
        left_out_errors(fit, np.array([device.family for device in devices]), start),
    )
    print(f"{fit.operation}: {len(devices)} rows, {errors}", file=sys.stderr)
    term = spread_term(fit.operation)
    return [
        _row(term, (each.scope, EVERY), 1.0, each.behind, each.value)
        for each in spreads(devices, errors, [run.row for run in fit.runs])
    ]


def refit(runs: Sequence[KernelRun]) -> list[EfficiencyRow]:
    """All constants of the phase from these rows alone, with spreads of rows left out."""
    rows = []
    for operation, kept in by_operation(runs).items():
        fit = Fit(operation, kept)
        nobody = np.zeros(len(kept), dtype=bool)
        found = fit.without(nobody)
        rows += fit.rows(found, nobody) + spread_rows(fit, found)
    return rows


def without_folds(
    runs: Sequence[KernelRun], shipped: Sequence[EfficiencyRow]
) -> dict[int, list[EfficiencyRow]]:
    """Constants without each fold; the spreads stay, they are of rows left out already."""
    spreads = [row for row in shipped if row.term.endswith(".seconds")]
    found = {fold: list(spreads) for fold in range(FOLDS)}
    for operation, kept in by_operation(runs).items():
        fit = Fit(operation, kept)
        start, folds = fit.without(np.zeros(len(kept), dtype=bool)), folds_of(kept)
        for fold in found:
            parameters = fit.without(folds == fold, start)
            found[fold] += fit.rows(parameters, folds == fold)
    return found


def measured(folder: Path, tables: Tables) -> list[KernelRun]:
    """All rows that can be predicted."""
    rows = open_rows(folder, TABLE)
    return some(kernel_runs(rows, tables), folder, TABLE)


@ends_on_bad_input
def main() -> None:
    """Fit, report, and write where asked."""
    asked = arguments(__doc__ or "")
    runs = measured(asked.data, load())
    shipped = refit(runs)
    if asked.write:
        ship(PHASE, HEADER, shipped)
        rows = {run.row["row_id"]: fold_of(run.group) for run in runs}
        ship_folds(PHASE, without_folds(runs, shipped), rows)


if __name__ == "__main__":
    sys.exit(main())
