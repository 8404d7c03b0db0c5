"""Fit the links: ``python -m bench.fit.collectives --data DIR [--write]``.

Links inside a domain first, then the network with those held. The spreads that ship are those of
rows that the fit did not see (``bench/fit/spreads.py``).
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from bench.accuracy import FOLDS, Vector, fold_of
from bench.collective_runs import Collective, collectives
from bench.collective_runs import predicted_seconds as predicted_seconds
from bench.fit.arguments import arguments
from bench.fit.link_constants import PCIE_TERMS, Inside, constant_row, network, terms
from bench.fit.open_rows import open_rows, some
from bench.fit.rows import Behind
from bench.fit.shipping import ship, ship_folds
from bench.fit.spreads import LeftOut, spreads, units
from bench.programs import ends_on_bad_input
from poolwise.model.collectives import PHASE as PHASE
from poolwise.model.collectives import SPREAD, spread_kind
from poolwise.model.efficiency import EVERY, Calibration
from poolwise.model.links import Fabric, fabric
from poolwise.tables import Tables, load
from poolwise.tables.efficiencies import EfficiencyRow

TABLE = "collectives_measured"
HEADER = """Constants of collectives: seconds, and shares of a link.
Written by `python -m bench.fit.collectives --write`."""
NO_SWITCH_SPREAD = 0.0
"""A switch that does not add gains nothing: 1 by definition."""
PCIE_SPREAD = 0.9
"""Of a PCIe fabric that nobody measured: bus bandwidth among 4 devices is from 0.16
(L40S) to 0.75 (bridged pairs) of the link; ln of the one over the other is 1.645 times this."""


def constants(rows: Sequence[Collective]) -> list[EfficiencyRow]:
    """All constants from these rows alone, without spreads."""
    within = [row for row in rows if row.members.domains == 1]
    on_bus = [row for row in within if fabric(row.machine.interconnect) is Fabric.PCIE]
    switched = [row for row in within if fabric(row.machine.interconnect) is not Fabric.PCIE]
    every = [row.row for row in rows]
    nobody = Behind.of((), every)
    found = [constant_row("in_switch_gain", EVERY, EVERY, 1.0, nobody, NO_SWITCH_SPREAD)]
    found += Inside(Fabric.SWITCHED, terms(0.3), switched).constants()
    found += Inside(Fabric.PCIE, PCIE_TERMS, on_bus).constants()
    across = [row for row in rows if row.members.domains > 1]
    return found + network(across, Calibration(found), every)


def left_out_errors(rows: Sequence[Collective], labels: Sequence[object]) -> Vector:
    """ln(predicted / measured) of each row under constants that its label had no part in."""
    errors = np.zeros(len(rows))
    for label in dict.fromkeys(labels):
        inside = [index for index, each in enumerate(labels) if each == label]
        kept = [row for row, each in zip(rows, labels, strict=True) if each != label]
        errors[inside] = residuals([rows[index] for index in inside], Calibration(constants(kept)))
    return errors


def residuals(rows: Sequence[Collective], calibration: Calibration) -> Vector:
    """ln(predicted / measured)."""
    return np.log([predicted_seconds(row, calibration) / row.seconds for row in rows])


def spread_rows(rows: Sequence[Collective], errors: LeftOut) -> list[EfficiencyRow]:
    """How wide a prediction is, by kind of link.

    A PCIe fabric that nobody measured has a spread of its own: one accelerator has rows.
    """
    kinds = np.array(
        [spread_kind(row.members, row.machine.interconnect, row.implementation) for row in rows]
    )
    nobody = Behind.of((), (row.row for row in rows))
    found = [constant_row(SPREAD, EVERY, EVERY, 1.0, nobody, PCIE_SPREAD)]
    for kind in np.unique(kinds).tolist():
        of_kind = kinds == kind
        inside = [row for row, each in zip(rows, of_kind, strict=True) if each]
        devices, measured = [row.machine.device for row in inside], [row.row for row in inside]
        found += [
            constant_row(SPREAD, each.scope, kind, 1.0, each.behind, each.value)
            for each in spreads(devices, errors.of(of_kind), measured)
            if each.scope in tuple(device.name for device in devices)
            or not kind.startswith(Fabric.PCIE)
        ]
    return found


def refit(rows: Sequence[Collective]) -> list[EfficiencyRow]:
    """All constants of the phase from these rows alone, with spreads of rows left out."""
    devices = [row.machine.device for row in rows]
    errors = LeftOut(
        left_out_errors(rows, [fold_of(row.group) for row in rows]),
        left_out_errors(rows, units(devices)),
        left_out_errors(rows, [device.family for device in devices]),
    )
    print(f"{len(rows)} rows, {errors}", file=sys.stderr)
    return constants(rows) + spread_rows(rows, errors)


def without_folds(
    rows: Sequence[Collective], found: Iterable[EfficiencyRow]
) -> dict[int, list[EfficiencyRow]]:
    """Constants without each fold; the spreads stay, they are of rows left out already."""
    kept = [row for row in found if row.term == SPREAD]
    return {
        fold: constants([row for row in rows if fold_of(row.group) != fold]) + kept
        for fold in range(FOLDS)
    }


def measured(folder: Path, tables: Tables) -> list[Collective]:
    """All rows that can be predicted."""
    rows = open_rows(folder, TABLE)
    return some(collectives(rows, tables), folder, TABLE)


@ends_on_bad_input
def main() -> None:
    """Fit, report, and write where asked."""
    asked = arguments(__doc__ or "")
    rows = measured(asked.data, load())
    found = refit(rows)
    if asked.write:
        ship(PHASE, HEADER, found)
        fold_of_row = {row.row["row_id"]: fold_of(row.group) for row in rows}
        ship_folds(PHASE, without_folds(rows, found), fold_of_row)


if __name__ == "__main__":
    sys.exit(main())
