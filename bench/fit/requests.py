"""Fit what a request takes beside the steps: ``python -m bench.fit.requests --data DIR [--write]``.

Mean times to the first token in closed loops: of engines that do both halves of a request, and of
those that hand it over from prefill to decode workers. The engine's step is as
``bench.fit.serving`` left it, so run it after that program. Takes a minute.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain

import numpy as np

from bench.accuracy import Vector, fold_of
from bench.calibrations import Calibrations
from bench.dates import date_of
from bench.disaggregated_runs import MODE as DISAGGREGATED
from bench.disaggregated_runs import Disaggregated, disaggregated
from bench.fit.arguments import arguments
from bench.fit.engine_pool import (
    Constant,
    Rows,
    constant_rows,
    left_out,
    nine_in_ten,
    row,
)
from bench.fit.open_rows import open_rows, some
from bench.fit.rows import Behind
from bench.fit.serving_samples import TABLE
from bench.fit.shipping import FOLDS, ship, ship_folds
from bench.jobs import JOBS, job_folds
from bench.programs import ends_on_bad_input
from bench.request_runs import first_token
from bench.serving_runs import ENGINES, Run, runs
from bench.tables import Row
from poolwise.model.efficiency import EVERY, Calibration
from poolwise.model.serving.front_end import REQUESTS as PHASE
from poolwise.tables import EfficiencyRow, Tables, load

HEADER = """Constants of requests: seconds, steps, and shares of a prompt's steps.
Rows with provenance "fitted" are written by `python -m bench.fit.requests --write`;
rows with provenance "specification" are kept by hand and stay."""
SPREAD_SOURCE = "bench.fit.requests: nine in ten of the residuals of groups that were left out"
STRANGER_SOURCE = "bench.fit.requests: the same for accelerators that were left out"
LEAST_ROWS = 30
"""For a spread of its own."""

ALIKE = 0.3
"""Width of an engine's launches about those of its kind: that of the launches of a step
(:mod:`bench.fit.serving_constants`). With every engine for itself the two that launch one by one
differed by 0.4 in four constants, and vLLM by 1.8 from their mean. 0.2 to 0.5 score the same."""

FIRST_TOKEN = (
    # Engines that overlap scheduling with steps start a prompt one step later than they could.
    Constant("held_steps", 1.0, 0.3, 0.3),
    Constant("prompt_ratio", 1.0, 0.15, 0.15),
    Constant("prompt_token_seconds", 2e-6, 1.0, 1.0),
    Constant("request_seconds", 0.03, 1.0, ALIKE, 1.0),
    Constant("early_request_seconds", 0.03, 1.0, ALIKE, 1.0),
    Constant("prompt_layer_seconds", 1e-3, 1.0, ALIKE, 0.7),
    Constant("early_prompt_layer_seconds", 1e-3, 1.0, ALIKE, 0.7),
    # API servers take 500 to 1000 short requests a second; clients that move in step look slower.
    Constant("request_serial_seconds", 1.5e-3, 0.3, 0.3),
    Constant("poll_share", 0.7, 0.3, 0.01),
    # Half of the others are ahead of a prompt on average, if all are in step.
    Constant("in_step_share", 0.5, 0.7, 0.01),
    # Nothing says that a slot is missing but the rows themselves.
    Constant("missing_slots", 0.1, 2.5, 0.01),
    Constant("balance_share", 0.5, 0.7, 0.01),
)
HANDOVER = (
    Constant("handover_seconds", 0.2, 1.5, 1.5),
    Constant("handover_prompt_ratio", 1.0, 1.0, 1.0),
    Constant("handover_wait_share", 0.1, 1.0, 0.01),
)


@dataclass(frozen=True, slots=True)
class Figure:
    """One kind of measured time with the constants that explain it."""

    ratio_term: str
    """Whose spread is that of its predictions."""
    constants: tuple[Constant, ...]
    noise: float
    """Scatter of ln(measured) between versions and settings of one engine."""
    read: Callable[[Sequence[Row], Tables], list[tuple[Run, Terms]]]

    def rows(self, found: Sequence[tuple[Run, Terms]], calibration: Calibration) -> Rows:
        """As the fit takes them."""
        terms = [explain(calibration) for _, explain in found]
        return Rows(
            features=np.array([each for each, _ in terms]),
            certain=np.array([each for _, each in terms]),
            seconds=np.array([run.measured for run, _ in found]),
            engines=tuple(run.work.engine for run, _ in found),
            groups=tuple(run.group for run, _ in found),
            dates=tuple(date_of(run.row) for run, _ in found),
        )


Terms = Callable[[Calibration], tuple[tuple[float, ...], float]]
"""What the constants multiply, and the seconds that none does."""


@ends_on_bad_input
def main() -> None:
    """Fit, report out of fold, and write where asked."""
    asked = arguments(__doc__ or "")
    tables = load()
    rows = open_rows(asked.data, TABLE)
    for figure in FIGURES:
        some(figure.read(rows, tables), asked.data, TABLE)
    fitted = [_Fitted.of(figure, rows, tables) for figure in FIGURES]
    for each in fitted:
        each.report()
    if asked.write:
        constants = chain.from_iterable(each.shipped() for each in fitted)
        ship(PHASE, HEADER, [*specified(tables), *constants])
        folds = sorted({fold_of(run.group) for each in fitted for run, _ in each.found})
        of_folds = {
            fold: [*specified(tables), *chain.from_iterable(each.without(fold) for each in fitted)]
            for fold in folds
        }
        every = [run.row for each in fitted for run, _ in each.found]
        ship_folds(PHASE, of_folds, {row["row_id"]: fold_of(row["group"]) for row in every})
        _ship_jobs(every, fitted, tables)


def _ship_jobs(rows: Sequence[Row], fitted: Sequence[_Fitted], tables: Tables) -> None:
    """The same without each fold of jobs, upon steps without it."""
    folds, found = job_folds(rows), {}
    for fold, steps in _steps_without(tables, JOBS).items():
        constants = (each.without_rows(fold, folds, steps) for each in fitted)
        found[fold] = [*specified(tables), *chain.from_iterable(constants)]
    ship_folds(PHASE + JOBS, found, folds)


def refit(
    rows: Sequence[Row], tables: Tables, others: Sequence[EfficiencyRow] | None = None
) -> list[EfficiencyRow]:
    """All constants of this phase on these rows; ``others`` are those of the engine's step."""
    step = [each for each in (others or tables.efficiencies) if each.phase != PHASE]
    shipped = [each for each in tables.efficiencies if each.phase == PHASE]
    calibration = Calibration([*step, *shipped])
    found = [*specified(tables)]
    for figure in FIGURES:
        measured = figure.read(rows, tables)
        fitted = figure.rows(measured, calibration)
        found += constant_rows(figure.constants, fitted, figure.noise)
        spreads = [each for each in shipped if each.term == figure.ratio_term]
        found += _seen(spreads, measured)
    return found


