"""Fit the links: ``python -m bench.fit.collectives --data DIR [--write]``.

Links inside a domain first, then the network with those held. The spreads that ship are those of
rows that the fit did not see: of whole groups left out for an accelerator that was measured, of
whole accelerators left out for all others.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from bench import tables as measured_tables
from bench.accuracy import FOLDS, Vector, fold_of
from bench.collective_runs import Collective, collectives
from bench.collective_runs import predicted_seconds as predicted_seconds
from bench.fit.arguments import arguments
from bench.fit.levels import Factored, Levels, Values
from bench.fit.shipping import ship, ship_folds
from poolwise.model.collectives import (
    LAUNCHED_BY_HOST,
    ONE_SHOT,
    PHASE,
    SPREAD,
    Fabric,
    Implementation,
    Operation,
    across_seconds,
    fabric,
    inside_link,
    kind_of,
    network_share_bytes_per_second,
    nominal_bytes_per_second,
    spread_kind,
)
from poolwise.model.efficiency import EVERY, Calibration
from poolwise.model.links import Link, growth, sums_in_switch
from poolwise.model.prediction import NINE_IN_TEN
from poolwise.tables import Tables, load
from poolwise.tables.efficiencies import EfficiencyRow

HEADER = """Constants of collectives: seconds, and shares of a link.
Written by `python -m bench.fit.collectives --write`."""
SOURCE = (
    "collectives_measured: aiconfigurator, ml-engineering, dgxc-benchmarking, nccl-tests, Vidur"
)
PRIOR = "prior of the fit: nobody measured it"
VOICE = 25
"""Rows of a group beyond which it counts no more: a sweep over sizes is one configuration."""
IN_SWITCH_FAMILIES = ("hopper", "blackwell")
"""Their switch adds what passes (NVLink SHARP: third generation NVSwitch and later)."""
PCIE_SPREAD = 0.9
"""Of a PCIe fabric that nobody measured: bus bandwidth at 4 devices of one PCIe generation is
from 5 (L40S) to 23 GB/s (bridged pairs), reference §0.7."""
FEW = 30
"""Rows below which no spread is estimated."""


def _terms(fabric_width: float) -> dict[str, Factored]:
    """Priors of a link inside a domain; families differ by ``fabric_width``."""

    def levels(operation: float) -> dict[str, float]:
        return {"launched": 1.0, "family": fabric_width, "operation": operation}

    return {
        "launch_seconds": Factored(6e-6, 0.7, levels(0.3)),
        "hop_seconds": Factored(0.7e-6, 0.7, levels(0.3)),
        "ramp_seconds": Factored(20e-6, 1.0, levels(0.5)),
        "bandwidth_fraction": Factored(
            0.66, 0.3, {"launched": 0.3, "family": fabric_width, "operation": 0.15}
        ),
        "growth_per_doubling": Factored(1.1, 0.3, {"launched": 0.3}),
        "in_switch_gain": Factored(1.2, 0.3, {"launched": 0.2}),
        "shot_seconds": Factored(0.3e-6, 1.0, {"launched": 0.5}),
        "host_seconds": Factored(25e-6, 0.7, {"implementation": 0.7, "host_family": 0.3}),
    }


PCIE_TERMS = {
    **_terms(0.1),
    "ramp_seconds": Factored(1e-6, 1.0, {"launched": 1.0, "operation": 0.5}),
    "growth_per_doubling": Factored(0.25, 0.3, {"launched": 0.3}),
}
NETWORK_TERMS = {
    "launch_seconds": Factored(10e-6, 0.7),
    "hop_seconds": Factored(8e-6, 0.7),
    "ramp_seconds": Factored(100e-6, 1.0),
    "bandwidth_fraction": Factored(0.75, 0.3),
}
"""Widths are of ln; those of levels shrink towards the common value what few rows speak for."""
LINK_TERMS = ("launch_seconds", "hop_seconds", "ramp_seconds", "bandwidth_fraction",
              "growth_per_doubling")  # fmt: skip


class Inside:
    """Links of one fabric over the rows that stay inside a domain."""

    def __init__(
        self, kind: Fabric, terms: Mapping[str, Factored], rows: Sequence[Collective]
    ) -> None:
        self.kind, self.terms, self.rows = kind, terms, rows
        self.levels = Levels(terms, [_keys(row) for row in rows])
        of_group = Counter(row.group for row in rows)
        weights = np.array([min(1.0, VOICE / of_group[row.group]) for row in rows])
        measured = np.log([row.seconds for row in rows])
        found = self.levels.fit(self._predict, measured, weights)
        self._found = {
            (each.term, each.level, each.key): value
            for each, value in zip(self.levels.parameters, found.tolist(), strict=True)
        }

    def _predict(self, values: Values) -> Vector:
        """ln(seconds) of all rows."""
        columns = zip(*(values[term].tolist() for term in self.terms), strict=True)
        return np.log(
            [
                _link(row, dict(zip(self.terms, column, strict=True))).seconds(
                    row.operation, row.size_bytes, row.members.ranks
                )
                for row, column in zip(self.rows, columns, strict=True)
            ]
        )

    def constants(self) -> list[EfficiencyRow]:
        """Rows to ship, for all devices and for the families that were measured."""
        kinds = [
            (kind_of(self.kind, launched, operation), launched)
            for launched in (Implementation.NCCL, *ONE_SHOT)
            for operation in Operation
            if launched is Implementation.NCCL or operation is Operation.ALL_REDUCE
        ]
        families = sorted({row.machine.device.family for row in self.rows})
        return [
            row
            for name, launched in kinds
            for family in (None, *families)
            for row in self._of_kind(name, launched, family)
        ] + self._of_host(families)

    def _of_kind(
        self, name: str, launched: Implementation, family: str | None
    ) -> list[EfficiencyRow]:
        levels: dict[str, object] = {"launched": launched, "operation": name}
        if family is not None:
            levels["family"] = (family, launched)
        count = sum(self._is_of(row, name, family) for row in self.rows)
        if not count and (family is not None or launched is not Implementation.NCCL):
            return []
        terms = [*LINK_TERMS, *(["shot_seconds"] if launched in ONE_SHOT else [])]
        if self.kind is Fabric.SWITCHED and family in IN_SWITCH_FAMILIES:
            terms.append("in_switch_gain")
        scope = family or EVERY
        return [_row(term, scope, name, self._value(term, levels), count) for term in terms]

    def _of_host(self, families: Sequence[str]) -> list[EfficiencyRow]:
        found = []
        for implementation in LAUNCHED_BY_HOST:
            name = f"{self.kind}/{implementation}"
            for family in (None, *families):
                levels: dict[str, object] = {"implementation": implementation}
                if family is not None:
                    levels["host_family"] = (family, implementation)
                count = sum(
                    row.implementation is implementation
                    and family in (None, row.machine.device.family)
                    for row in self.rows
                )
                if count or family is None:
                    value = self._value("host_seconds", levels)
                    found.append(_row("host_seconds", family or EVERY, name, value, count))
        return found

    def _is_of(self, row: Collective, name: str, family: str | None) -> bool:
        is_family = family in (None, row.machine.device.family)
        return is_family and kind_of(self.kind, row.implementation, row.operation) == name

    def _value(self, term: str, levels: Mapping[str, object]) -> float:
        shifts = [self._found[term, None, None]]
        shifts += [self._found.get((term, level, key), 0.0) for level, key in levels.items()]
        return self.terms[term].start * math.exp(sum(shifts))


def _keys(row: Collective) -> dict[str, object]:
    launched = LAUNCHED_BY_HOST.get(row.implementation, row.implementation)
    family = row.machine.device.family
    return {
        "launched": launched,
        "family": (family, launched),
        "operation": kind_of(fabric(row.machine.interconnect), launched, row.operation),
        "implementation": row.implementation,
        "host_family": (family, row.implementation),
    }


def _link(row: Collective, values: Mapping[str, float]) -> Link:
    """A row's link at some constants."""
    ranks, links = row.members.ranks, row.machine.interconnect
    bandwidth = nominal_bytes_per_second(ranks, links) * values["bandwidth_fraction"]
    bandwidth *= growth(values["growth_per_doubling"], ranks)
    can_sum = row.machine.device.family in IN_SWITCH_FAMILIES
    if can_sum and sums_in_switch(row.operation, ranks, fabric(links) is Fabric.SWITCHED):
        bandwidth *= values["in_switch_gain"]
    launched = LAUNCHED_BY_HOST.get(row.implementation, row.implementation)
    return Link(
        values["launch_seconds"],
        values["hop_seconds"],
        values["ramp_seconds"],
        bandwidth,
        values["shot_seconds"] if launched in ONE_SHOT else None,
        values["host_seconds"] if row.implementation in LAUNCHED_BY_HOST else 0.0,
    )


