"""Fields that the schema does not know, as strict decoding names them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from poolwise.api.markers import PRESERVE_UNKNOWN

_TYPE_META = frozenset({"apiVersion", "kind", "metadata"})
_OBJECT_META = frozenset(
    {
        *("name", "generateName", "namespace", "selfLink", "uid", "resourceVersion", "generation"),
        *("creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "labels"),
        *("annotations", "ownerReferences", "finalizers", "managedFields"),
    }
)


def unknown_fields(document: Mapping[str, Any], schema: Mapping[str, Any]) -> list[str]:
    """Paths of all unknown fields, sorted."""
    metadata = document.get("metadata")
    of_metadata = set(metadata) - _OBJECT_META if isinstance(metadata, Mapping) else set()
    rest = {key: value for key, value in document.items() if key not in _TYPE_META}
    return sorted([*(f"metadata.{name}" for name in of_metadata), *_unknown(rest, schema, "")])


def _unknown(value: Any, schema: Mapping[str, Any] | None, path: str) -> Iterator[str]:
    if isinstance(value, list):
        items = schema.get("items") if schema else None
        for index, item in enumerate(value):
            yield from _unknown(item, items, f"{path}[{index}]")
    elif isinstance(value, Mapping):
        for key, child in value.items():
            yield from _unknown_below(key, child, schema or {}, f"{path}.{key}" if path else key)


def _unknown_below(key: str, child: Any, schema: Mapping[str, Any], path: str) -> Iterator[str]:
    known = schema.get("properties", {}).get(key, schema.get("additionalProperties"))
    if known is not None:
        yield from _unknown(child, known, path)
    elif not schema.get(PRESERVE_UNKNOWN):
        yield path
