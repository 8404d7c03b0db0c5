"""Fit what a request takes beside the steps: ``python -m bench.fit.requests --data DIR [--write]``.

Least squares of ln(predicted / measured) over mean times to the first token in closed loops, with
the engine's step as ``bench.fit.serving`` left it, so run it after that program. Every constant is
a common value times one of the engine, whose logarithm has a prior; groups of many near-identical
rows count less, and wild rows do not bend the fit (soft L1). Takes a minute.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.optimize import least_squares

from bench import tables as measured_tables
from bench.accuracy import Vector, fold_of
from bench.calibrations import Calibrations
from bench.fit.arguments import arguments
from bench.fit.shipping import FOLDS, ship, ship_folds
from bench.request_runs import FirstToken, first_token
from bench.serving_runs import ENGINES, Run, runs
from bench.tables import Row, split_of
from poolwise.model.efficiency import EVERY, Calibration
from poolwise.model.serving.front_end import REQUESTS as PHASE
from poolwise.model.serving.queueing import Z95
from poolwise.tables import EfficiencyRow, Tables, load

HEADER = """Constants of requests: seconds, steps, and shares of a prompt's steps.
Rows with provenance "fitted" are written by `python -m bench.fit.requests --write`;
rows with provenance "specification" are kept by hand and stay."""
SOURCE = "bench.fit.requests on open rows of serve_measured (aiconfigurator's silicon sample)"
SPREAD_SOURCE = "bench.fit.requests: nine in ten of the residuals of groups that were left out"
STRANGER_SOURCE = "bench.fit.requests: the same for accelerators that were left out"
NOISE = 0.25
"""Scatter of ln(measured) between versions and settings of one engine."""
FULL_ROWS = 15
"""Of a group: more of them count like the root of their number."""
LEAST_ROWS = 30
"""For a spread of its own."""


@dataclass(frozen=True, slots=True)
class Constant:
    """With standard deviations of ln, for all and for one engine."""

    term: str
    start: float
    width: float
    engine_width: float


CONSTANTS = (
    Constant("held_steps", 1.0, 1.0, 1.0),
    Constant("prompt_ratio", 1.0, 0.15, 0.15),
    Constant("request_seconds", 0.03, 1.0, 1.0),
    Constant("prompt_layer_seconds", 1e-3, 1.0, 0.7),
    # API servers take 500 to 1000 short requests a second; clients that move in step look slower.
    Constant("request_serial_seconds", 1.5e-3, 0.3, 0.3),
    Constant("poll_share", 0.7, 0.3, 0.01),
)


@dataclass(frozen=True, slots=True)
class Sample:
    """One measured time to the first token."""

    run: Run
    parts: FirstToken

    @property
    def features(self) -> tuple[float, ...]:
        """What each constant multiplies, in their order."""
        parts = self.parts
        return (
            parts.step_seconds,
            parts.prompt_seconds,
            parts.starts,
            parts.starts * parts.sparse_layers,
            parts.serial_requests,
            parts.polled_seconds,
        )


def main() -> None:
    """Fit, report out of fold, and write where asked."""
    asked = arguments(__doc__ or "")
    tables = load()
    found = measured(asked.data, tables)
    samples = with_parts(found, Calibration(tables.efficiencies))
    folds = _folds(found, tables)
    strangers = _left_out(samples, [each.run.row["gpu"] for each in samples])
    known = _out_of_fold(folds, samples)
    for name, errors in (("group", known), ("accelerator", strangers)):
        print(f"{name} left out: {len(errors)} rows, MdAPE {_mdape(errors):.1f} %")
    if asked.write:
        spreads = spread_rows(samples, known, strangers)
        ship(PHASE, HEADER, [*specified(tables), *fitted_rows(samples), *spreads])
        of_folds = {
            fold: [*specified(tables), *fitted_rows(inside), *_seen(spreads, inside)]
            for fold, (inside, _) in folds.items()
        }
        ship_folds(PHASE, of_folds, {run.row["row_id"]: fold_of(run.group) for run in found})


def measured(folder: Path, tables: Tables) -> list[Run]:
    """Open rows of closed loops."""
    rows = measured_tables.read(folder, "serve_measured")
    return usable([row for row in rows if split_of(row) == "open"], tables)


def usable(rows: Sequence[Row], tables: Tables) -> list[Run]:
    """Runs that tell a time to the first token under load."""
    return list(runs(rows, tables, ["online-agg"], "ttft_ms_mean"))


def refit(
    rows: Sequence[Row], tables: Tables, others: Sequence[EfficiencyRow] | None = None
) -> list[EfficiencyRow]:
    """All constants of this phase on these rows; ``others`` are those of the engine's step."""
    step = [row for row in (others or tables.efficiencies) if row.phase != PHASE]
    shipped = [row for row in tables.efficiencies if row.phase == PHASE]
    samples = with_parts(usable(rows, tables), Calibration([*step, *shipped]))
    spreads = [row for row in shipped if row.term == "ttft_ratio"]
    return [*specified(tables), *fitted_rows(samples), *_seen(spreads, samples)]


