"""Reading of raw objects: whatever is missing or malformed reads as absent, never raises."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any

from poolwise.api.quantity import parse_quantity

Told = Mapping[str, Any]
"""An object as it stands in a status or a spec."""

_OBJECT = (dict, Mapping)
"""What an object is: nearly always a dict, which takes no look at a registry."""
MOST = 1e60
"""Of figures that somebody wrote: products of a few of them are numbers, too."""
FIRST_YEAR, LAST_YEAR = 1000, 9000
"""Of times that somebody wrote: what is added to one stays in the calendar, in any zone."""


def mapping(parent: Any, *path: str) -> Mapping[str, Any]:
    """The object at a path, or an empty one."""
    for key in path:
        parent = parent.get(key) if isinstance(parent, _OBJECT) else None
    return parent if isinstance(parent, _OBJECT) else {}


def objects(parent: Any, *path: str) -> tuple[Mapping[str, Any], ...]:
    """The objects of the list at a path."""
    found = mapping(parent, *path[:-1]).get(path[-1])
    if not isinstance(found, (list, tuple)):
        return ()
    return tuple(each for each in found if isinstance(each, _OBJECT))


def number(parent: Mapping[str, Any], name: str) -> float | None:
    """A figure of that name; None where it is absent, or no number that can be reckoned with."""
    value = parent.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) <= MOST else None


def condition_of(status: Mapping[str, Any], type_: str) -> Mapping[str, Any]:
    """The condition of that type; empty where it is absent."""
    found = (each for each in objects(status, "conditions") if each.get("type") == type_)
    return next(found, {})


def true_condition(status: Mapping[str, Any], *types: str) -> Mapping[str, Any]:
    """The first condition of any of these types that is True; empty where none is."""
    told = objects(status, "conditions")
    found = (each for each in told if each.get("type") in types and each.get("status") == "True")
    return next(found, {})


def is_true(status: Mapping[str, Any], *types: str) -> bool:
    """Whether a condition of any of these types is True."""
    return bool(true_condition(status, *types))


def texts(parent: Any, *path: str) -> dict[str, str]:
    """The strings of the object at a path, by key."""
    found = mapping(parent, *path).items()
    return {str(key): value for key, value in found if isinstance(value, str)}


def quantity(text: Any) -> float | None:
    """Its number; None where there is none, or none that is finite."""
    return _quantity(text) if isinstance(text, str | int | float) else None


def amount(text: Any) -> float:
    """The number of a quantity; 0 where there is none, or none that is finite and positive."""
    return max(quantity(text) or 0.0, 0.0)


@lru_cache(maxsize=4096, typed=True)
def _quantity(text: str | int | float) -> float | None:
    """Nodes of one kind say the same of most resources."""
    try:
        value = float(parse_quantity(text))
    except (ValueError, ArithmeticError):
        return None
    return value if math.isfinite(value) else None


def moment_of(text: Any) -> datetime | None:
    """A time of the API; None for what is none, or of no year that can be reckoned with."""
    try:
        moment = datetime.fromisoformat(text)
    except (TypeError, ValueError):
        return None
    is_one = moment.tzinfo is not None and FIRST_YEAR < moment.year < LAST_YEAR
    return moment if is_one else None


def name_of(document: Mapping[str, Any]) -> str:
    """The name of any object."""
    return str(mapping(document, "metadata").get("name", ""))


def namespace_of(document: Mapping[str, Any]) -> str:
    """The namespace of any object; empty where it has none."""
    return str(mapping(document, "metadata").get("namespace", ""))


def controller_uid(document: Mapping[str, Any]) -> str | None:
    """The uid of who answers for an object."""
    owners = objects(document, "metadata", "ownerReferences")
    return next((str(each.get("uid")) for each in owners if each.get("controller")), None)
