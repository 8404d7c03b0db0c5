"""Lists that are sets or maps: no two items may be the same, or have the same keys."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from poolwise.api.markers import LIST_MAP_KEYS, LIST_TYPE
from poolwise.api.validation.field_error import FieldError, Kind, shown


def duplicates(value: Any, schema: Mapping[str, Any], path: str = "") -> Iterator[FieldError]:
    """A sentence for the second of each set of equal items."""
    if isinstance(value, list):
        yield from _duplicate_items(value, schema, path)
        for index, item in enumerate(value):
            yield from duplicates(item, schema.get("items", {}), f"{path}[{index}]")
    elif isinstance(value, dict):
        for key, child in value.items():
            known = schema.get("properties", {}).get(key)
            if known is not None:
                yield from duplicates(child, known, f"{path}.{key}" if path else key)


def _duplicate_items(
    items: list[Any], schema: Mapping[str, Any], path: str
) -> Iterator[FieldError]:
    if schema.get(LIST_TYPE) == "map":
        stray = (
            i for i, item in enumerate(items) if item is not None and not isinstance(item, dict)
        )
        if (index := next(stray, None)) is not None:
            detail = "must be an object for an array of list-type map"
            yield FieldError(f"{path}[{index}]", Kind.INVALID, detail, items[index])
            return
    times: dict[str, int] = {}
    for index, item in enumerate(items):
        key = _key(item, schema)
        if key is None:
            continue
        identity = shown(key)
        times[identity] = times.get(identity, 0) + 1
        if times[identity] == 2:
            yield FieldError(f"{path}[{index}]", Kind.DUPLICATE, value=key)


def _key(item: Any, schema: Mapping[str, Any]) -> Any:
    """What must be unique of an item; None where nothing must."""
    match schema.get(LIST_TYPE):
        case "set":
            return item
        case "map" if isinstance(item, dict):
            return {key: item[key] for key in schema[LIST_MAP_KEYS] if key in item}
        case _:
            return None
