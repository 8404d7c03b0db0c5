"""CEL with the functions that Kubernetes adds, as far as the rules of this API use them."""

from __future__ import annotations

from decimal import Decimal
from functools import cache
from typing import Any

import celpy
from celpy import celtypes
from celpy.evaluation import CELEvalError

from poolwise.api.quantity import parse_quantity


class _Quantity:
    """What ``quantity()`` returns: opaque but for ``compareTo``."""

    def __init__(self, number: Decimal) -> None:
        self.number = number


def _is_quantity(text: celtypes.StringType) -> celtypes.BoolType:
    try:
        parse_quantity(str(text))
    except ValueError:
        return celtypes.BoolType(False)
    return celtypes.BoolType(True)


def _quantity(text: celtypes.StringType) -> Any:
    try:
        return _Quantity(parse_quantity(str(text)))
    except ValueError as error:
        return CELEvalError(str(error))


def _compare_to(left: _Quantity, right: _Quantity) -> celtypes.IntType:
    return celtypes.IntType((left.number > right.number) - (left.number < right.number))


def _format(text: celtypes.StringType, values: celtypes.ListType) -> celtypes.StringType:
    return celtypes.StringType(str(text) % tuple(values))


_FUNCTIONS: dict[str, Any] = {
    "isQuantity": _is_quantity,
    "quantity": _quantity,
    "compareTo": _compare_to,
    "format": _format,
}


@cache
def _environment() -> celpy.Environment:
    """Its grammar takes a while to build, and most commands never need it."""
    return celpy.Environment()


@cache
def _program(expression: str) -> celpy.Runner:
    return _environment().program(_environment().compile(expression), functions=_FUNCTIONS)


def evaluate(expression: str, self_value: celtypes.Value) -> Any:
    """The value of a rule or a message, given ``self``; raises CELEvalError."""
    return _program(expression).evaluate({"self": self_value})
