"""Quantities in the one form that the API server stores.

It writes ``1000m`` back as ``1`` and ``1024Mi`` as ``1Gi``. A child that spells them so is equal to
what is stored, and is not applied again and again.
Source: kubernetes/apimachinery, pkg/api/resource/quantity.go (CanonicalizeBytes).
"""

from __future__ import annotations

import math
import re
from decimal import ROUND_CEILING, Decimal

from poolwise.api.quantity import parse_quantity

_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_DECIMAL = {-9: "n", -6: "u", -3: "m", 0: "", 3: "k", 6: "M", 9: "G", 12: "T", 15: "P", 18: "E"}
_NANO = Decimal("1e-9")
_EXPONENT = re.compile(r"\d[eE][+-]?\d+$")


def canonical(text: str) -> str:
    """A quantity as the API server writes it; ValueError for what is none.

    >>> canonical("1000m"), canonical("0.5"), canonical("1.5Gi"), canonical("2000Mi")
    ('1', '500m', '1536Mi', '2000Mi')
    """
    value = parse_quantity(text)
    if text.endswith("i") and abs(value) >= 1024:
        return size(math.ceil(value))
    exponent, mantissa = _decimal_parts(value)
    if _EXPONENT.search(text):
        return f"{mantissa}e{exponent}" if exponent else str(mantissa)
    return f"{mantissa}{_DECIMAL[exponent]}"


def size(size_bytes: int) -> str:
    """Bytes with the largest binary suffix that leaves a whole number.

    >>> size(24 * 2**30), size(1536)
    ('24Gi', '1536')
    """
    if size_bytes % 1024:
        return canonical(str(size_bytes))  # without a suffix it is read as a decimal number
    power = 0
    while size_bytes and size_bytes % 1024 == 0 and power < len(_BINARY) - 1:
        size_bytes //= 1024
        power += 1
    return f"{size_bytes}{_BINARY[power]}"


def cores(count: float) -> str:
    """CPU cores, to the thousandth.

    >>> cores(7.5), cores(2.0)
    ('7500m', '2')
    """
    return canonical(f"{round(count * 1000)}m")


def _decimal_parts(value: Decimal) -> tuple[int, int]:
    """Exponent, a multiple of three, and whole mantissa."""
    nanos = int(value.quantize(_NANO, ROUND_CEILING).scaleb(9))
    exponent = -9
    while nanos and nanos % 1000 == 0 and exponent < 18:
        nanos //= 1000
        exponent += 3
    return (exponent, nanos) if nanos else (0, 0)
