"""Nodes from a file. What the API server would never have stored is refused in a sentence.

The planner takes what is malformed in its objects for absent, as an operator has to; in a file it
is a slip of whoever wrote it, and a plan without the device that was meant would be a wrong answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails

from poolwise.api.quantity import parse_quantity
from poolwise.cli.manifests import Document, named, of_kind, read
from poolwise.errors import InvalidInput


def _amount(value: str | int | float) -> str | int | float:
    try:
        is_negative = parse_quantity(value) < 0
    except ValueError:
        raise ValueError("it is no quantity such as 450G, 32Ki or 12.5") from None
    if is_negative:
        raise ValueError("it must not be negative")
    return value


_Amounts = dict[str, Annotated[str | int | float, AfterValidator(_amount)]]


_EXPECTED = {
    "string_type": "a text",
    "list_type": "a list",
    "dict_type": "an object",
    "model_type": "an object",
}


class _Part(BaseModel):
    model_config = ConfigDict(strict=True)


class _Metadata(_Part):
    labels: dict[str, str] | None = None


class _Taint(_Part):
    key: str
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]


class _Spec(_Part):
    taints: list[_Taint] | None = None


class _Status(_Part):
    allocatable: _Amounts | None = None
    capacity: _Amounts | None = None


class _Node(_Part):
    metadata: _Metadata
    spec: _Spec | None = None
    status: _Status | None = None


def read_nodes(path: str) -> list[Mapping[str, Any]]:
    """The nodes of a file or folder. Raises InvalidInput."""
    documents = list(read([path]))
    found = of_kind(documents, "Node")
    for document in documents:
        _check(document)
    return found


def _check(document: Document) -> None:
    try:
        _Node.model_validate(document.content)
    except ValidationError as error:
        first = error.errors()[0]
        where = f"{document.where}: {'.'.join(map(str, first['loc']))}"
        raise InvalidInput(where, _problem(first)) from error


def _problem(error: ErrorDetails) -> str:
    """In our words where pydantic has none that a reader of YAML would know."""
    kind, given = error["type"], error["input"]
    if kind == "missing":
        return "is missing"
    if kind in _EXPECTED:
        return f"is {named(given)}, expected {_EXPECTED[kind]}"
    told = error["msg"].removeprefix("Value error, ")
    return f"{given!r:.64} cannot be used: {told[:1].lower()}{told[1:]}"