def specified(tables: Tables) -> list[EfficiencyRow]:
    """Rows that are kept by hand."""
    return [
        each
        for each in tables.efficiencies
        if each.phase == PHASE and each.provenance == "specification"
    ]


@dataclass(frozen=True, slots=True)
class _Fitted:
    """A figure with all its rows, and what is predicted of those that are left out."""

    figure: Figure
    found: list[tuple[Run, Terms]]
    rows: Rows
    of_fold: dict[int, Rows]
    """The same with the engine's step as it is without a fold."""
    known: Vector
    """Residuals of rows whose group was left out."""
    strangers: Vector
    """Of rows whose accelerator was left out."""

    @staticmethod
    def of(figure: Figure, measured: Sequence[Row], tables: Tables) -> _Fitted:
        """Fits for every fold and every accelerator."""
        found = figure.read(measured, tables)
        rows = figure.rows(found, Calibration(tables.efficiencies))
        of_fold = {
            fold: figure.rows(found, calibration)
            for fold, calibration in _steps_without(tables).items()
        }
        folds = [fold_of(run.group) for run, _ in found]
        known = np.zeros(len(found))
        for fold in sorted(set(folds)):
            inside = [index for index, each in enumerate(folds) if each == fold]
            errors = left_out(figure.constants, of_fold.get(fold, rows), folds, figure.noise)
            known[inside] = errors[inside]
        gpus = [run.machine.device.name for run, _ in found]
        strangers = left_out(figure.constants, rows, gpus, figure.noise)
        return _Fitted(figure, found, rows, of_fold, known, strangers)

    def report(self) -> None:
        """How far predictions are from what was left out."""
        for name, errors in (("group", self.known), ("accelerator", self.strangers)):
            wrong = 100 * np.abs(np.expm1(errors))
            print(
                f"{self.figure.ratio_term}, {name} left out: {len(errors)} rows,"
                f" MdAPE {np.median(wrong):.1f} %, p90 {np.quantile(wrong, 0.9):.1f} %"
            )

    def shipped(self) -> list[EfficiencyRow]:
        """Constants of all rows, and the spreads of predictions."""
        rows = constant_rows(self.figure.constants, self.rows, self.figure.noise)
        return [*rows, *self._spreads()]

    def without(self, fold: int) -> list[EfficiencyRow]:
        """The same without a fold."""
        others = [index for index, (run, _) in enumerate(self.found) if fold_of(run.group) != fold]
        rows = self.of_fold.get(fold, self.rows).chosen(others)
        constants = constant_rows(self.figure.constants, rows, self.figure.noise)
        return [*constants, *_seen(self._spreads(), [self.found[index] for index in others])]

    def without_rows(
        self, fold: int, folds: Mapping[str, int], steps: Calibration
    ) -> list[EfficiencyRow]:
        """The same without the rows of a fold, upon other steps."""
        others = [each for each in self.found if folds[each[0].row["row_id"]] != fold]
        rows = self.figure.rows(others, steps)
        constants = constant_rows(self.figure.constants, rows, self.figure.noise)
        return [*constants, *_seen(self._spreads(), others)]

    def _spreads(self) -> list[EfficiencyRow]:
        """By engine, and less for accelerators that the fit has seen."""
        everybody = list(range(len(self.found)))
        rows = [self._spread(EVERY, EVERY, everybody, self.strangers, STRANGER_SOURCE)]
        for engine in ENGINES:
            inside = [index for index, each in enumerate(self.rows.engines) if each == engine]
            if len(inside) < LEAST_ROWS:
                continue
            rows.append(self._spread(EVERY, engine, inside, self.strangers, STRANGER_SOURCE))
            gpus = {self.found[index][0].machine.device.name for index in inside}
            rows += [
                self._spread(gpu, engine, inside, self.known, SPREAD_SOURCE) for gpu in sorted(gpus)
            ]
        return rows

    def _spread(
        self, scope: str, engine: str, inside: list[int], errors: Vector, source: str
    ) -> EfficiencyRow:
        behind = Behind.of(self.found[index][0].row for index in inside)
        spread = nine_in_ten(errors[inside])
        found = row(self.figure.ratio_term, engine, 1.0, spread, behind)
        return found.model_copy(update={"scope": scope, "source": source})


