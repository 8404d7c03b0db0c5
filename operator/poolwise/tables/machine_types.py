"""Clouds' machine types, from ``machine_types.csv``: accelerators, size, network and price.

A name with ``*`` (anything) or ``#`` (a number) stands for a whole family of CPU machines, whose
price is per vCPU; an exact name wins over a family, and a longer family over a shorter one.
Network figures are one way, all cards that the accelerators use together. Prices are dated
on-demand defaults of one region.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Self

from pydantic import Field, model_validator

from poolwise.tables.reading import Figure, Row, Table, fold, read_rows

FILE = "machine_types.csv"


class MachineTypeRow(Row):
    """One value of ``node.kubernetes.io/instance-type``, or a family of them."""

    cloud: str
    accelerator: str | None = None
    """Name in accelerators.csv."""
    accelerators: int | None = Field(None, ge=0)
    """None: any can be attached (Google's n1)."""
    vcpus: int | None = Field(None, gt=0)
    memory_bytes: Figure | None = None
    network_bytes_per_second: Figure
    link_bytes_per_second: Figure | None = None
    """Where this machine joins its accelerators faster than their row says (NVLink bridges)."""
    domain_accelerators: int | None = Field(None, gt=0)
    """Accelerators joined by that link, where not all of the node's or more than these."""
    cpu: str | None = None
    """Name in cpus.csv; None: several, or none of those."""
    threads_per_core: int | None = Field(None, gt=0)
    price_per_hour_usd: Figure | None = None
    price_per_vcpu_hour_usd: Figure | None = None
    price_source: str | None = None
    evidence: str
    source: str

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if (self.accelerator is None) is not (not self.accelerators):
            raise ValueError("accelerator and accelerators go together")
        priced = self.price_per_hour_usd or self.price_per_vcpu_hour_usd
        if (priced is None) is not (self.price_source is None):
            raise ValueError("a price needs a source with a date, and the other way round")
        return self

    def price_of(self, vcpus: float) -> float | None:
        """US dollars per hour of a machine of this type with ``vcpus``; None: not known."""
        if self.price_per_vcpu_hour_usd is not None:
            return self.price_per_vcpu_hour_usd * vcpus
        return self.price_per_hour_usd


class MachineTypes(Table[MachineTypeRow]):
    """All machine types; :meth:`find` knows families too."""

    def __init__(self, rows: Iterable[MachineTypeRow]) -> None:
        super().__init__(FILE, rows)
        families = [row for row in self.rows if set("*#") & set(row.name)]
        families.sort(key=lambda row: len(row.name), reverse=True)
        self._families = [(_pattern(row.name), row) for row in families]

    def find(self, name: str) -> MachineTypeRow | None:
        """The row of that machine type, or of the family it belongs to, or None."""
        folded = fold(name)
        exact = super().find(name)
        if exact is not None:
            return exact
        return next((row for pattern, row in self._families if pattern.fullmatch(folded)), None)


def _pattern(family: str) -> re.Pattern[str]:
    escaped = re.escape(fold(family))
    return re.compile(escaped.replace(r"\*", "[a-z0-9-]+").replace(r"\#", "[0-9]+"))


def load() -> MachineTypes:
    """Read the shipped table."""
    return MachineTypes(read_rows(FILE, MachineTypeRow))