def _network(rows: Sequence[Collective], inside: Calibration) -> list[EfficiencyRow]:
    """Constants across nodes, given those inside."""
    links = [inside_link(row.operation, row.members, row.machine, inside) for row in rows]
    shares = [network_share_bytes_per_second(row.machine.interconnect) for row in rows]

    def predict(values: Values) -> Vector:
        columns = zip(*(values[term].tolist() for term in NETWORK_TERMS), strict=True)
        return np.log(
            [
                across_seconds(
                    row.operation,
                    row.size_bytes,
                    row.members,
                    link,
                    Link(launch, hop, ramp, share * fraction),
                )
                for row, link, share, (launch, hop, ramp, fraction) in zip(
                    rows, links, shares, columns, strict=True
                )
            ]
        )

    levels = Levels(NETWORK_TERMS, [{} for _ in rows])
    measured = np.log([row.seconds for row in rows])
    of_group = Counter(row.group for row in rows)
    weights = np.array([min(1.0, VOICE / of_group[row.group]) for row in rows])
    found = levels.fit(predict, measured, weights) if rows else np.zeros(len(NETWORK_TERMS))
    return [
        _row(term, EVERY, Fabric.NETWORK, factored.start * math.exp(value), len(rows))
        for (term, factored), value in zip(NETWORK_TERMS.items(), found.tolist(), strict=True)
    ]


