"""Fit the constants of the training step: ``python -m bench.fit.training --data DIR [--write]``.

Prints how well the fit meets the runs, in sample and out of fold, and with ``--write`` replaces
the shipped rows. What nobody measured (vision models, bandwidth of a copy) stays a specification.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from bench import tables as measured_tables
from bench.accuracy import Vector, fold_of
from bench.fit.arguments import arguments
from bench.fit.pooling import PRIOR, Constant, Pool
from bench.fit.shipping import ship, ship_folds
from bench.tables import Row
from bench.training_runs import LaidRun, laid, runs
from poolwise.model.efficiency import EVERY, Calibration
from poolwise.model.training.maturity import MILLENNIUM
from poolwise.model.training.step import NINE_IN_TEN, step_seconds
from poolwise.tables import Tables, load
from poolwise.tables.efficiencies import EfficiencyRow

HEADER = """Constants of the training step: shares of a reachable rate, seconds.
Written by `python -m bench.fit.training --write`."""
PHASE = "training"
SOURCE = "train_measured, 11 sources (dgxc-benchmarking, Megatron-Bridge, llm-foundry, MLPerf, ...)"
SHARE = 1.0
FAMILY, ACCELERATOR = 0.08, 0.05
"""Widths of the levels of ``products``: how far families and accelerators differ, as ln. Narrower
than runs of known accelerators ask for: with 0.12 and 0.08 one that is left out is met worse."""
ENOUGH = 20
"""Rows at which an accelerator's own spread counts as much as everybody's."""
OUT_OF_FOLD = 1.4
"""Scatter of rows out of fold over that in sample, where only the latter is at hand: medians of
6.1 and 4.3 % over 547 runs."""
MOST_ROWS = 8
"""Of one group in the fit: a group of near-identical rows is not so many witnesses."""

CONSTANTS = (
    Constant(
        PHASE,
        "products",
        start=0.95,
        width=0.15,
        formats=("bf16", "fp8", "nvfp4", "fp16", "fp32"),
        family_width=FAMILY,
        accelerator_width=ACCELERATOR,
        most=1.3,
    ),
    Constant(PHASE, "attention", 0.5, 0.3, family_width=0.25),
    Constant(PHASE, "power_exponent", 0.5, 0.5, most=SHARE),
    Constant(PHASE, "immaturity", 0.5, 0.7),
    Constant(PHASE, "maturity_years", 1.0, 0.5),
    Constant(PHASE, "unhidden", 0.4, 0.2, most=SHARE),
    Constant(PHASE, "experts", 0.6, 0.4, family_width=0.15, most=1.2),
    Constant(PHASE, "experts_half_tokens", 500.0, 1.0),
    Constant(PHASE, "elementwise_traffic", 1.5, 0.4, ("bf16", "fp8", "nvfp4", EVERY)),
    Constant(PHASE, "scan_traffic", 3.0, 0.7),
    Constant(PHASE, "layer_launch_seconds", 1.5e-4, 0.5),
    Constant(PHASE, "expert_launch_seconds", 4e-4, 0.7),
    Constant(PHASE, "routing_launch_seconds", 2e-3, 0.7),
    Constant(PHASE, "graph_years", 1.0, 0.5),
    Constant(PHASE, "step_overhead_seconds", 0.015, 1.0),
    Constant(PHASE, "exposed_tensor", 0.5, 0.5, most=SHARE),
    Constant(PHASE, "exposed_expert", 0.7, 0.5, most=SHARE),
    Constant(PHASE, "expert_overlap", 0.7, 0.3, most=SHARE),
    Constant(PHASE, "exposed_context", 0.2, 0.7, most=SHARE),
    Constant(PHASE, "exposed_pipeline", 0.5, 0.7, most=SHARE),
    Constant(PHASE, "exposed_data", 0.1, 0.7, most=SHARE),
    Constant(PHASE, "data_overlap", 0.6, 0.3, most=SHARE),
)

CPU = "cpu"
SPECIFIED = (
    ("bandwidth", EVERY, 0.85, 0.1, "STREAM-like copies reach 80 to 92 % of the data sheet"),
    ("bandwidth", CPU, 0.75, 0.2, "STREAM triad on two-socket servers"),
    ("custom", EVERY, 0.45, 0.3, "ResNet-50 in MLPerf: 0.3 to 0.45 of the ceiling on A100, H100"),
    ("custom", CPU, 0.3, 0.4, "oneDNN convolutions; the data sheet itself is good to 20 %"),
    ("products", CPU, 0.5, 0.4, "oneDNN products in bf16; the data sheet is good to 20 %"),
    ("attention", CPU, 0.3, 0.4, "as products, unfused"),
    ("newest_software_years", EVERY, 26.6, 0.0, "newest release in train_measured: 26.08"),
)
"""Term, scope, value, spread, source of what no run in the tables measures."""


def laid_runs(folder: Path, tables: Tables) -> list[LaidRun]:
    """All runs that constants are fitted on."""
    return _laid(measured_tables.read(folder, "train_measured"), tables)


def _laid(rows: Iterable[Row], tables: Tables) -> list[LaidRun]:
    """Sizes that a source left out are chosen with the shipped constants."""
    calibration = Calibration(tables.efficiencies)
    known = (run for run in runs(rows, tables) if run.is_comparable)
    return [found for run in known if (found := laid(run, calibration)) is not None]


def refit(rows: Sequence[Row], tables: Tables) -> list[EfficiencyRow]:
    """All constants of the phase, fitted on these rows alone."""
    return _constants(_laid(rows, tables), not_fitted(tables))


def _constants(several: Sequence[LaidRun], fixed: Sequence[EfficiencyRow]) -> list[EfficiencyRow]:
    """Specified and fitted ones, with spreads as they are out of fold."""
    pool, parameters = fit(several, fixed)
    errors = OUT_OF_FOLD * residuals(several, pool.calibration(parameters, fixed))
    return _shipped(several, pool, parameters, fixed, spreads(several, errors))


def _shipped(
    several: Sequence[LaidRun],
    pool: Pool,
    parameters: Vector,
    fixed: Iterable[EfficiencyRow],
    spread: Callable[[str, str], float],
) -> list[EfficiencyRow]:
    formats = [each.run.work.precision for each in several]
    rows = pool.rows(parameters, formats, lambda _: 0.0, SOURCE)
    return [*(row for row in fixed if row.phase == PHASE), *_widened(rows, spread)]


def _widened(
    rows: Iterable[EfficiencyRow], spread: Callable[[str, str], float]
) -> list[EfficiencyRow]:
    """Fitted rows with these spreads; specified ones keep their own."""
    return [
        row.model_copy(update={"spread": spread(row.term, row.scope)})
        if row.count or row.source == PRIOR
        else row
        for row in rows
    ]


def residuals(several: Sequence[LaidRun], calibration: Calibration) -> Vector:
    """ln(predicted / measured) of the step times."""
    predicted = [
        step_seconds(each.run.work, each.layout, each.run.machine, calibration) for each in several
    ]
    errors: Vector = np.log(
        np.array(predicted) / np.array([each.run.step_seconds for each in several])
    )
    return errors


def not_fitted(tables: Tables) -> list[EfficiencyRow]:
    """Rows of other phases, and the specified ones of this."""
    others = [row for row in tables.efficiencies if row.phase != PHASE]
    return [*others, *map(_specified, [*SPECIFIED, *_usual_power(tables), *_begun(tables)])]


def _usual_power(tables: Tables) -> Iterator[tuple[str, str, float, float, str]]:
    """FLOP/s for each watt of a family's middle part: what others of it are held against."""
    figures: dict[str, list[float]] = {}
    for row in tables.accelerators:
        if row.bf16_flops_per_second and row.power_watts:
            flops_per_watt = row.bf16_flops_per_second / row.power_watts
            figures.setdefault(row.family, []).append(flops_per_watt)
    for family, several in sorted(figures.items()):
        source = f"median of the data sheets of {len(several)} parts"
        yield "usual_flops_per_watt", family, float(np.median(several)), 0.0, source


