"""Times to the first token, and tails, of a row of ``serve_measured``: a range, or why none.

Means under load: closed loops of engines that do both halves of a request (``online-agg``), closed
loops with workers for each half (``online-disagg``), and finite runs at an offered rate
(``online``). Tails (``ttft_p99``, ``tpot_p99``) follow from the model's queue at the row's rate or
number of clients, where it states its lengths and its layout; those of MLPerf state neither.
"""

from __future__ import annotations

import math
from dataclasses import replace

from bench.disaggregated_runs import MODE as DISAGGREGATED
from bench.disaggregated_runs import disaggregated
from bench.disaggregated_runs import first_token_seconds as handed_over_seconds
from bench.request_runs import POISSON, first_token_seconds, open_loop_first_token_seconds
from bench.serving_runs import Run, found
from bench.tables import Row, number
from poolwise.model.efficiency import Calibration
from poolwise.model.prediction import Interval
from poolwise.model.serving.front_end import REQUESTS
from poolwise.model.serving.latency import latencies
from poolwise.model.serving.load import state, state_at_rate
from poolwise.model.serving.queueing import Z95
from poolwise.tables import Tables

MEANS = {"online-agg": first_token_seconds, "online": open_loop_first_token_seconds}
COLUMNS = {
    "ttft": "ttft_ms_mean",
    "ttft_disagg": "ttft_ms_mean",
    "ttft_p99": "ttft_ms_p99",
    "tpot_p99": "tpot_ms_p99",
}
"""By figure."""


def figures(row: Row) -> list[str]:
    """Those that a row measures."""
    mean = "ttft_disagg" if row["mode"] == DISAGGREGATED else "ttft"
    names = [mean] if row["mode"] in (*MEANS, DISAGGREGATED) else []
    return [each for each in (*names, "ttft_p99", "tpot_p99") if number(row, COLUMNS[each])]


def predict(row: Row, figure: str, tables: Tables, calibration: Calibration) -> Interval | str:
    """Milliseconds, as the table has them, with the range that holds nine in ten."""
    predicted = _predicted(row, figure, tables, calibration)
    if isinstance(predicted, str):
        return predicted
    run, seconds = predicted
    if not 0.0 < seconds < math.inf:
        return "the load is beyond what the layout serves"
    term = "ttft_disagg_ratio" if figure == "ttft_disagg" else "ttft_ratio"
    device, engine = run.machine.device, run.work.engine
    spread = calibration.efficiency(REQUESTS, term, device, engine).spread
    mid, factor = 1e3 * seconds, math.exp(Z95 * spread)
    return Interval(mid, mid / factor, mid * factor)


def _predicted(
    row: Row, figure: str, tables: Tables, calibration: Calibration
) -> tuple[Run, float] | str:
    if figure == "ttft_disagg":
        pair = disaggregated(row, tables)
        if isinstance(pair, str):
            return pair
        return pair.prefill, handed_over_seconds(pair, calibration)
    if figure != "ttft" and not (number(row, "isl") and number(row, "tp")):
        return "states no prompt length or no layout"
    run = found(row, tables, COLUMNS[figure])
    if isinstance(run, str):
        return run
    if figure == "ttft":
        return run, MEANS[row["mode"]](run, calibration)
    return run, _tail_seconds(run, figure, calibration)


def _tail_seconds(run: Run, figure: str, calibration: Calibration) -> float:
    """99th percentile over requests; a request's mean time per token follows its load."""
    served = replace(run.replica(calibration), arrival_dispersion=POISSON)
    offered = number(run.row, "qps_offered")
    at = state_at_rate(served, offered) if offered else state(served, max(1.0, run.in_flight))
    if at is None:
        return math.inf
    times = latencies(served, at)
    if figure == "ttft_p99":
        return times.ttft.percentile(99.0)
    usual = times.tokens.usual
    return at.token_seconds * usual.percentile(99.0) / usual.mean_seconds
