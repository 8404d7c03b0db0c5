"""The structural schema that the API server demands, from pydantic's JSON schema.

Structural (kubernetes.io, "Specifying a structural schema") means: a type at every node, no
``$ref``, no null. Pydantic writes references, ``anyOf: [T, null]`` for optional fields, and titles;
here they are inlined, unwrapped and dropped. A default goes into the schema where it says
something: the empty string, list and map are the same as absent.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import core_schema

from poolwise.api.base import ApiModel
from poolwise.api.markers import INT_OR_STRING, PRESERVE_UNKNOWN, VALIDATIONS
from poolwise.api.quantity import format_duration

Schema = dict[str, Any]

_ORDER = (
    *("description", "type", "format", "enum", "default", "minimum", "maximum"),
    *("minLength", "maxLength", "pattern", INT_OR_STRING),
    *("minItems", "maxItems", "minProperties", "maxProperties", "required"),
    *("items", "additionalProperties", "properties"),
    *("x-kubernetes-list-type", "x-kubernetes-list-map-keys", PRESERVE_UNKNOWN, VALIDATIONS),
)
"""What a structural schema may say of a node, in the order in which people read it."""
_DROPPED = ("title", "propertyNames")
"""What pydantic says besides: titles repeat names, and keys of maps cannot be constrained."""
_DATE_TIME_LENGTH = 64


class _WithRules(GenerateJsonSchema):
    """Adds the rules that a model declares for itself."""

    def model_schema(self, schema: core_schema.ModelSchema) -> Schema:
        generated = super().model_schema(schema)
        cls = schema["cls"]
        if issubclass(cls, ApiModel) and cls.rules:
            generated[VALIDATIONS] = [rule.as_validation() for rule in cls.rules]
        return generated


@cache
def structural_schema(model: type[ApiModel]) -> Schema:
    """The structural schema of a model, with descriptions, bounds, defaults and CEL rules."""
    generated = model.model_json_schema(schema_generator=_WithRules)
    return _structural(generated, generated.pop("$defs", {}))


def _structural(node: Mapping[str, Any], definitions: Mapping[str, Schema]) -> Schema:
    schema = _unwrapped(node, definitions)
    _resolve_maps(schema, definitions)
    if "items" in schema:
        schema["items"] = _structural(schema["items"], definitions)
    if "properties" in schema:
        schema["properties"] = {
            name: _structural(child, definitions) for name, child in schema["properties"].items()
        }
        _default_objects(schema)
    return _in_kubernetes_words(schema)


def _unwrapped(node: Mapping[str, Any], definitions: Mapping[str, Schema]) -> Schema:
    """The node itself: references inlined, ``anyOf: [T, null]`` as T, outer keywords winning."""
    schema = dict(node)
    while "$ref" in schema or _is_optional(schema):
        if "$ref" in schema:
            inner = definitions[schema.pop("$ref").removeprefix("#/$defs/")]
        else:
            (inner,) = (branch for branch in schema.pop("anyOf") if branch != {"type": "null"})
        schema = {**inner, **schema}
    return schema


def _is_optional(schema: Schema) -> bool:
    return {"type": "null"} in schema.get("anyOf", ())


def _resolve_maps(schema: Schema, definitions: Mapping[str, Schema]) -> None:
    """A map of anything becomes a free object; a map of T keeps the schema of its values."""
    values = schema.pop("additionalProperties", None)
    if values is True:
        schema[PRESERVE_UNKNOWN] = True
    elif values:
        schema["additionalProperties"] = _structural(values, definitions)


def _in_kubernetes_words(schema: Schema) -> Schema:
    for keyword in _DROPPED:
        schema.pop(keyword, None)
    if schema.get("format") == "date-time":
        schema["maxLength"] = _DATE_TIME_LENGTH
    if "description" in schema:
        schema["description"] = " ".join(schema["description"].split())
    _restate_default(schema)
    return _in_order(schema)


def _in_order(schema: Schema) -> Schema:
    return {keyword: schema[keyword] for keyword in sorted(schema, key=_ORDER.index)}


def _restate_default(schema: Schema) -> None:
    """Durations as text; nothing for what is the same as absent."""
    default = schema.get("default")
    if isinstance(default, float) and schema.get("type") != "number":
        schema["default"] = format_duration(default) if default else None
    if schema.get("default") in ("", []):
        del schema["default"]


def _default_objects(schema: Schema) -> None:
    """Children's defaults on their parent: the API server goes into no absent object.

    They are spelled out, since it checks rules on a default as it stands. A null default marks an
    optional object, whose absence means something; it ends here.
    """
    required = schema.get("required", ())
    for name, child in schema["properties"].items():
        if "default" in child:
            if child["default"] is None:
                del child["default"]
        elif name not in required and (defaults := _defaults(child)):
            schema["properties"][name] = _in_order({**child, "default": defaults})


def _defaults(schema: Schema) -> Schema:
    children = schema.get("properties", {}).items()
    return {name: child["default"] for name, child in children if "default" in child}