def _steps_without(tables: Tables, kind: str = "") -> dict[int, Calibration]:
    """The formulas of the step without each fold, where they were shipped so."""
    if not (FOLDS / f"serving{kind}_rows.csv").exists():
        return {}
    without = Calibrations.load(("serving",), tables, kind).without
    return {fold: each.formulas for fold, each in without.items()}


def _seen(
    spreads: Sequence[EfficiencyRow], found: Sequence[tuple[Run, Terms]]
) -> list[EfficiencyRow]:
    """Without those of accelerators that no run is on."""
    names = {run.machine.device.name for run, _ in found} | {EVERY}
    return [each for each in spreads if each.scope in names]


def _first_tokens(rows: Sequence[Row], tables: Tables) -> list[tuple[Run, Terms]]:
    found = runs(rows, tables, ["online-agg"], "ttft_ms_mean")
    return [(run, partial(_first_token_terms, run)) for run in found]


def _first_token_terms(run: Run, calibration: Calibration) -> tuple[tuple[float, ...], float]:
    parts = first_token(run, calibration)
    return parts.features, parts.held_seconds


def _handovers(rows: Sequence[Row], tables: Tables) -> list[tuple[Run, Terms]]:
    found = [disaggregated(each, tables) for each in rows if each["mode"] == DISAGGREGATED]
    return [
        (each.prefill, partial(_handover_terms, each))
        for each in found
        if isinstance(each, Disaggregated)
    ]


def _handover_terms(
    run: Disaggregated, calibration: Calibration
) -> tuple[tuple[float, ...], float]:
    return run.features(calibration), 0.0


FIGURES = (
    Figure("ttft_ratio", FIRST_TOKEN, 0.25, _first_tokens),
    Figure("ttft_disagg_ratio", HANDOVER, 0.4, _handovers),
)

if __name__ == "__main__":
    sys.exit(main())
