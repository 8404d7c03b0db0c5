"""Nodes and pods of openb."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Pod:
    """What one pod asks for."""

    cores_milli: int
    memory_mib: int
    accelerators: int


@dataclass(frozen=True, slots=True)
class Machine:
    """One node, empty."""

    name: str
    model: str
    cores_milli: int
    memory_mib: int
    accelerators: int
