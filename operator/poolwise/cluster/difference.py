"""What a write would change; nothing, most of the time, and then it is not sent."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from poolwise.plan.names import GROUP
from poolwise.plan.observed import Object

APPLIED = f"{GROUP}/applied"
"""Annotation: digest of what was applied. It differs once a field is no longer wanted, which a
comparison of the fields that are wanted cannot see."""

_KEYS = ("name", "containerPort", "port", "mountPath", "key", "type")
"""Fields that tell the items of a list apart (the first that an item has). A list whose items
share one, such as two tolerations of one key, is compared by position."""


def signed(document: Object) -> dict[str, Any]:
    """``document`` with its digest as the annotation :data:`APPLIED`."""
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    metadata = document["metadata"]
    annotations = {**(metadata.get("annotations") or {}), APPLIED: digest}
    return {**document, "metadata": {**metadata, "annotations": annotations}}


def covers(live: Any, desired: Any) -> bool:
    """Whether ``live`` has all that is ``desired``, beside what defaults and others added."""
    match desired:
        case Mapping():
            return isinstance(live, Mapping) and all(
                covers(live.get(field), value) for field, value in desired.items()
            )
        case list() | tuple():
            return isinstance(live, list) and _covers_list(live, list(desired))
        case _:
            return bool(live == desired)


def _covers_list(live: list[Any], desired: list[Any]) -> bool:
    keys = [_key(item) for item in desired]
    if None not in keys and len(set(keys)) == len(keys):
        by_key = {_key(item): item for item in live}
        return all(covers(by_key.get(key), item) for key, item in zip(keys, desired, strict=True))
    return len(live) == len(desired) and all(map(covers, live, desired))


def _key(item: Any) -> tuple[str, Any] | None:
    if not isinstance(item, Mapping):
        return None
    return next(((field, item[field]) for field in _KEYS if field in item), None)


def merge_patch(live: Any, desired: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON merge patch that makes ``live`` into ``desired``; empty when they are equal.

    None in ``desired`` is an absent field, as it is in such a patch.
    """
    known = live if isinstance(live, Mapping) else {}
    desired = {field: value for field, value in desired.items() if value is not None}
    patch: dict[str, Any] = {field: None for field in known if field not in desired}
    for field, value in desired.items():
        if isinstance(value, Mapping) and isinstance(known.get(field), Mapping):
            nested = merge_patch(known[field], value)
            if nested:
                patch[field] = nested
        elif known.get(field) != value:
            patch[field] = value
    return patch
