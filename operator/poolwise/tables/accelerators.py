"""Accelerators: one row per device, from ``accelerators.csv``.

Figures are dense (sparse marketing figures halved), links one way per accelerator (duplex totals
halved), and ``evidence`` says which were read and which recalled. A price is a dated default, on
demand from a large cloud where one is known, so that rows compare; the same chip spans a factor of
4.6 between sellers, so an AcceleratorPool overrides it.

Memory, three figures: what the box says (``labelled_memory_bytes``), what the driver reports as
total and feature discovery repeats in ``nvidia.com/gpu.memory`` (``driver_memory_mib``), and what a
program can allocate, the total less the driver's own reservation, which is what cudaMemGetInfo and
PyTorch's "total capacity" say (``usable_memory_mib``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Self

from pydantic import model_validator

from poolwise.tables.reading import Figure, Names, Row, Table, fold, read_rows, unique_index

FILE = "accelerators.csv"
FORMATS = ("fp32", "tf32", "bf16", "fp16", "fp8", "int8", "fp4")
MIB = 2**20

USABLE_FRACTION = 0.97
"""Usable over what the driver reports as total, where nobody reported the former; over labelled
bytes (GB = 10^9), where nobody reported the total either.

The least of the rows that do report them (T4, 0.972 and 0.978) rounded down, so that an unreported
device is never overfilled; a test holds it against the table. The total comes first, since labels
differ: of 24 GB the driver reports 22.5 GiB on an A10, and 24 on an RTX-3090.
"""


class AcceleratorRow(Row):
    """One device as its maker, its driver and measurements describe it."""

    vendor: str
    architecture: str
    """As the maker names it, e.g. ``Hopper``."""
    family: str
    """Devices that share measured efficiencies: ``hopper``, ``ampere-dc``, ``cdna3``, ..."""
    compute_capability: str | None = None
    """CUDA's ``major.minor``, as in the ``nvidia.com/gpu.compute.*`` labels."""
    form_factor: str
    resource: str
    """Extended resource that its device plugin advertises."""
    product_labels: Names = ()
    """Label values that mean this device and no other."""
    short_names: Names = ()
    """Label values that several devices share, told apart by memory or machine type."""
    labelled_memory_bytes: Figure
    driver_memory_mib: Figure | None = None
    usable_memory_mib: Figure | None = None
    memory_bandwidth_bytes_per_second: Figure
    fp32_flops_per_second: Figure | None = None
    tf32_flops_per_second: Figure | None = None
    bf16_flops_per_second: Figure | None = None
    fp16_flops_per_second: Figure | None = None
    fp8_flops_per_second: Figure | None = None
    int8_flops_per_second: Figure | None = None
    fp4_flops_per_second: Figure | None = None
    matmul_bf16_flops_per_second: Figure | None = None
    matmul_fp8_flops_per_second: Figure | None = None
    """Ceiling of a large matrix product that somebody measured (MAMF)."""
    link: str
    link_bytes_per_second: Figure
    """To all peers of the scale-up domain together."""
    peer_bytes_per_second: Figure | None = None
    """To one peer, where the fabric is a mesh and that is less; None: the whole link."""
    link_is_switched: bool
    """NVLink, xGMI, ICI or the like (true) against PCIe through the host (false)."""
    accelerators_per_node: int
    """In the usual machine; the largest, where several are sold."""
    domain_accelerators: int | None = None
    """Joined by the link beyond one node; None: those of a node."""
    mig_compute_slices: int | None = None
    mig_memory_slices: int | None = None
    """Into how many parts MIG cuts the device; None: it has no MIG."""
    inference_only_reason: str | None = None
    """Why nobody trains on it, as a clause after its name; None: training runs on it."""
    power_watts: Figure
    released_year: Figure | None = None
    """When the first machines could be had, good to a quarter (recalled from announcements): how
    old software is on a device is what its maturity goes with."""
    price_per_hour_usd: Figure | None = None
    price_source: str | None = None
    """Seller and date; present exactly with a price."""
    evidence: str
    source: str
    note: str | None = None

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if not self.peak_flops_per_second.keys() & {"bf16", "fp16", "fp32"}:
            raise ValueError("has no floating-point rate")
        if (self.price_per_hour_usd is None) is not (self.price_source is None):
            raise ValueError("a price needs a source with a date, and the other way round")
        return self

    @property
    def peak_flops_per_second(self) -> Mapping[str, float]:
        """Dense peak by format; a format without a unit is absent."""
        return self._figures("{}_flops_per_second", FORMATS)

    @property
    def matmul_flops_per_second(self) -> Mapping[str, float]:
        """Measured ceiling by format, where anybody measured one."""
        return self._figures("matmul_{}_flops_per_second", ("bf16", "fp8"))

    @property
    def usable_memory_bytes(self) -> float:
        """What a program can allocate; a stated fraction of the total where nobody reported it."""
        if self.usable_memory_mib is not None:
            return self.usable_memory_mib * MIB
        if self.driver_memory_mib is not None:
            return self.driver_memory_mib * MIB * USABLE_FRACTION
        return self.labelled_memory_bytes * USABLE_FRACTION

    def _figures(self, column: str, formats: Iterable[str]) -> dict[str, float]:
        every = {name: getattr(self, column.format(name)) for name in formats}
        return {name: value for name, value in every.items() if value is not None}


class Accelerators(Table[AcceleratorRow]):
    """All accelerators, by name and by what labels call them."""

    def __init__(self, rows: Iterable[AcceleratorRow]) -> None:
        super().__init__(FILE, rows)
        self.resources = frozenset(row.resource for row in self.rows)
        self._by_label = unique_index(
            FILE, self.rows, lambda row: (row.name, *row.aliases, *row.product_labels)
        )

    def labelled(self, value: str) -> tuple[AcceleratorRow, ...]:
        """Devices that a label's value can mean: one, several for a short name, or none."""
        exact = self._by_label.get(fold(value)) or self._by_label.get(_without_vendor(value))
        if exact is not None:
            return (exact,)
        wanted = {fold(value), _without_vendor(value)}
        return tuple(row for row in self.rows if wanted & set(map(fold, row.short_names)))

    def meant(self, name: str) -> tuple[AcceleratorRow, ...]:
        """Devices that a person means: the one of that name or label, else all that the short name
        stands for or whose name it begins (``H100``, ``A100-SXM4``, ``TPU``); none: unknown."""
        row = self.find(name)
        if row is not None:
            return (row,)
        whole = f"{_without_vendor(name)}-"
        begun = [row for row in self.rows if fold(row.name).startswith(whole)]
        every = {*self.labelled(name), *begun} if whole != "-" else set()
        return tuple(row for row in self.rows if row in every)


def _without_vendor(value: str) -> str:
    folded = fold(value)
    for prefix in ("nvidia-", "tesla-", "amd-", "instinct-"):
        folded = folded.removeprefix(prefix)
    return folded


def load() -> Accelerators:
    """Read the shipped table."""
    return Accelerators(read_rows(FILE, AcceleratorRow))