def with_parts(found: Sequence[Run], calibration: Calibration) -> list[Sample]:
    """Each with the times that the engine's step gives."""
    return [Sample(run, first_token(run, calibration)) for run in found]


def specified(tables: Tables) -> list[EfficiencyRow]:
    """Rows that are kept by hand."""
    return [
        row
        for row in tables.efficiencies
        if row.phase == PHASE and row.provenance == "specification"
    ]


def fitted_rows(samples: Sequence[Sample]) -> list[EfficiencyRow]:
    """Rows to ship: each constant of each engine that has samples."""
    values = fit(samples)
    spread = _spread(residuals(samples, values))
    counts = Counter(each.run.work.engine for each in samples)
    rows = []
    for index, constant in enumerate(CONSTANTS):
        for engine in ENGINES:
            if counts[engine]:
                value = float(values[ENGINES.index(engine), index])
                rows.append(_row(constant.term, EVERY, engine, value, spread, counts[engine]))
    return rows


def fit(samples: Sequence[Sample]) -> Vector:
    """Values by engine (rows) and constant (columns)."""
    features, held, seconds, engine = _arrays(samples)
    weights = np.sqrt(_weights(samples))
    start = np.log([each.start for each in CONSTANTS])
    widths = np.concatenate(
        [
            [each.width for each in CONSTANTS],
            *([each.engine_width for each in CONSTANTS] for _ in ENGINES),
        ]
    )

    def values(parameters: Vector) -> Vector:
        levels = parameters.reshape(len(ENGINES) + 1, len(CONSTANTS))
        return np.asarray(np.exp(start + levels[0] + levels[1:]))

    def errors(parameters: Vector) -> Vector:
        predicted = (values(parameters)[engine] * features).sum(axis=1) + held
        softened = _softened(np.log(predicted / seconds) / NOISE)
        return np.concatenate([softened * weights, parameters / widths])

    found = least_squares(errors, np.zeros(len(widths)), xtol=1e-4, ftol=1e-4)
    return values(np.asarray(found.x))


def residuals(samples: Sequence[Sample], values: Vector) -> Vector:
    """ln(predicted / measured)."""
    features, held, seconds, engine = _arrays(samples)
    return np.asarray(np.log(((values[engine] * features).sum(axis=1) + held) / seconds))


def spread_rows(samples: Sequence[Sample], known: Vector, strangers: Vector) -> list[EfficiencyRow]:
    """``ttft_ratio``: by engine, and less for accelerators that the fit has seen."""
    rows = [_spread_row(EVERY, EVERY, strangers, STRANGER_SOURCE)]
    for engine in ENGINES:
        inside = [index for index, each in enumerate(samples) if each.run.work.engine == engine]
        if len(inside) < LEAST_ROWS:
            continue
        rows.append(_spread_row(EVERY, engine, strangers[inside], STRANGER_SOURCE))
        for gpu in sorted({samples[index].run.machine.device.name for index in inside}):
            rows.append(_spread_row(gpu, engine, known[inside], SPREAD_SOURCE))
    return rows


