"""Linear and mixed-integer programmes, solved by HiGHS.

Columns are added with their cost, rows with their bounds; every answer is that of one thread, so
that it is the same each time unless the limit of time cuts it short.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import highspy

GAP = 1e-6
"""Relative; a better answer by less is not looked for."""


@dataclass(slots=True)
class Programme:
    """Maximise the sum of value times column under rows of bounds, columns from 0 up."""

    values: list[float] = field(default_factory=list)
    most: list[float] = field(default_factory=list)
    """Upper bound of each column."""
    rows: list[tuple[float, float]] = field(default_factory=list)
    """Lower and upper bound of each row."""
    entries: list[dict[int, float]] = field(default_factory=list)
    """Of each column: coefficient by row."""

    def row(self, least: float = -math.inf, most: float = math.inf) -> int:
        """A new row's number."""
        self.rows.append((least, most))
        return len(self.rows) - 1

    def column(self, value: float, entries: Mapping[int, float], most: float = math.inf) -> int:
        """A new column's number."""
        self.values.append(value)
        self.most.append(most)
        self.entries.append(dict(entries))
        return len(self.values) - 1

    def add(self, row: int, column: int, coefficient: float) -> None:
        """An entry where both are there already."""
        self.entries[column][row] = float(coefficient)

    def relaxed(self) -> Solution:
        """Columns may be fractions: the duals of the rows are prices."""
        return _solved(self, None, None)

    def whole(self, seconds: float, start: Sequence[float] | None = None) -> Solution:
        """Columns are integers; the best that is found in so many seconds."""
        return _solved(self, seconds, start)


@dataclass(frozen=True, slots=True)
class Solution:
    """What HiGHS found."""

    columns: tuple[float, ...]
    """Empty where it found nothing."""
    duals: tuple[float, ...]
    """Gain of the objective per unit of each row's bound; of relaxed programmes only."""
    objective: float
    is_optimal: bool
    seconds: float
    """That it took."""


def _solved(programme: Programme, seconds: float | None, start: Sequence[float] | None) -> Solution:
    solver = highspy.Highs()  # type: ignore[no-untyped-call]
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("threads", 1)
    if seconds is not None:
        solver.setOptionValue("time_limit", max(seconds, 0.0))
        solver.setOptionValue("mip_rel_gap", GAP)
        solver.setOptionValue("mip_abs_gap", GAP)
    solver.passModel(_model(programme, is_whole=seconds is not None))
    if start is not None:
        given = highspy.HighsSolution()
        given.col_value = list(start)
        solver.setSolution(given)
    solver.run()
    found = solver.getSolution()
    is_usable = solver.getInfo().primal_solution_status == highspy.kSolutionStatusFeasible
    return Solution(
        columns=tuple(found.col_value) if is_usable else (),
        duals=tuple(found.row_dual) if is_usable else (),
        objective=solver.getObjectiveValue(),
        is_optimal=solver.getModelStatus() == highspy.HighsModelStatus.kOptimal,
        seconds=solver.getRunTime(),
    )


def _model(programme: Programme, is_whole: bool) -> highspy.HighsLp:
    model = highspy.HighsLp()
    count = len(programme.values)
    model.num_col_, model.num_row_ = count, len(programme.rows)
    model.sense_ = highspy.ObjSense.kMaximize
    model.col_cost_ = programme.values
    model.col_lower_, model.col_upper_ = [0.0] * count, programme.most
    model.row_lower_ = [least for least, _ in programme.rows]
    model.row_upper_ = [most for _, most in programme.rows]
    if is_whole:
        model.integrality_ = [highspy.HighsVarType.kInteger] * count
    matrix = model.a_matrix_
    matrix.format_ = highspy.MatrixFormat.kColwise
    starts: list[int] = [0]
    rows: list[int] = []
    coefficients: list[float] = []
    for entries in programme.entries:
        rows += entries.keys()
        coefficients += entries.values()
        starts.append(len(rows))
    matrix.start_, matrix.index_, matrix.value_ = starts, rows, coefficients
    return model
