"""The CEL rules of a schema, evaluated without the API server's own interpreter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from celpy.evaluation import CELEvalError

from poolwise.api.markers import VALIDATIONS
from poolwise.api.validation.cel import evaluate
from poolwise.api.validation.field_error import OMITTED, FieldError, Kind

Schema = Mapping[str, Any]


def broken_rules(value: Any, schema: Schema, path: str = "") -> Iterator[FieldError]:
    """A sentence for each rule that does not hold, from the outside in.

    Rules on a change (those that read ``oldSelf``) are left out: a file has no earlier state.
    """
    if value is None:
        return
    for validation in schema.get(VALIDATIONS, ()):
        if "oldSelf" not in validation["rule"]:
            yield from _broken_rule(value, schema, validation, path)
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from broken_rules(item, schema.get("items", {}), f"{path}[{index}]")
    elif isinstance(value, dict):
        yield from _broken_below(value, schema, path)


def _broken_below(value: dict[str, Any], schema: Schema, path: str) -> Iterator[FieldError]:
    properties, values = schema.get("properties", {}), schema.get("additionalProperties")
    for key, child in value.items():
        if key in properties:
            yield from broken_rules(child, properties[key], f"{path}.{key}" if path else key)
        elif values is not None:
            yield from broken_rules(child, values, f"{path}[{key}]")


def _broken_rule(
    value: Any, schema: Schema, validation: Mapping[str, str], path: str
) -> Iterator[FieldError]:
    field = (path + validation.get("fieldPath", "")).removeprefix(".")
    shown = OMITTED if schema.get("type") in ("object", "array") else value
    try:
        if not evaluate(validation["rule"], value):
            yield FieldError(field, Kind.INVALID, _message(validation, value), shown)
    except CELEvalError as error:
        yield FieldError(field, Kind.INVALID, f"{error} evaluating rule: {validation['rule']}")


def _message(validation: Mapping[str, str], value: Any) -> str:
    if "messageExpression" in validation:
        return str(evaluate(validation["messageExpression"], value))
    return validation["message"]
