"""Number formats: bytes per weight, and the arithmetic that a device does them in."""

from __future__ import annotations

from collections.abc import Mapping

from poolwise.errors import InvalidInput

WEIGHT_BYTES: Mapping[str, float] = {
    "fp32": 4.0,
    "tf32": 4.0,
    "bf16": 2.0,
    "fp16": 2.0,
    "fp8": 1.0,
    "int8": 1.0,
    "int4": 0.53,  # 4 bits and a 16-bit scale and zero point per 128
    "mxfp4": 0.53125,  # 4 bits and an 8-bit exponent per 32 (OCP Microscaling)
    "nvfp4": 0.5625,  # 4 bits and an fp8 scale per 16
}
"""Stored bytes of one parameter, scales included."""

ARITHMETIC: Mapping[str, tuple[str, ...]] = {
    "fp32": ("tf32", "fp32"),
    "tf32": ("tf32", "fp32"),
    "bf16": ("bf16", "fp32"),
    "fp16": ("fp16", "bf16", "fp32"),
    "fp8": ("fp8",),
    "int8": ("int8",),
    "nvfp4": ("fp4",),
    "mxfp4": ("fp4",),
    "int4": (),
}
"""Units of a device that multiply a format, best first; none of them: not natively."""

SIXTEEN_BITS = ("bf16", "fp16")
"""Interchangeable where weights are only read: they cost the same, and engines cast them."""

STANDS_IN: Mapping[str, str] = {"fp16": "bf16"}
"""For a format of which nothing was measured, the one whose figures hold for it: both are
multiplied on the same units, at the same peak on every device of ``accelerators.csv`` that has both
but Gaudi 3."""

LAST_RESORT: Mapping[str, str] = {"int8": "fp8"}
"""For a format of which nothing was measured, where no constant holds for all: the one of as many
bits. Training in int8 (TPUs) casts and scales as training in fp8 does."""


def weight_bytes(weight_format: str) -> float:
    """Stored bytes of one parameter. Raises InvalidInput for a format nobody knows."""
    try:
        return WEIGHT_BYTES[weight_format]
    except KeyError:
        allowed = ", ".join(WEIGHT_BYTES)
        raise InvalidInput("format", f"{weight_format!r} is unknown, allowed: {allowed}") from None


def native_arithmetic(weight_format: str, peaks: Mapping[str, float]) -> str | None:
    """The unit that multiplies this format on a device with these peaks; None if it has none."""
    return next((unit for unit in ARITHMETIC.get(weight_format, ()) if unit in peaks), None)


def arithmetic(weight_format: str, peaks: Mapping[str, float]) -> str | None:
    """The unit used: native, else the 16-bit one that weights are expanded for, else fp32."""
    native = native_arithmetic(weight_format, peaks)
    if native is not None:
        return native
    return next((unit for unit in ("bf16", "fp16", "tf32", "fp32") if unit in peaks), None)


def sixteen_bit_format(published: str, peaks: Mapping[str, float]) -> str:
    """The 16-bit format that weights are kept in on a device with these peaks.

    As published where the device multiplies it (bf16 for weights published in more or fewer bits),
    else the other one where it multiplies that: bf16 weights on Turing, fp16 ones on a CPU with
    bf16 alone. A device with neither expands either of them.
    """
    own = published if published in SIXTEEN_BITS else "bf16"
    return next((each for each in (own, *SIXTEEN_BITS) if each in peaks), own)


def master_format(precision: str) -> str:
    """Format of the weights in training: products of 8 bits and less cast from 16."""
    return "bf16" if weight_bytes(precision) < 2 else precision
