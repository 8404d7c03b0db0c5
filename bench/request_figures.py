"""Times to the first token, and tails, of a row of ``serve_measured``: a range, or why none.

Means under load: closed loops of engines that do both halves of a request (``online-agg``), closed
loops with workers for each half (``online-disagg``), and finite runs at an offered rate
(``online``). Tails (``ttft_p99``, ``tpot_p99``) follow from the model's queue at the row's rate or
number of clients, where it states its lengths and its layout; those of MLPerf state neither.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

from bench.attempts import attempt
from bench.disaggregated_runs import MODE as APART
from bench.disaggregated_runs import Disaggregated, disaggregated
from bench.disaggregated_runs import first_token_seconds as handed_over_seconds
from bench.request_runs import POISSON, first_token_seconds, open_loop_first_token_seconds
from bench.serving_figures import is_eligible, site, told
from bench.serving_runs import Run, found
from bench.tables import Row, figure, number, rate
from poolwise.model.efficiency import Calibration
from poolwise.model.prediction import Interval
from poolwise.model.serving.front_end import REQUESTS
from poolwise.model.serving.latency import latencies
from poolwise.model.serving.load import state, state_at_rate
from poolwise.model.site import Site
from poolwise.tables import Tables

MEANS = {"online-agg": first_token_seconds, "online": open_loop_first_token_seconds}
FIRST_TOKEN, FIRST_TOKEN_APART = "ttft", "ttft_disagg"
COLUMNS = {
    FIRST_TOKEN: "ttft_ms_mean",
    FIRST_TOKEN_APART: "ttft_ms_mean",
    "ttft_p99": "ttft_ms_p99",
    "tpot_p99": "tpot_ms_p99",
}
"""By figure."""


@dataclass(frozen=True, slots=True)
class RequestFigure:
    """One figure of one row."""

    score: str
    """A name of :data:`COLUMNS`."""
    row: Row
    measured: float
    """Seconds."""
    run: Run | Disaggregated | str
    """What ran, or why that cannot be known."""

    @property
    def is_eligible(self) -> bool:
        """Whether the row states model, accelerator, counts, lengths and precision."""
        return is_eligible(self.row)

    def site(self, calibration: Calibration) -> Site | None:
        """Where a mean is predicted; None for a tail, which has no residual."""
        if isinstance(self.run, str) or self.score not in (FIRST_TOKEN, FIRST_TOKEN_APART):
            return None
        return site(_reader(self.run), calibration)

    def predicted(self, calibration: Calibration) -> Interval | str:
        """Seconds with the range that holds nine in ten, or a reason."""
        if isinstance(self.run, str):
            return self.run
        seconds = self._seconds(self.run, calibration)
        if not 0.0 < seconds < math.inf:
            return "the load is beyond what the layout serves"
        term = "ttft_disagg_ratio" if self.score == FIRST_TOKEN_APART else "ttft_ratio"
        device, engine = _reader(self.run).machine.device, _reader(self.run).work.engine
        ratio = calibration.efficiency(REQUESTS, term, device, engine)
        where = self.site(calibration)
        return told(seconds, ratio, calibration.residual(self.score), where)

    def _seconds(self, run: Run | Disaggregated, calibration: Calibration) -> float:
        if isinstance(run, Disaggregated):
            return handed_over_seconds(run, calibration.formulas)
        if self.score == FIRST_TOKEN:
            return MEANS[self.row["mode"]](run, calibration.formulas)
        return _tail_seconds(run, self.score, calibration)


def figures(row: Row, tables: Tables) -> Iterator[RequestFigure]:
    """All figures of a row."""
    mean = FIRST_TOKEN_APART if row["mode"] == APART else FIRST_TOKEN
    names = [mean] if row["mode"] in (*MEANS, APART) else []
    for name in (*names, "ttft_p99", "tpot_p99"):
        milliseconds = figure(row, COLUMNS[name])
        if milliseconds:
            run = attempt(partial(_run, row, name, tables))
            yield RequestFigure(name, row, 1e-3 * milliseconds, run)


def _run(row: Row, name: str, tables: Tables) -> Run | Disaggregated | str:
    if name == FIRST_TOKEN_APART:
        return disaggregated(row, tables)
    if name != FIRST_TOKEN and not (number(row, "isl") and number(row, "tp")):
        return "states no prompt length or no layout"
    return found(row, tables, COLUMNS[name])


def _reader(run: Run | Disaggregated) -> Run:
    """The worker that reads the prompt."""
    return run.prefill if isinstance(run, Disaggregated) else run


def _tail_seconds(run: Run, name: str, calibration: Calibration) -> float:
    """99th percentile over requests; a request's mean time per token follows its load."""
    served = replace(run.replica(calibration), arrival_dispersion=POISSON)
    offered = rate(run.row, "qps_offered")
    at = state_at_rate(served, offered) if offered else state(served, max(1.0, run.in_flight))
    if at is None:
        return math.inf
    times = latencies(served, at)
    if name == "ttft_p99":
        return times.ttft.percentile(99.0)
    usual = times.tokens.usual
    return at.token_seconds * usual.percentile(99.0) / usual.mean_seconds