def constants(rows: Sequence[Collective]) -> list[EfficiencyRow]:
    """All constants from these rows alone, without spreads."""
    within = [row for row in rows if row.members.domains == 1]
    on_bus = [row for row in within if fabric(row.machine.interconnect) is Fabric.PCIE]
    switched = [row for row in within if fabric(row.machine.interconnect) is not Fabric.PCIE]
    found = [_row("in_switch_gain", EVERY, EVERY, 1.0, 0)]
    found += Inside(Fabric.SWITCHED, _terms(0.3), switched).constants()
    found += Inside(Fabric.PCIE, PCIE_TERMS, on_bus).constants()
    across = [row for row in rows if row.members.domains > 1]
    return found + _network(across, Calibration(found))


def _row(
    term: str, scope: str, number_format: str, value: float, count: int, spread: float = 0.0
) -> EfficiencyRow:
    return EfficiencyRow(
        phase=PHASE,
        term=term,
        scope=scope,
        format=number_format,
        value=value,
        spread=spread,
        count=count,
        provenance="fitted" if count else "specification",
        source=SOURCE if count else PRIOR,
    )


def left_out_errors(rows: Sequence[Collective], labels: Sequence[object]) -> Vector:
    """ln(predicted / measured) of each row under constants that its label had no part in."""
    errors = np.zeros(len(rows))
    for label in dict.fromkeys(labels):
        inside = [index for index, each in enumerate(labels) if each == label]
        kept = [row for row, each in zip(rows, labels, strict=True) if each != label]
        errors[inside] = residuals([rows[index] for index in inside], Calibration(constants(kept)))
    return errors


def units(rows: Sequence[Collective]) -> list[str]:
    """The accelerator of each row; those with few rows are one unit."""
    names = [row.machine.device.name for row in rows]
    counts = Counter(names)
    return [name if counts[name] >= FEW else "few" for name in names]


def residuals(rows: Sequence[Collective], calibration: Calibration) -> Vector:
    """ln(predicted / measured)."""
    return np.log([predicted_seconds(row, calibration) / row.seconds for row in rows])


def spreads(rows: Sequence[Collective], of_groups: Vector, of_units: Vector) -> list[EfficiencyRow]:
    """How wide a prediction is, by kind of link: for all, and for what was measured."""
    kinds = np.array(
        [spread_kind(row.members, row.machine.interconnect, row.implementation) for row in rows]
    )
    names = np.array([row.machine.device.name for row in rows])
    found = [_row(SPREAD, EVERY, EVERY, 1.0, 0, PCIE_SPREAD)]
    for each in np.unique(kinds).tolist():
        of_kind = kinds == each
        if each != Fabric.NETWORK and not each.startswith(Fabric.PCIE):
            found.append(_spread(EVERY, each, of_units[of_kind]))
        if each == Fabric.NETWORK:
            found.append(_spread(EVERY, each, of_groups[of_kind]))
            continue
        for name in np.unique(names[of_kind]).tolist():
            own = of_groups[of_kind & (names == name)]
            if len(own) >= FEW:
                found.append(_spread(name, each, own))
    return found


def _spread(scope: str, name: str, errors: Vector) -> EfficiencyRow:
    """Such that nine in ten lie inside, as a normal deviation."""
    spread = float(np.percentile(np.abs(errors), 90)) / NINE_IN_TEN
    return _row(SPREAD, scope, name, 1.0, len(errors), spread)


def refit(rows: Sequence[Collective]) -> list[EfficiencyRow]:
    """All constants of the phase from these rows alone, with spreads of rows left out."""
    of_groups = left_out_errors(rows, [fold_of(row.group) for row in rows])
    of_units = left_out_errors(rows, units(rows))
    for name, errors in (("group", of_groups), ("accelerator", of_units)):
        print(f"without the {name}: {len(rows)} rows, {_figures(errors)}")
    return constants(rows) + spreads(rows, of_groups, of_units)


def _figures(errors: Vector) -> str:
    wrong = 100 * np.abs(np.exp(errors) - 1)
    return f"MdAPE {np.median(wrong):.1f} % p90 {np.percentile(wrong, 90):.0f} %"


def without_folds(
    rows: Sequence[Collective], found: Iterable[EfficiencyRow]
) -> dict[int, list[EfficiencyRow]]:
    """Constants without each fold; the spreads stay, they are of rows left out already."""
    kept = [row for row in found if row.term == SPREAD]
    return {
        fold: constants([row for row in rows if fold_of(row.group) != fold]) + kept
        for fold in range(FOLDS)
    }


def not_fitted(tables: Tables) -> list[EfficiencyRow]:
    """Rows of other phases."""
    return [row for row in tables.efficiencies if row.phase != PHASE]


def shipped(rows: Sequence[Collective], _: Sequence[EfficiencyRow]) -> list[EfficiencyRow]:
    """As :func:`refit`: no constant of another phase is part of a link."""
    return refit(rows)


def measured(folder: Path, tables: Tables) -> list[Collective]:
    """All rows that can be predicted."""
    return list(collectives(measured_tables.read(folder, "collectives_measured"), tables))


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
    main()
