"""Compute against memory bandwidth: reachable rates, and the ridge between them.

A piece of work that needs F FLOPs and moves B bytes takes at least ``max(F/peak, B/bandwidth)``
(Williams, Waterman and Patterson 2009). It is bound by memory while its intensity F/B is below
the ridge ``peak/bandwidth``.
"""

from __future__ import annotations

from dataclasses import dataclass

from poolwise.errors import InvalidInput
from poolwise.model.formats import STANDS_IN, arithmetic
from poolwise.model.hardware import Device

UNMEASURED_CEILING = 0.78
"""Reachable fraction of peak of a large matrix product: median of the devices where it was
measured, from 0.51 (MI300X) to 0.97 (Gaudi2)."""


@dataclass(frozen=True, slots=True)
class Rates:
    """What a device reaches."""

    flops_per_second: float
    bytes_per_second: float

    def seconds(self, flops: float, moved_bytes: float) -> float:
        """Time of work whose transfers hide behind its arithmetic, or the other way round."""
        return max(flops / self.flops_per_second, moved_bytes / self.bytes_per_second)


def peak_flops_per_second(device: Device, number_format: str) -> float:
    """Of the data sheet, in the unit that multiplies this format (:func:`arithmetic`).

    Raises InvalidInput where no unit can do it.
    """
    return device.peak_flops_per_second[_unit(device, number_format)]


def ceiling_flops_per_second(device: Device, number_format: str) -> float:
    """What a large matrix product reaches: measured, else scaled from a format that was measured.

    ``number_format`` may be one the device has no unit for: then it runs in a wider one.
    Raises InvalidInput where no unit can do it.
    """
    unit = _unit(device, number_format)
    measured = device.matmul_flops_per_second.get(unit)
    if measured is not None:
        return measured
    return device.peak_flops_per_second[unit] * _reachable_fraction(device, unit)


def ridge_point(device: Device, number_format: str) -> float:
    """FLOP per byte where peak compute and bandwidth balance."""
    unit = arithmetic(number_format, device.peak_flops_per_second)
    peak = device.peak_flops_per_second.get(unit or "", 0.0)
    return peak / device.memory_bandwidth_bytes_per_second


def _unit(device: Device, number_format: str) -> str:
    unit = arithmetic(number_format, device.peak_flops_per_second)
    if unit is None:
        known = ", ".join(device.peak_flops_per_second)
        raise InvalidInput(device.name, f"cannot multiply {number_format}; it has {known}")
    return unit


def _reachable_fraction(device: Device, unit: str) -> float:
    """Of a unit that nobody measured: that of the format that stands in for it, else the mean."""
    fractions = {
        known: measured / device.peak_flops_per_second[known]
        for known, measured in device.matmul_flops_per_second.items()
        if known in device.peak_flops_per_second
    }
    if not fractions:
        return UNMEASURED_CEILING
    mean = sum(fractions.values()) / len(fractions)
    return fractions.get(STANDS_IN.get(unit, unit), mean)
