"""Quantities and durations: text on the wire, a number in Python."""

from __future__ import annotations

import re
import reprlib
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, core_schema

from poolwise.api.markers import INT_OR_STRING, Rule

_SUFFIXES = {
    **{"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18},
}
_BINARY_SUFFIXES = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_QUANTITY = re.compile(
    r"([+-]?(?:\d+\.?\d*|\.\d+))(?:([KMGTPE]i|[numkMGTPE]?)|[eE]([+-]?\d+))",
    re.ASCII,  # Python reads the digits of every script as numbers, Kubernetes does not
)
_SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
_DURATION_PART = re.compile(r"(\d+(?:\.\d+)?)(h|ms|m|us|ns|s)")
_DURATION = (
    r"^([0-9]{1,6}([.][0-9]{1,6})?h)?([0-9]{1,7}([.][0-9]{1,6})?m)?([0-9]{1,9}([.][0-9]{1,6})?s)?"
    r"([0-9]{1,12}([.][0-9]{1,6})?ms)?([0-9]{1,12}([.][0-9]{1,6})?us)?([0-9]{1,12}ns)?$"
)
"""Largest unit first, and never so many digits that Go's 292 years overflow."""
QUANTITY_LENGTH = 32
DURATION_LENGTH = 32
_SHOWN = reprlib.Repr()
"""What was given, as far as a sentence repeats it: statuses have an end."""
_SHOWN.maxstring = 80


def parse_quantity(text: str | int | float) -> Decimal:
    """The number that a Kubernetes quantity stands for; ValueError if it is none.

    Syntax: https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/.

    >>> parse_quantity("450G"), parse_quantity("32Ki"), parse_quantity("1500m")
    (Decimal('450000000000'), Decimal('32768'), Decimal('1.500'))
    """
    match = _QUANTITY.fullmatch(str(text))
    if match is None:
        raise ValueError(f"{_SHOWN.repr(text)} is not a quantity such as 450G, 32Ki or 12.5")
    digits, suffix, exponent = match.groups()
    if suffix in _BINARY_SUFFIXES:
        return Decimal(digits) * (1 << _BINARY_SUFFIXES[suffix])
    power = int(exponent) if exponent else _SUFFIXES[suffix or ""]
    try:
        return Decimal(digits).scaleb(power)
    except InvalidOperation:
        raise ValueError(f"{_SHOWN.repr(text)} is out of the range of a quantity") from None


def parse_duration(text: str) -> float:
    """Seconds of a Kubernetes duration; ValueError if it is none.

    >>> parse_duration("1h30m"), parse_duration("500ms")
    (5400.0, 0.5)
    """
    if not text or re.match(_DURATION, text) is None:
        raise ValueError(f"{_SHOWN.repr(text)} is not a duration such as 30m, 500ms or 1h30m")
    return sum(float(number) * _SECONDS[unit] for number, unit in _DURATION_PART.findall(text))


def format_duration(seconds: float) -> str:
    """The shortest duration of one unit that reads back as ``seconds``.

    >>> format_duration(1800.0), format_duration(0.25)
    ('30m', '250ms')
    """
    unit = next(unit for unit, size in _SECONDS.items() if seconds % size == 0 or unit == "ns")
    return f"{round(seconds / _SECONDS[unit])}{unit}"


@dataclass(frozen=True, slots=True)
class Quantity:
    """Marks a float that is written as a quantity, with the range that the API server allows."""

    minimum: str
    maximum: str
    such_as: str

    def rule(self) -> Rule:
        """The range as CEL; ``string(self)`` because a quantity may be written as an integer."""
        value = "quantity(string(self))"
        return Rule(
            f"isQuantity(string(self)) && {value}.compareTo(quantity('{self.minimum}')) >= 0"
            f" && {value}.compareTo(quantity('{self.maximum}')) <= 0",
            f"must be a quantity from {self.minimum} to {self.maximum}, such as {self.such_as}",
        )

    def __get_pydantic_core_schema__(
        self, source: type[Any], handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.no_info_before_validator_function(
            self._number, core_schema.float_schema()
        )

    def _number(self, text: str | int | float) -> float:
        number = parse_quantity(text)
        if not parse_quantity(self.minimum) <= number <= parse_quantity(self.maximum):
            raise ValueError(self.rule().message)
        return float(number)

    def __get_pydantic_json_schema__(
        self, core: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {
            INT_OR_STRING: True,
            "maxLength": QUANTITY_LENGTH,
            "x-kubernetes-validations": [self.rule().as_validation()],
        }


@dataclass(frozen=True, slots=True)
class Duration:
    """Marks a float, in seconds, that is written as a duration, with its allowed range."""

    minimum: str
    maximum: str
    such_as: str

    def rule(self) -> Rule:
        """The range as CEL, guarded so that nothing unreadable reaches ``duration()``."""
        return Rule(
            f"self != '' && self.matches('{_DURATION}')"
            f" && duration(self) >= duration('{self.minimum}')"
            f" && duration(self) <= duration('{self.maximum}')",
            f"must be a duration from {self.minimum} to {self.maximum}, such as {self.such_as}",
        )

    def __get_pydantic_core_schema__(
        self, source: type[Any], handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.no_info_before_validator_function(
            self._seconds, core_schema.float_schema()
        )

    def _seconds(self, text: str) -> float:
        seconds = parse_duration(str(text))
        if not parse_duration(self.minimum) <= seconds <= parse_duration(self.maximum):
            raise ValueError(self.rule().message)
        return seconds

    def __get_pydantic_json_schema__(
        self, core: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {
            "type": "string",
            "minLength": 1,
            "maxLength": DURATION_LENGTH,
            "x-kubernetes-validations": [self.rule().as_validation()],
        }