def _begun(tables: Tables) -> Iterator[tuple[str, str, float, float, str]]:
    """When the first part of each family could be had: kernels are written for the family."""
    years: dict[str, list[float]] = {}
    for row in tables.accelerators:
        if row.released_year:
            years.setdefault(row.family, []).append(row.released_year)
    for family, several in sorted(years.items()):
        since = min(several) - MILLENNIUM
        yield "architecture_years", family, since, 0.0, "first release in accelerators.csv"


def fit(several: Sequence[LaidRun], fixed: Iterable[EfficiencyRow]) -> tuple[Pool, Vector]:
    """Constants that meet these runs best; the pool is that of all runs, whose devices are those
    of the thinned ones."""
    chosen = _thinned(several)
    thinned = Pool(CONSTANTS, [each.run.machine.device for each in chosen])
    parameters = thinned.fit(lambda calibration: residuals(chosen, calibration), fixed)
    return Pool(CONSTANTS, [each.run.machine.device for each in several]), parameters


def _thinned(several: Sequence[LaidRun]) -> list[LaidRun]:
    """At most :data:`MOST_ROWS` of each group, spread over its rows."""
    total = Counter(each.run.group for each in several)
    seen: Counter[str] = Counter()
    kept = []
    for each in several:
        group = each.run.group
        share = min(1.0, MOST_ROWS / total[group])
        if int((seen[group] + 1) * share) > int(seen[group] * share):
            kept.append(each)
        seen[group] += 1
    return kept


