"""The cases of bad_input.yaml as objects."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

Document = dict[str, Any]

_FILE = Path(__file__).with_suffix(".yaml")
_ABSENT = object()


@dataclass(frozen=True)
class Refused:
    """An object that the API server refuses."""

    name: str
    document: Document
    says: tuple[str, ...]
    """Field, value and what is allowed: each must be in the sentences."""


@dataclass(frozen=True)
class Accepted:
    """An object that the API server accepts."""

    name: str
    document: Document
    condition: tuple[str, str, str] | None
    """Type, status and reason that the operator gives it for what is wrong; None: all is well."""


class _Loader(yaml.SafeLoader):
    """YAML with values that nobody wants to read in full."""


def _repeat(loader: yaml.SafeLoader, node: yaml.Node) -> Any:
    value, times = loader.construct_sequence(node, deep=True)  # type: ignore[arg-type]  # a sequence by its tag
    return value * times


def _nested(loader: yaml.SafeLoader, node: yaml.Node) -> Any:
    value: Any = 1
    for _ in range(int(node.value)):
        value = {"a": value}
    return value


_Loader.add_constructor("!absent", lambda loader, node: _ABSENT)
_Loader.add_constructor("!nested", _nested)
_Loader.add_constructor("!repeat", _repeat)


def changed(document: Document, changes: Mapping[str, Any]) -> Document:
    """A copy with fields set, by path below ``spec`` or, after a dot, from the root."""
    copied = copy.deepcopy(document)
    for path, value in changes.items():
        absolute = path[1:] if path.startswith(".") else f"spec.{path}"
        *parents, last = absolute.split(".")
        target = copied
        for name in parents:
            target = target.setdefault(name, {})
        if value is _ABSENT:
            del target[last]
        else:
            target[last] = value
    return copied


_TABLE = yaml.load(_FILE.read_text(), _Loader)
BASES: Mapping[str, Document] = _TABLE["bases"]


def _document(case: Mapping[str, Any]) -> Document:
    (base,) = case.keys() & BASES.keys()
    return changed(BASES[base], case[base])


REFUSED = [
    Refused(name, _document(case), tuple(case["says"])) for name, case in _TABLE["refused"].items()
]
ACCEPTED = [
    Accepted(name, _document(case), tuple(case["condition"]) if "condition" in case else None)
    for name, case in _TABLE["accepted"].items()
]