def _seen(spreads: Sequence[EfficiencyRow], samples: Sequence[Sample]) -> list[EfficiencyRow]:
    """Without those of accelerators that the samples have not."""
    names = {each.run.machine.device.name for each in samples} | {EVERY}
    return [row for row in spreads if row.scope in names]


def _folds(
    found: Sequence[Run], tables: Tables
) -> dict[int, tuple[list[Sample], list[tuple[int, Sample]]]]:
    """By fold: samples to fit on, and those to score with their place in ``found``.

    The engine's step is that without the fold as well, where it was shipped so.
    """
    has_folds = (FOLDS / "serving_rows.csv").exists()
    steps = Calibrations.load(("serving",), tables).without if has_folds else {}
    split = {}
    for fold in sorted({fold_of(run.group) for run in found}):
        every = with_parts(found, steps.get(fold, Calibration(tables.efficiencies)))
        inside = [each for each in every if fold_of(each.run.group) != fold]
        held = [pair for pair in enumerate(every) if fold_of(pair[1].run.group) == fold]
        split[fold] = inside, held
    return split


def _out_of_fold(
    folds: Mapping[int, tuple[list[Sample], list[tuple[int, Sample]]]], samples: Sequence[Sample]
) -> Vector:
    errors = np.zeros(len(samples))
    for inside, held in folds.values():
        found = residuals([each for _, each in held], fit(inside))
        errors[[index for index, _ in held]] = found
    return errors


def _left_out(samples: Sequence[Sample], units: Sequence[str]) -> Vector:
    """Residuals under constants that the row's unit had no part in."""
    errors = np.zeros(len(samples))
    for unit in sorted(set(units)):
        inside = [index for index, each in enumerate(units) if each == unit]
        others = [samples[index] for index, each in enumerate(units) if each != unit]
        errors[inside] = residuals([samples[index] for index in inside], fit(others))
    return errors


def _arrays(samples: Sequence[Sample]) -> tuple[Vector, Vector, Vector, Vector]:
    return (
        np.array([each.features for each in samples]),
        np.array([each.parts.held_seconds for each in samples]),
        np.array([each.run.measured for each in samples]),
        np.array([ENGINES.index(each.run.work.engine) for each in samples]),
    )


def _weights(samples: Sequence[Sample]) -> Vector:
    sizes = Counter(each.run.group for each in samples)
    return np.array([min(1.0, (FULL_ROWS / sizes[each.run.group]) ** 0.5) for each in samples])


def _softened(errors: Vector) -> Vector:
    softened: Vector = np.sign(errors) * np.sqrt(2 * (np.sqrt(1 + errors**2) - 1))
    return softened


def _spread(errors: Vector) -> float:
    """Standard deviation that makes nine in ten errors lie inside."""
    return float(np.quantile(np.abs(errors), 0.9)) / Z95


def _mdape(errors: Vector) -> float:
    return float(100 * np.median(np.abs(np.expm1(errors))))


def _spread_row(scope: str, engine: str, errors: Vector, source: str) -> EfficiencyRow:
    row = _row("ttft_ratio", scope, engine, 1.0, _spread(errors), len(errors))
    return row.model_copy(update={"source": source})


def _row(
    term: str, scope: str, engine: str, value: float, spread: float, count: int
) -> EfficiencyRow:
    return EfficiencyRow(
        phase=PHASE,
        term=term,
        scope=scope,
        format=engine,
        value=value,
        spread=spread,
        count=count,
        provenance="fitted",
        source=SOURCE,
    )


if __name__ == "__main__":
    main()
