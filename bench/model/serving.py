"""Times per token and to the first one, their tails, and throughputs of ``serve_measured``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from bench.fit import requests
from bench.fit import serving as steps
from bench.fit.serving_constants import PHASE
from bench.model.outcome import CalibrationOf, Outcome, Target, attempted
from bench.request_figures import RequestFigure
from bench.request_figures import figures as request_figures
from bench.serving_figures import Figure
from bench.serving_figures import figures as step_figures
from bench.tables import Row
from poolwise.model.serving.front_end import REQUESTS
from poolwise.tables import EfficiencyRow, Tables


def outcomes(
    rows: Iterable[Row], tables: Tables, calibration_of: CalibrationOf
) -> Iterator[Outcome]:
    """All figures of each row."""
    for row in rows:
        every: list[Figure | RequestFigure] = [*step_figures(row, tables)]
        every += request_figures(row, tables)
        for figure in every:
            calibration = calibration_of(row)
            found, reason = attempted(partial(figure.predicted, calibration))
            yield Outcome(
                figure.score,
                row,
                figure.measured,
                figure.is_eligible,
                found,
                reason,
                figure.site(calibration) if found else None,
            )


def refit(rows: Sequence[Row], tables: Tables) -> list[EfficiencyRow]:
    """Constants of the engine's step, and of requests upon them."""
    fixed = [row for row in tables.efficiencies if row.phase not in TARGET.phases]
    of_steps = steps.refit(rows, tables)
    return [*of_steps, *requests.refit(rows, tables, [*fixed, *of_steps])]


TARGET = Target("serve_measured", (PHASE, REQUESTS), outcomes, refit)
