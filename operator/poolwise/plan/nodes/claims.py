"""What each label of a node says of its device, and whether all of them can be true together.

A claim names the devices of the shipped table that one label allows. The most trusted product
label comes first; every further claim may only narrow it. One device left: known. None left: the
two claims contradict each other, and both are named. Nothing is ever guessed.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from poolwise.plan.nodes.labels import (
    CAPABILITY_KEYS,
    FAMILY_KEY,
    MACHINE_TYPE_KEYS,
    MEMORY_KEYS,
    MEMORY_MIB_KEYS,
    PRODUCT_KEYS,
    first,
)
from poolwise.plan.wording import GIB, MIB, gib
from poolwise.tables import AcceleratorRow, Tables
from poolwise.tables.reading import fold

MEMORY_TOLERANCE = 0.08
"""Labels give the driver's total, the box's gigabytes or gibibytes, or a cloud's own figure.

For one device those differ by up to 7 % (an A10G is 22888, 23028 or 24576 MiB); the nearest
different sizes of one product (H100 with 80 and 94 GB) by 17 %.
"""
_NOTHING = frozenset({""})
"""What a claim allows that no device of the table meets."""


class HardwareReason(enum.StrEnum):
    """Why hardware is not known; reasons of the condition ``HardwareKnown``."""

    UNKNOWN_HARDWARE = "UnknownHardware"
    CONFLICTING_LABELS = "ConflictingLabels"
    UNKNOWN_ACCELERATOR = "UnknownAccelerator"


@dataclass(frozen=True, slots=True)
class HardwareProblem:
    """A reason, and one sentence with the values behind it."""

    reason: HardwareReason
    message: str


@dataclass(frozen=True, slots=True)
class LabelClaim:
    """What one label says: its text, and the devices that it allows."""

    text: str
    allows: frozenset[str]
    """Names of accelerators; empty: a value that the table does not know."""

    @property
    def is_of_a_device(self) -> bool:
        """Whether it says that there is some accelerator."""
        return self.allows != _NOTHING


def narrow(claims: list[LabelClaim], tables: Tables) -> AcceleratorRow | HardwareProblem:
    """The one device that all claims allow, or why there is none."""
    if not claims:
        return HardwareProblem(
            HardwareReason.UNKNOWN_HARDWARE, "no label says which device this is"
        )
    trusted, *others = claims
    if not trusted.allows:
        rest = next((f"; {each.text}" for each in others if len(each.allows) == 1), "")
        text = f"{trusted.text}, which is no device of the shipped table{rest}"
        return HardwareProblem(HardwareReason.UNKNOWN_HARDWARE, text)
    if trusted.allows == _NOTHING:
        return HardwareProblem(HardwareReason.UNKNOWN_HARDWARE, trusted.text)
    left, narrowed_by = trusted.allows, trusted
    for claim in others:
        if claim.allows and not left & claim.allows:
            return HardwareProblem(
                HardwareReason.CONFLICTING_LABELS, f"{narrowed_by.text}, but {claim.text}"
            )
        if claim.allows and not left <= claim.allows:
            left, narrowed_by = left & claim.allows, claim
    if len(left) > 1:
        names = ", ".join(sorted(left))
        return HardwareProblem(
            HardwareReason.UNKNOWN_HARDWARE, f"{trusted.text}, which can be any of {names}"
        )
    row = tables.accelerator(next(iter(left)))
    assert row is not None, "claims only name rows of the table"
    return row


def product_claims(labels: Mapping[str, str], tables: Tables) -> Iterator[LabelClaim]:
    """What product labels say, the most trusted first, then the machine type."""
    for key in PRODUCT_KEYS:
        if value := labels.get(key):
            rows = tables.accelerators.labelled(_whole_product(value))
            yield LabelClaim(f"label {key} says {value}", _names(rows))
    typed = first(labels, MACHINE_TYPE_KEYS)
    machine = tables.machine_type(typed[1]) if typed else None
    if typed and machine and machine.accelerator:
        text = f"machine type {typed[1]} has {machine.accelerator}"
        yield LabelClaim(text, frozenset({machine.accelerator}))
    elif typed and machine and machine.accelerators == 0:
        yield LabelClaim(f"machine type {typed[1]} has no accelerator", _NOTHING)


def property_claims(
    labels: Mapping[str, str], tables: Tables, is_cut: bool
) -> Iterator[LabelClaim]:
    """What labels of memory, compute capability and family leave possible.

    Where devices are cut into slices, the memory label speaks of a slice: no claim.
    """
    rows = tables.accelerators.rows
    stated = None if is_cut else memory_bytes(labels)
    if stated is not None:
        text, size_bytes = stated
        fits = frozenset(row.name for row in rows if _has_memory(row, size_bytes))
        yield LabelClaim(f"{text} ({gib(size_bytes)})", fits or _NOTHING)
    major, minor = (labels.get(key) for key in CAPABILITY_KEYS)
    if major and minor:
        able = frozenset(r.name for r in rows if r.compute_capability == f"{major}.{minor}")
        text = f"labels nvidia.com/gpu.compute.* say {major}.{minor}"
        yield LabelClaim(text, able or _NOTHING)
    if family := labels.get(FAMILY_KEY):
        related = frozenset(r.name for r in rows if fold(family) in fold(r.architecture))
        yield LabelClaim(f"label {FAMILY_KEY} says {family}", related)


def memory_bytes(labels: Mapping[str, str]) -> tuple[str, float] | None:
    """A label's memory of one device, with the label; None where no label tells it."""
    for keys, unit_bytes in ((MEMORY_MIB_KEYS, MIB), (MEMORY_KEYS, GIB)):
        found = first(labels, keys)
        digits = found[1].rstrip("GgiB") if found else ""
        if found and digits.isdecimal() and int(digits):
            return f"label {found[0]} says {found[1]}", int(digits) * unit_bytes
    return None


def mig_profile(product: str) -> str | None:
    """The MIG profile that GPU Feature Discovery appends to a product in strategy ``single``."""
    _, mark, profile = product.removesuffix("-SHARED").partition("-MIG-")
    return profile if mark else None


def _whole_product(value: str) -> str:
    return value.removesuffix("-SHARED").partition("-MIG-")[0]


def _has_memory(row: AcceleratorRow, size_bytes: float) -> bool:
    gibibytes = row.labelled_memory_bytes / 1e9 * GIB
    driver_bytes = (row.driver_memory_mib or 0) * MIB or gibibytes
    return abs(size_bytes / driver_bytes - 1) <= MEMORY_TOLERANCE


def _names(rows: tuple[AcceleratorRow, ...]) -> frozenset[str]:
    return frozenset(row.name for row in rows)
