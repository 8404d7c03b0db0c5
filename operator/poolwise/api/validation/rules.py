"""The CEL rules of a schema, evaluated without the API server's own interpreter."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from celpy.adapter import json_to_cel
from celpy.evaluation import CELEvalError

from poolwise.api.markers import VALIDATIONS
from poolwise.api.validation.cel import evaluate
from poolwise.api.validation.field_error import OMITTED, FieldError, Kind

Schema = Mapping[str, Any]

_REMEMBERED = 4096
"""Verdicts kept: manifests repeat themselves, and the interpreter takes a millisecond a rule."""


def broken_rules(value: Any, schema: Schema, path: str = "") -> Iterator[FieldError]:
    """A sentence for each rule that does not hold, from the outside in.

    Rules on a change (those that read ``oldSelf``) are left out: a file has no earlier state.
    """
    if value is None:
        return
    rules = [rule for rule in schema.get(VALIDATIONS, ()) if "oldSelf" not in rule["rule"]]
    if rules:
        shown = OMITTED if schema.get("type") in ("object", "array") else value
        written = json.dumps(value)
        for rule in rules:
            message, expression = rule.get("message", ""), rule.get("messageExpression", "")
            if problem := _problem(written, rule["rule"], message, expression):
                field = (path + rule.get("fieldPath", "")).removeprefix(".") or "<nil>"
                yield FieldError(field, Kind.INVALID, problem, shown)
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


@lru_cache(_REMEMBERED)
def _problem(written: str, rule: str, message: str, expression: str) -> str | None:
    """What a rule says of a value, given as JSON; None where it holds."""
    self_value = json_to_cel(json.loads(written))
    try:
        if evaluate(rule, self_value):
            return None
        if expression:
            message = str(evaluate(expression, self_value))
            return message if "\n" not in message else f"failed rule: {rule}"
    except CELEvalError as error:
        return f"{error} evaluating rule: {rule}"
    return message
