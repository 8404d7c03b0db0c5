"""Fit the links: ``python -m bench.fit.collectives --data DIR [--write]``.

Eager PyTorch timings, networks that the source does not name and bridged pairs of PCIe cards are
scored, and not fitted: their link is not the one that the tables know.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from bench import tables as measured_tables
from bench.accuracy import Vector, folds
from bench.collective_runs import Collective, collectives
from bench.fit.arguments import arguments
from bench.fit.pooling import Constant, Pool
from bench.fit.shipping import ship
from poolwise.model.collectives import Fabric, collective_seconds, fabric
from poolwise.model.efficiency import Calibration
from poolwise.model.training.step import NINE_IN_TEN
from poolwise.tables import Tables, load
from poolwise.tables.efficiencies import EfficiencyRow

PHASE = "collectives"
HEADER = """Constants of collectives: seconds, and shares of a link.
Written by `python -m bench.fit.collectives --write`."""
SOURCE = "collectives_measured: aiconfigurator, ml-engineering, dgxc-benchmarking, nccl-tests"


def _link(
    kind: str, launch: float, hop: float, ramp: float, fraction: float, growth: float
) -> tuple[Constant, ...]:
    """The five constants of a link; those of a switched one may differ by family."""
    family = 0.3 if kind.startswith("switched") else 0.0
    return (
        Constant(PHASE, "launch_seconds", launch, 0.7, (kind,), family_width=family),
        Constant(PHASE, "hop_seconds", hop, 0.7, (kind,), family_width=family),
        Constant(PHASE, "ramp_seconds", ramp, 1.0, (kind,), family_width=family),
        Constant(
            PHASE, "bandwidth_fraction", fraction, 0.3, (kind,), family_width=family / 2, most=1
        ),
        Constant(PHASE, "growth_per_doubling", growth, 0.3, (kind,)),
    )


CONSTANTS = (
    *_link("switched/nccl", 6e-6, 0.85e-6, 20e-6, 0.66, 1.12),
    *_link("switched/graph", 4e-6, 0.1e-6, 10e-6, 0.7, 1.05),
    *_link("switched/eager", 25e-6, 0.1e-6, 10e-6, 0.6, 1.1),
    *_link("mesh/nccl", 8e-6, 1e-6, 20e-6, 0.72, 1.0),
    *_link("pcie/nccl", 7e-6, 0.3e-6, 1e-6, 0.62, 0.25),
    *_link("pcie/graph", 4e-6, 1.5e-6, 1e-6, 0.6, 0.25),
    *_link("pcie/eager", 60e-6, 1e-6, 1e-6, 0.6, 0.25),
    *_link("network", 10e-6, 8e-6, 100e-6, 0.75, 1.0)[:4],
)


def residuals(rows: Sequence[Collective], calibration: Calibration) -> Vector:
    """ln(predicted / measured)."""
    predicted = [predicted_seconds(each, calibration) for each in rows]
    errors: Vector = np.log(np.array(predicted) / np.array([each.seconds for each in rows]))
    return errors


def predicted_seconds(each: Collective, calibration: Calibration) -> float:
    """The model's answer for one row."""
    return collective_seconds(
        each.operation,
        each.size_bytes,
        each.members,
        each.machine,
        calibration,
        each.implementation,
    )


def measured(folder: Path, tables: Tables) -> list[Collective]:
    """All rows on known accelerators."""
    return list(collectives(measured_tables.read(folder, "collectives_measured"), tables))


def not_fitted(tables: Tables) -> list[EfficiencyRow]:
    """Rows of other phases."""
    return [row for row in tables.efficiencies if row.phase != PHASE]


def fit(rows: Sequence[Collective], fixed: Iterable[EfficiencyRow]) -> tuple[Pool, Vector]:
    """Constants that meet the rows that are fit for fitting."""
    chosen = [row for row in rows if row.is_fit_for_fitting]
    pool = Pool(CONSTANTS, [row.machine.device for row in chosen])
    return pool, pool.fit(lambda calibration: residuals(chosen, calibration), fixed)


def out_of_fold(rows: Sequence[Collective], fixed: Sequence[EfficiencyRow]) -> Vector:
    """Residual of each row under constants that its group had no part in."""
    found = np.zeros(len(rows))
    for others, inside in folds([row.group for row in rows]):
        pool, parameters = fit([rows[index] for index in others], fixed)
        calibration = pool.calibration(parameters, fixed)
        found[inside] = residuals([rows[index] for index in inside], calibration)
    return found


def shipped(
    measurements: Sequence[Collective], fixed: Sequence[EfficiencyRow]
) -> list[EfficiencyRow]:
    """Rows to ship: each kind of link with its count and the spread of its own rows."""
    pool, parameters = fit(measurements, fixed)
    chosen = [row for row in measurements if row.is_fit_for_fitting]
    errors = residuals(chosen, pool.calibration(parameters, fixed))
    kinds = np.array([kind(row) for row in chosen])
    spreads = {
        each: float(np.percentile(np.abs(errors[kinds == each]), 90)) / NINE_IN_TEN
        for each in set(kinds.tolist())
    }
    rows = pool.rows(parameters, kinds.tolist(), lambda _: 0.0, SOURCE)
    return [row.model_copy(update={"spread": spreads.get(row.format, 0.3)}) for row in rows]


def kind(row: Collective) -> str:
    """The link whose constants decide the row."""
    if row.members.domains > 1:
        return str(Fabric.NETWORK)
    return f"{fabric(row.machine.interconnect)}/{row.implementation}"


def main() -> None:
    """Fit, report, and write where asked."""
    asked = arguments(__doc__ or "")
    tables = load()
    rows, fixed = measured(asked.data, tables), not_fitted(tables)
    wrong = 100 * np.abs(np.exp(out_of_fold(rows, fixed)) - 1)
    print(f"out of fold: {len(rows)} rows, MdAPE {np.median(wrong):.1f} %")
    if asked.write:
        ship(PHASE, HEADER, shipped(rows, fixed))


if __name__ == "__main__":
    main()
