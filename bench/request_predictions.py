"""``ttft`` and ``ttft_disagg`` of a row of ``serve_measured`` with a range, or why there is none.

Mean times to the first token under load: closed loops of engines that do both halves of a request
(``online-agg``), closed loops with workers for each half (``online-disagg``), and finite runs at an
offered rate (``online``).
"""

from __future__ import annotations

import math

from bench.disaggregated_runs import MODE as DISAGGREGATED
from bench.disaggregated_runs import disaggregated
from bench.disaggregated_runs import first_token_seconds as handed_over_seconds
from bench.request_runs import first_token_seconds, open_loop_first_token_seconds
from bench.serving_runs import Run, runs
from bench.tables import Row, number
from poolwise.model.efficiency import Calibration
from poolwise.model.prediction import Interval
from poolwise.model.serving.front_end import REQUESTS
from poolwise.model.serving.queueing import Z95
from poolwise.tables import Tables

COLUMN = "ttft_ms_mean"
PREDICTED = {"online-agg": first_token_seconds, "online": open_loop_first_token_seconds}
RATIOS = {"ttft": "ttft_ratio", "ttft_disagg": "ttft_disagg_ratio"}
"""Figures, and the constants whose spreads are those of their predictions."""


def figure(row: Row) -> str | None:
    """The figure that a row measures, if it is one of these."""
    if not number(row, COLUMN):
        return None
    if row["mode"] == DISAGGREGATED:
        return "ttft_disagg"
    return "ttft" if row["mode"] in PREDICTED else None


def predict(row: Row, tables: Tables, calibration: Calibration) -> Interval | str:
    """Milliseconds of the row's figure, as the table has them."""
    found = _predicted(row, tables, calibration)
    if isinstance(found, str):
        return found
    run, seconds = found
    if not 0.0 < seconds < math.inf:
        return "the model does not fit, or the load is beyond what the layout serves"
    term = RATIOS[figure(row) or "ttft"]
    device, engine = run.machine.device, run.work.engine
    spread = calibration.efficiency(REQUESTS, term, device, engine).spread
    factor = math.exp(Z95 * spread)
    mid = 1e3 * seconds
    return Interval(mid, mid / factor, mid * factor)


def _predicted(row: Row, tables: Tables, calibration: Calibration) -> tuple[Run, float] | str:
    if row["mode"] == DISAGGREGATED:
        pair = disaggregated(row, tables)
        if isinstance(pair, str):
            return pair
        return pair.prefill, handed_over_seconds(pair, calibration)
    run = next(iter(runs([row], tables, [row["mode"]], COLUMN)), None)
    if run is None:
        return "model, accelerator, lengths or layout are not known"
    return run, PREDICTED[row["mode"]](run, calibration)
