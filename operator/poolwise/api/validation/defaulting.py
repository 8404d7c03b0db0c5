"""Nulls and defaults, in place, as ``apiextensions-apiserver/pkg/apiserver/schema/defaulting``."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any

Schema = Mapping[str, Any]


def drop_nulls(value: Any, schema: Schema) -> None:
    """Remove nulls that no default will replace: null is the same as absent."""
    if isinstance(value, dict):
        for key in [key for key, child in value.items() if child is None]:
            known = _schema_of(key, schema)
            if known is not None and "default" not in known:
                del value[key]
    for child, known in _children(value, schema):
        drop_nulls(child, known)


def apply_defaults(value: Any, schema: Schema) -> None:
    """Fill in the default of each absent or null field of each object that is there."""
    if isinstance(value, dict):
        for key, known in schema.get("properties", {}).items():
            if "default" in known and value.get(key) is None:
                value[key] = copy.deepcopy(known["default"])
    for child, known in _children(value, schema):
        apply_defaults(child, known)


def _children(value: Any, schema: Schema) -> Iterator[tuple[Any, Schema]]:
    if isinstance(value, dict):
        for key, child in value.items():
            if (known := _schema_of(key, schema)) is not None:
                yield child, known
    elif isinstance(value, list) and "items" in schema:
        for item in value:
            yield item, schema["items"]


def _schema_of(key: str, schema: Schema) -> Schema | None:
    known: Schema | None = schema.get("properties", {}).get(key, schema.get("additionalProperties"))
    return known
