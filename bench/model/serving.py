"""Times per token and to the first one, their tails, and throughputs of ``serve_measured``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from bench.fit import requests
from bench.fit import serving as steps
from bench.fit.serving_constants import PHASE
from bench.model.outcome import CalibrationOf, Outcome, Target, attempted
from bench.request_predictions import COLUMNS, figures, predict
from bench.serving_figures import Figure, is_eligible
from bench.serving_figures import figures as step_figures
from bench.tables import Row, number
from poolwise.model.prediction import Interval
from poolwise.model.serving.front_end import REQUESTS
from poolwise.tables import EfficiencyRow, Tables


def outcomes(
    rows: Iterable[Row], tables: Tables, calibration_of: CalibrationOf
) -> Iterator[Outcome]:
    """All figures of each row."""
    for row in rows:
        yield from _step_outcomes(row, tables, calibration_of)
        yield from _request_outcomes(row, tables, calibration_of)


def _step_outcomes(row: Row, tables: Tables, calibration_of: CalibrationOf) -> Iterator[Outcome]:
    for figure in step_figures(row, tables):
        found, reason = attempted(partial(_step_predicted, figure, calibration_of))
        yield Outcome(figure.score, row, figure.measured, figure.is_eligible, found, reason)


def _step_predicted(figure: Figure, calibration_of: CalibrationOf) -> Interval | str:
    return figure.predicted(calibration_of(figure.row))


def _request_outcomes(row: Row, tables: Tables, calibration_of: CalibrationOf) -> Iterator[Outcome]:
    for name in figures(row):
        found, reason = attempted(partial(predict, row, name, tables, calibration_of(row)))
        measured = (number(row, COLUMNS[name]) or 0.0) / 1e3
        seconds = None if found is None else found.scaled(1e-3)
        yield Outcome(name, row, measured, is_eligible(row), seconds, reason)


def refit(rows: Sequence[Row], tables: Tables) -> list[EfficiencyRow]:
    """Constants of the engine's step, and of requests upon them."""
    fixed = [row for row in tables.efficiencies if row.phase not in TARGET.phases]
    of_steps = steps.refit(rows, tables)
    return [*of_steps, *requests.refit(rows, tables, [*fixed, *of_steps])]


TARGET = Target("serve_measured", (PHASE, REQUESTS), outcomes, refit)
