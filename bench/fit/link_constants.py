"""Constants of links, fitted: those inside a domain by operation and family, and the network."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from bench.accuracy import Vector
from bench.collective_runs import Collective
from bench.fit.levels import Factored, Levels, Values
from bench.fit.rows import Behind
from bench.fit.rows import constant_row as keyed_row
from bench.tables import Row
from poolwise.model.collectives import (
    PHASE,
    across_seconds,
    inside_link,
    kind_of,
    network_share_bytes_per_second,
    nominal_bytes_per_second,
)
from poolwise.model.efficiency import EVERY, Calibration
from poolwise.model.links import (
    LAUNCHED_BY_HOST,
    Fabric,
    Implementation,
    Link,
    Operation,
    fabric,
    growth,
    sums_in_switch,
)
from poolwise.tables.efficiencies import EfficiencyRow

SOURCE = (
    "collectives_measured: aiconfigurator, ml-engineering, dgxc-benchmarking, nccl-tests, Vidur"
)
VOICE = 25
"""Rows of a group beyond which it counts no more: a sweep over sizes is one configuration."""
ONE_SHOT = (Implementation.GRAPH, Implementation.TRTLLM)
"""Kernels of engines, which may also reduce in one shot."""
IN_SWITCH_FAMILIES = ("hopper", "blackwell")
"""Their switch adds what passes (NVLink SHARP: third generation NVSwitch and later)."""


def terms(fabric_width: float) -> dict[str, Factored]:
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
    **terms(0.1),
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
        groups = [row.group for row in rows]
        self._known = self.levels.covariance(self._predict, found, measured, weights, groups)
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
        behind = self._behind(row for row in self.rows if self._is_of(row, name, family))
        if not behind.count and (family is not None or launched is not Implementation.NCCL):
            return []
        terms = [*LINK_TERMS, *(["shot_seconds"] if launched in ONE_SHOT else [])]
        if self.kind is Fabric.SWITCHED and family in IN_SWITCH_FAMILIES:
            terms.append("in_switch_gain")
        scope = family or EVERY
        return [self._row(term, scope, name, levels, behind) for term in terms]

    def _of_host(self, families: Sequence[str]) -> list[EfficiencyRow]:
        found = []
        for implementation in LAUNCHED_BY_HOST:
            name = f"{self.kind}/{implementation}"
            for family in (None, *families):
                levels: dict[str, object] = {"implementation": implementation}
                if family is not None:
                    levels["host_family"] = (family, implementation)
                behind = self._behind(
                    row
                    for row in self.rows
                    if row.implementation is implementation
                    and family in (None, row.machine.device.family)
                )
                if behind.count or family is None:
                    scope = family or EVERY
                    found.append(self._row("host_seconds", scope, name, levels, behind))
        return found

    def _behind(self, chosen: Iterable[Collective]) -> Behind:
        return Behind.of((each.row for each in chosen), (each.row for each in self.rows))

    def _row(
        self, term: str, scope: str, name: str, levels: Mapping[str, object], behind: Behind
    ) -> EfficiencyRow:
        spread = self.levels.deviation(self._known, term, levels)
        return constant_row(term, scope, name, self._value(term, levels), behind, spread)

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


def _across(rows: Sequence[Collective], inside: Calibration) -> Callable[[Values], Vector]:
    """ln(seconds) of each row at some constants of the network."""
    links = [inside_link(row.operation, row.members, row.machine, inside) for row in rows]
    shares = [network_share_bytes_per_second(row.machine.interconnect) for row in rows]

    def predict(values: Values) -> Vector:
        columns = zip(*(values[term].tolist() for term in NETWORK_TERMS), strict=True)
        seconds = [
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
        return np.log(seconds)

    return predict


def network(
    rows: Sequence[Collective], inside: Calibration, every: Sequence[Row]
) -> list[EfficiencyRow]:
    """Constants across nodes, given those inside; ``every`` row was looked through."""
    predict = _across(rows, inside)
    levels = Levels(NETWORK_TERMS, [{} for _ in rows])
    measured = np.log([row.seconds for row in rows])
    of_group = Counter(row.group for row in rows)
    weights = np.array([min(1.0, VOICE / of_group[row.group]) for row in rows])
    found = levels.fit(predict, measured, weights) if rows else np.zeros(len(NETWORK_TERMS))
    groups, behind = [row.group for row in rows], Behind.of((row.row for row in rows), every)
    known = (
        levels.covariance(predict, found, measured, weights, groups)
        if rows
        else np.diag(levels.widths**2)
    )
    return [
        constant_row(
            term,
            EVERY,
            Fabric.NETWORK,
            factored.start * math.exp(value),
            behind,
            levels.deviation(known, term, {}),
        )
        for (term, factored), value in zip(NETWORK_TERMS.items(), found.tolist(), strict=True)
    ]


def constant_row(
    term: str, scope: str, number_format: str, value: float, behind: Behind, spread: float
) -> EfficiencyRow:
    """Of this phase."""
    key = (PHASE, term, scope, number_format)
    return keyed_row(key, value, behind, spread, SOURCE)
