"""Markers: what a model says to the API server beyond types and bounds.

A marker is attached to a type (``Annotated[str, Rule(...)]``) and ends up in its schema; the
names are those of kubebuilder where it has one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydantic import GetJsonSchemaHandler
from pydantic_core import CoreSchema

VALIDATIONS = "x-kubernetes-validations"
LIST_TYPE = "x-kubernetes-list-type"
LIST_MAP_KEYS = "x-kubernetes-list-map-keys"
INT_OR_STRING = "x-kubernetes-int-or-string"
PRESERVE_UNKNOWN = "x-kubernetes-preserve-unknown-fields"


@dataclass(frozen=True, slots=True)
class Rule:
    """A CEL rule over ``self``, and the sentence that a person reads when it does not hold.

    The API server prints field and value before the sentence, but the value only of scalars:
    a rule on an object or a list says it with ``values``.
    """

    rule: str
    message: str
    """What is allowed; with ``values``, a format for them (``%d``, ``%s``)."""
    values: tuple[str, ...] = ()
    """CEL of what goes into the message. ``format`` because its cost is known beforehand: that of
    ``+`` on a number's text is not, and the API server refuses what it cannot bound."""
    field: str = ""
    """The field at fault below ``self``, e.g. ``.max``."""

    def as_validation(self) -> dict[str, str]:
        """One item of ``x-kubernetes-validations``."""
        validation = {"rule": self.rule}
        if self.values:
            text = self.message.replace("'", "\\'")
            validation["messageExpression"] = f"'{text}'.format([{', '.join(self.values)}])"
        else:
            validation["message"] = self.message
        if self.field:
            validation["fieldPath"] = self.field
        return validation

    def __get_pydantic_json_schema__(
        self, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        schema = handler(core_schema)
        schema[VALIDATIONS] = [*schema.get(VALIDATIONS, ()), self.as_validation()]
        return schema


@dataclass(frozen=True, slots=True)
class SchemaExtra:
    """Keywords that go into the schema as they are."""

    keywords: dict[str, Any]

    def __get_pydantic_json_schema__(
        self, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {**handler(core_schema), **self.keywords}


def list_map(*keys: str) -> SchemaExtra:
    """A list that server-side apply merges by these keys, which no two items may share."""
    return SchemaExtra({LIST_TYPE: "map", LIST_MAP_KEYS: list(keys)})


LIST_SET = SchemaExtra({LIST_TYPE: "set"})
"""A list without duplicates."""


def divides(divisor: str, number: str) -> str:
    """CEL; a divisor below 1 breaks its own bound, which is said there and must not be an error."""
    return f"({divisor} < 1 || {number} % ({divisor}) == 0)"


def exactly_one(*fields: str) -> Rule:
    """A union: exactly one of the optional fields is given."""
    given = f"[{', '.join(f'has(self.{name})' for name in fields)}].filter(given, given).size()"
    *others, last = fields
    names = f"{', '.join(others)} and {last}"
    return Rule(f"{given} == 1", f"must have exactly one of {names}, has %d", (given,))
