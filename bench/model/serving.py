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
from bench.serving_figures import Figure, is_eligible
from bench.serving_figures import figures as step_figures
from bench.tables import Row, figure
from poolwise.model.prediction import Interval
from poolwise.model.serving.front_end import REQUESTS
from poolwise.tables import EfficiencyRow, Tables

MODES = frozenset({
    "online-agg", "online-disagg", "online", "offline-max-throughput", "static-batch",
    "decode-bs1", "prefill-latency", "mlperf-offline", "mlperf-server", "mlperf-interactive",
})  # fmt: skip
"""All that a row can be; some have no figure that is scored."""
OFFLINE = "offline_throughput"
COLUMNS = {"tpot": "tpot_ms_mean", "ttft": "ttft_ms_mean", OFFLINE: "out_tok_s_total"}
"""Figures that depend on the mode; the throughput of a row with times is no score of its own."""


def outcomes(
    rows: Iterable[Row], tables: Tables, calibration_of: CalibrationOf
) -> Iterator[Outcome]:
    """All figures of each row."""
    for row in rows:
        every: list[Figure | RequestFigure] = [*step_figures(row, tables)]
        every += request_figures(row, tables)
        for each in every:
            found, reason = attempted(partial(_predicted, each, calibration_of))
            yield Outcome(
                each.score,
                row,
                each.measured,
                each.is_eligible,
                found,
                reason,
                each.site(calibration_of(row)) if found else None,
            )
        if row["mode"] not in MODES:
            yield from _of_no_mode(row)


def _predicted(each: Figure | RequestFigure, calibration_of: CalibrationOf) -> Interval | str:
    return each.predicted(calibration_of(each.row))


def _of_no_mode(row: Row) -> Iterator[Outcome]:
    """What such a row states of the figures that a mode has: it decides how each is predicted."""
    reason = f"mode is not known: {row['mode']}" if row["mode"] else "mode is not stated"
    stated = {name: figure(row, column) for name, column in COLUMNS.items()}
    for name, measured in stated.items():
        is_other = name == OFFLINE and (stated["tpot"] or stated["ttft"])
        if measured and not is_other:
            yield Outcome(name, row, measured, is_eligible(row), None, reason)


def refit(rows: Sequence[Row], tables: Tables) -> list[EfficiencyRow]:
    """Constants of the engine's step, and of requests upon them."""
    fixed = [row for row in tables.efficiencies if row.phase not in TARGET.phases]
    of_steps = steps.refit(rows, tables)
    return [*of_steps, *requests.refit(rows, tables, [*fixed, *of_steps])]


TARGET = Target("serve_measured", (PHASE, REQUESTS), outcomes, refit)
