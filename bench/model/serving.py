"""Times per token and to the first one, their tails, and throughputs of ``serve_measured``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from bench.fit import requests
from bench.fit import serving as steps
from bench.fit.serving_constants import PHASE
from bench.model.outcome import CalibrationOf, Outcome, Target
from bench.request_predictions import COLUMNS, figures, predict
from bench.serving_figures import figures as step_figures
from bench.serving_figures import is_eligible
from bench.tables import Row, number
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
        found = figure.predicted(calibration_of(row))
        predicted, reason = (None, found) if isinstance(found, str) else (found, "")
        yield Outcome(figure.score, row, figure.measured, figure.is_eligible, predicted, reason)


def _request_outcomes(row: Row, tables: Tables, calibration_of: CalibrationOf) -> Iterator[Outcome]:
    for name in figures(row):
        found = predict(row, name, tables, calibration_of(row))
        predicted, reason = (None, found) if isinstance(found, str) else (found.scaled(1e-3), "")
        measured = (number(row, COLUMNS[name]) or 0.0) / 1e3
        yield Outcome(name, row, measured, is_eligible(row), predicted, reason)


def refit(rows: Sequence[Row], tables: Tables) -> list[EfficiencyRow]:
    """Constants of the engine's step, and of requests upon them."""
    fixed = [row for row in tables.efficiencies if row.phase not in TARGET.phases]
    of_steps = steps.refit(rows, tables)
    return [*of_steps, *requests.refit(rows, tables, [*fixed, *of_steps])]


TARGET = Target("serve_measured", (PHASE, REQUESTS), outcomes, refit)
