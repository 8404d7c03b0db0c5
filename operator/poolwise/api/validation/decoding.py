"""How Go's JSON decoder reads an object, and what it says of metadata that it cannot decode.

The server decodes metadata into its own struct before it looks at anything else, and speaks of
nothing but the first field that has another type.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

_TEXTS = ("name", "generateName", "namespace", "uid", "resourceVersion", "selfLink")
_NUMBERS = ("generation", "deletionGracePeriodSeconds")
_TEXT_MAPS = ("labels", "annotations")
_LISTS = {
    "finalizers": "[]string",
    "ownerReferences": "[]v1.OwnerReference",
    "managedFields": "[]v1.ManagedFieldsEntry",
}


def decoded(value: Any) -> Any:
    """A copy in which whole numbers that an int64 cannot hold are floats."""
    match value:
        case bool():
            return value
        case int():
            return value if fits_int64(value) else _as_float(value)
        case list():
            return [decoded(each) for each in value]
        case dict():
            return {key: decoded(each) for key, each in value.items()}
    return value


def _as_float(value: int) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def fits_int64(value: float) -> bool:
    """Whether a whole number is one for Go."""
    return -(2**63) <= value < 2**63


def undecodable(metadata: Any) -> str | None:
    """Why the metadata cannot be decoded; None where it can."""
    if metadata is None:
        return None
    if not isinstance(metadata, Mapping):
        return f"json: cannot unmarshal {_name(metadata)} into Go value of type v1.ObjectMeta"
    for field, found, expected in _mismatches(metadata):
        told = f"cannot unmarshal {_name(found)} into Go struct field ObjectMeta.{field}"
        return f"json: {told} of type {expected}"
    return None


def _mismatches(metadata: Mapping[str, Any]) -> Iterator[tuple[str, Any, str]]:
    """Field, value and Go type of what has another type; null is the same as absent."""
    for field, value in metadata.items():
        if value is None:
            continue
        if field in _TEXTS and not isinstance(value, str):
            yield field, value, "string"
        elif field in _NUMBERS and _name(value) != "number":
            yield field, value, "int64"
        elif field in _LISTS and not isinstance(value, list):
            yield field, value, _LISTS[field]
        elif field in _TEXT_MAPS and not isinstance(value, Mapping):
            yield field, value, "map[string]string"
        elif field in _TEXT_MAPS:
            yield from _not_texts(field, value.values())
        elif field == "finalizers":
            yield from _not_texts(field, value)


def _not_texts(field: str, items: Iterable[Any]) -> Iterator[tuple[str, Any, str]]:
    for item in items:
        if item is not None and not isinstance(item, str):
            yield field, item, "string"


def _name(value: Any) -> str:
    """What Go's decoder calls the type."""
    match value:
        case bool():
            return "bool"
        case int() | float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
    return "object"
