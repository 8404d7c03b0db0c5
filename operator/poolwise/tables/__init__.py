"""What is known of hardware and models: one row each, unit in the column, source and date beside.

Belongs here: figures from outside, read once, checked, and handed to the pure code as immutable
values. No formulas: those are in :mod:`poolwise.model`.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

from poolwise.errors import TableError
from poolwise.tables import accelerators, cpus, efficiencies, machine_types, models, residuals
from poolwise.tables.accelerators import AcceleratorRow, Accelerators
from poolwise.tables.cpus import CpuRow, Cpus
from poolwise.tables.efficiencies import EfficiencyRow
from poolwise.tables.machine_types import MachineTypeRow, MachineTypes
from poolwise.tables.models import ModelRow, Models
from poolwise.tables.residuals import ResidualRow

__all__ = [
    "AcceleratorRow",
    "CpuRow",
    "EfficiencyRow",
    "MachineTypeRow",
    "ModelRow",
    "Tables",
    "load",
]


@dataclass(frozen=True, slots=True)
class Tables:
    """All shipped tables. Names are found in any case and by alias."""

    accelerators: Accelerators
    cpus: Cpus
    machine_types: MachineTypes
    models: Models
    efficiencies: tuple[EfficiencyRow, ...]
    residuals: tuple[ResidualRow, ...]

    def accelerator(self, name: str) -> AcceleratorRow | None:
        """The accelerator of that name, or None."""
        return self.accelerators.find(name)

    def cpu(self, name: str) -> CpuRow | None:
        """The CPU of that name, or None."""
        return self.cpus.find(name)

    def machine_type(self, name: str) -> MachineTypeRow | None:
        """The cloud's machine type of that name, or the family it belongs to, or None."""
        return self.machine_types.find(name)

    def model(self, name: str) -> ModelRow | None:
        """The model of that name, or None."""
        return self.models.find(name)


@functools.cache
def load() -> Tables:
    """Read and cross-check every shipped table, once per process."""
    tables = Tables(
        accelerators.load(),
        cpus.load(),
        machine_types.load(),
        models.load(),
        efficiencies.load(),
        residuals.load(),
    )
    for machine in tables.machine_types:
        _check_names(machine, tables)
    return tables


def _check_names(machine: MachineTypeRow, tables: Tables) -> None:
    if machine.accelerator and tables.accelerator(machine.accelerator) is None:
        raise TableError(f"{machine.name}: no accelerator is named {machine.accelerator}")
    if machine.cpu and tables.cpu(machine.cpu) is None:
        raise TableError(f"{machine.name}: no CPU is named {machine.cpu}")
