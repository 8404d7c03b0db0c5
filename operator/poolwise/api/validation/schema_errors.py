"""Types, bounds, enums and required fields, as ``kube-openapi/pkg/validation`` checks them.

All checks that apply to a value run, also after one failed: a number where an enum is expected is
of the wrong type and none of its values.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from poolwise.api.markers import INT_OR_STRING
from poolwise.api.validation.decoding import fits_int64
from poolwise.api.validation.field_error import OMITTED, FieldError, Kind

Schema = Mapping[str, Any]
PLAIN_DIGITS = 6
"""Of a float, shown without an exponent."""


def schema_errors(value: Any, schema: Schema, path: str = "") -> Iterator[FieldError]:
    """Everything that the schema forbids in ``value`` and below, in the order of the server."""
    yield from _type_errors(value, schema, path)
    if isinstance(value, str):
        yield from _string_errors(value, schema, path)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield from _number_errors(value, schema, path)
    elif isinstance(value, list):
        yield from _list_errors(value, schema, path)
    if "enum" in schema and value not in schema["enum"]:
        supported = ", ".join(f'"{allowed}"' for allowed in schema["enum"])
        yield FieldError(path, Kind.UNSUPPORTED, f"supported values: {supported}", value)
    if isinstance(value, dict):
        yield from _object_errors(value, schema, path)


def _type_errors(value: Any, schema: Schema, path: str) -> Iterator[FieldError]:
    expected = ["integer", "string"] if schema.get(INT_OR_STRING) else [schema.get("type")]
    found = _type_of(value)
    is_whole = found == "number" and _is_integer(value) and "integer" in expected
    is_number = found == "integer" and "number" in expected
    if found not in expected and expected != [None] and not is_whole and not is_number:
        detail = f'{path} in body must be of type {",".join(map(str, expected))}: "{found}"'
        yield FieldError(path, Kind.TYPE_INVALID, detail, found)


def _type_of(value: Any) -> str:
    """JSON's name for the type."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
    return "object"


def _string_errors(value: str, schema: Schema, path: str) -> Iterator[FieldError]:
    if len(value) > schema.get("maxLength", len(value)):
        limit = schema["maxLength"]
        yield FieldError(path, Kind.TOO_LONG, f"may not be more than {limit} bytes")
    elif len(value) < schema.get("minLength", 0):
        detail = f"{path} in body should be at least {schema['minLength']} chars long"
        yield FieldError(path, Kind.INVALID, detail, value)
    elif "pattern" in schema and not re.fullmatch(schema["pattern"], value):
        detail = f"{path} in body should match '{schema['pattern']}'"
        yield FieldError(path, Kind.INVALID, detail, value)


def _number_errors(value: float, schema: Schema, path: str) -> Iterator[FieldError]:
    if schema.get("type") == "integer" and not _is_integer(value):
        detail = f"Checked value must be of type integer (default format) in {path}"
        yield FieldError("<nil>", Kind.INVALID, detail, "")
    if value > schema.get("maximum", value):
        bound = _shown(schema["maximum"], value)
        detail = f"{path} in body should be less than or equal to {bound}"
        yield FieldError(path, Kind.INVALID, detail, value)
    if value < schema.get("minimum", value):
        bound = _shown(schema["minimum"], value)
        detail = f"{path} in body should be greater than or equal to {bound}"
        yield FieldError(path, Kind.INVALID, detail, value)


def _is_integer(value: float) -> bool:
    return float(value).is_integer() and fits_int64(value)


def _shown(bound: int, value: float) -> str:
    """A bound as the server shows it beside a value of its own type: floats by ``%g``."""
    digits = str(abs(bound))
    if isinstance(value, int) or len(digits) <= PLAIN_DIGITS:
        return str(bound)
    mantissa = f"{digits[0]}.{digits[1:]}".rstrip("0").removesuffix(".")
    return f"{'-' if bound < 0 else ''}{mantissa}e+{len(digits) - 1:02d}"


def _list_errors(value: list[Any], schema: Schema, path: str) -> Iterator[FieldError]:
    for index, item in enumerate(value):
        yield from schema_errors(item, schema.get("items", {}), f"{path}[{index}]")
    yield from _too_many(len(value), schema.get("maxItems"), path)


def _object_errors(value: dict[str, Any], schema: Schema, path: str) -> Iterator[FieldError]:
    if len(value) < schema.get("minProperties", 0):
        detail = f"{path} in body should have at least {schema['minProperties']} properties"
        yield FieldError(path, Kind.INVALID, detail, len(value))
    yield from _too_many(len(value), schema.get("maxProperties"), path)
    properties, values = schema.get("properties", {}), schema.get("additionalProperties", {})
    for key, child in value.items():
        below = f"{path}.{key}" if path else key
        yield from schema_errors(child, properties.get(key, values), below)
    for key in schema.get("required", ()):
        if key not in value:
            yield FieldError(f"{path}.{key}" if path else key, Kind.REQUIRED, value=OMITTED)


def _too_many(found: int, limit: int | None, path: str) -> Iterator[FieldError]:
    if limit is not None and found > limit:
        detail = f"must have at most {limit} item{'' if limit == 1 else 's'}"
        yield FieldError(path, Kind.TOO_MANY, detail, found)
