"""What a kernel multiplies and in how many bytes it is kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from poolwise.errors import InvalidInput
from poolwise.model.formats import WEIGHT_BYTES, arithmetic
from poolwise.model.hardware import Device

SIXTEEN_BIT_BYTES = 2.0


@dataclass(frozen=True, slots=True)
class Precision:
    """Formats of a kernel's operands."""

    name: str
    """Part of the name of its constants."""
    arithmetic_format: str
    """The format whose unit of the device multiplies it."""
    weight_bytes: float
    activation_bytes: float


def _of_format(name: str, activation_bytes: float) -> Precision:
    return Precision(name, name, WEIGHT_BYTES[name], activation_bytes)


_ALL = (
    _of_format("bf16", SIXTEEN_BIT_BYTES),
    _of_format("fp16", SIXTEEN_BIT_BYTES),
    _of_format("fp8", 1.0),
    Precision("fp8_block", "fp8", 1.0, 1.0),
    _of_format("int8", 1.0),
    Precision("int8_wo", "bf16", 1.0, SIXTEEN_BIT_BYTES),
    Precision("int4_wo", "bf16", WEIGHT_BYTES["int4"], SIXTEEN_BIT_BYTES),
    Precision("mxfp4_wo", "bf16", WEIGHT_BYTES["mxfp4"], SIXTEEN_BIT_BYTES),
    Precision("mxfp4_fp8", "fp8", WEIGHT_BYTES["mxfp4"], 1.0),
    _of_format("mxfp4", WEIGHT_BYTES["mxfp4"]),
    _of_format("nvfp4", WEIGHT_BYTES["nvfp4"]),
)
PRECISIONS: Mapping[str, Precision] = {each.name: each for each in _ALL}
"""By name: ``_wo`` are weights alone, ``fp8_block`` has a scale per 128 x 128 weights."""


@dataclass(frozen=True, slots=True)
class Speeds:
    """Peaks of a device for one precision, and the bytes of its operands."""

    flops_per_second: float
    bytes_per_second: float
    weight_bytes: float
    activation_bytes: float


def speeds(device: Device, precision: Precision) -> Speeds:
    """Raises InvalidInput where no unit of the device multiplies the format."""
    unit = arithmetic(precision.arithmetic_format, device.peak_flops_per_second)
    if unit is None:
        raise InvalidInput(device.name, f"cannot multiply {precision.arithmetic_format}")
    return Speeds(
        device.peak_flops_per_second[unit],
        device.memory_bandwidth_bytes_per_second,
        precision.weight_bytes,
        precision.activation_bytes,
    )