def fits_without(
    several: Sequence[LaidRun], fixed: Sequence[EfficiencyRow]
) -> dict[int, list[EfficiencyRow]]:
    """Constants without each fold of groups."""
    folds = sorted({fold_of(each.run.group) for each in several})
    return {
        fold: _constants([each for each in several if fold_of(each.run.group) != fold], fixed)
        for fold in folds
    }


def out_of_fold(
    several: Sequence[LaidRun], without: Mapping[int, Iterable[EfficiencyRow]]
) -> Vector:
    """Residual of each run under constants that its group had no part in."""
    others = [row for row in load().efficiencies if row.phase != PHASE]
    calibrations = {fold: Calibration([*others, *rows]) for fold, rows in without.items()}
    found = [residuals([each], calibrations[fold_of(each.run.group)])[0] for each in several]
    return np.array(found)


def _spread_by_others(
    several: Sequence[LaidRun], errors: Vector, without: Mapping[int, Iterable[EfficiencyRow]]
) -> dict[int, list[EfficiencyRow]]:
    """Constants without each fold, with spreads of the other folds' rows, out of fold."""
    folds = np.array([fold_of(each.run.group) for each in several])
    found = {}
    for fold, rows in without.items():
        others = np.flatnonzero(folds != fold)
        found[fold] = _widened(rows, spreads([several[index] for index in others.tolist()], errors[others]))
    return found


def spreads(several: Sequence[LaidRun], errors: Vector) -> Callable[[str, str], float]:
    """Spread by term and scope, so that nine in ten lie within 1.645 of them.

    An accelerator's is that of its own rows, drawn towards everybody's by :data:`ENOUGH` rows; one
    that only its family, or nobody, speaks for may also differ by what families and accelerators
    differ by.
    """
    names = np.array([each.run.machine.device.name for each in several])
    sparse = np.array([each.run.is_sparse for each in several])

    def spread(term: str, scope: str) -> float:
        chosen = sparse if term == "experts" else ~sparse
        everybody = _spread(errors[chosen])
        own = errors[chosen & (names == scope)]
        if len(own):
            weight = len(own) / (len(own) + ENOUGH)
            return math.sqrt(weight * _spread(own) ** 2 + (1 - weight) * everybody**2)
        if scope == EVERY:
            return math.hypot(everybody, FAMILY, ACCELERATOR)
        return math.hypot(everybody, ACCELERATOR)

    return spread


def _spread(errors: Vector) -> float:
    """From the value that holds the next row nine times in ten (split conformal prediction)."""
    level = min(1.0, 0.9 * (1 + 1 / len(errors)))
    return float(np.quantile(np.abs(errors), level)) / NINE_IN_TEN


def _specified(figures: tuple[str, str, float, float, str]) -> EfficiencyRow:
    name, scope, value, spread, source = figures
    return EfficiencyRow(
        phase=PHASE,
        term=name,
        scope=scope,
        value=value,
        spread=spread,
        count=0,
        provenance="specification",
        source=source,
    )


def _summary(name: str, errors: Vector) -> str:
    wrong = 100 * np.abs(np.exp(-errors) - 1)
    return f"{name}: {len(errors)} runs, MdAPE {np.median(wrong):.1f} %, mean {wrong.mean():.1f} %"


def main() -> None:
    """Fit, report, and write where asked."""
    asked = arguments(__doc__ or "")
    tables = load()
    several = laid_runs(asked.data, tables)
    fixed = not_fitted(tables)
    without = fits_without(several, fixed)
    errors = out_of_fold(several, without)
    print(_summary("out of fold", errors))
    pool, parameters = fit(several, fixed)
    print(_summary("in sample", residuals(several, pool.calibration(parameters, fixed))))
    if asked.write:
        rows = _shipped(several, pool, parameters, fixed, spreads(several, errors))
        ship(PHASE, HEADER, rows)
        open_rows = {each.run.row["row_id"]: fold_of(each.run.group) for each in several}
        ship_folds(PHASE, _spread_by_others(several, errors, without), open_rows)


if __name__ == "__main__":
    main()
