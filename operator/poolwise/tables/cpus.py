"""Server CPUs: one row per model, from ``cpus.csv``. Figures are per socket, good to 20 %."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, Self

from pydantic import model_validator

from poolwise.tables.reading import Figure, Names, Row, Table, read_rows

FILE = "cpus.csv"


class CpuRow(Row):
    """One CPU model."""

    vendor: str
    architecture: Literal["amd64", "arm64"]
    """As in the node label ``kubernetes.io/arch``."""
    generation: str
    nfd_models: Names = ()
    """``vendor/family/id`` as in the labels ``feature.node.kubernetes.io/cpu-model.*``."""
    cores_per_socket: int
    """Physical cores."""
    memory_bandwidth_bytes_per_second: Figure
    fp32_flops_per_second: Figure
    bf16_flops_per_second: Figure
    int8_flops_per_second: Figure
    bf16_unit: str
    """Instructions behind the bf16 figure; ``none``: it runs at the fp32 rate."""
    power_watts: Figure
    price_per_vcpu_hour_usd: Figure | None = None
    """On demand, in a general-purpose machine with 4 GiB per vCPU."""
    price_source: str | None = None
    evidence: str
    source: str

    @model_validator(mode="after")
    def _price_has_source(self) -> Self:
        if (self.price_per_vcpu_hour_usd is None) is not (self.price_source is None):
            raise ValueError("a price needs a source with a date, and the other way round")
        return self

    @property
    def peak_flops_per_second(self) -> Mapping[str, float]:
        """Dense peak by format, per socket."""
        return {
            "fp32": self.fp32_flops_per_second,
            "bf16": self.bf16_flops_per_second,
            "int8": self.int8_flops_per_second,
        }

    @property
    def memory_bandwidth_per_core(self) -> float:
        """Bytes per second; what tells weak from strong for token generation."""
        return self.memory_bandwidth_bytes_per_second / self.cores_per_socket


class Cpus(Table[CpuRow]):
    """All CPUs."""

    def __init__(self, rows: Iterable[CpuRow]) -> None:
        super().__init__(FILE, rows)

    def detected(self, nfd_model: str) -> CpuRow | None:
        """The CPU that Node Feature Discovery means by ``vendor/family/id``, or None."""
        return next((row for row in self.rows if nfd_model in row.nfd_models), None)

    def weakest(self, architecture: str) -> CpuRow | None:
        """The slowest known CPU of an architecture, core for core; None: none is known.

        Slowest in bf16 arithmetic, then in memory bandwidth: what an unknown CPU at least does.
        The empty architecture stands for any.
        """
        same = [row for row in self.rows if architecture in ("", row.architecture)]
        return min(same, key=_strength_per_core, default=None)


def _strength_per_core(row: CpuRow) -> tuple[float, float]:
    return row.bf16_flops_per_second / row.cores_per_socket, row.memory_bandwidth_per_core


def load() -> Cpus:
    """Read the shipped table."""
    return Cpus(read_rows(FILE, CpuRow))
