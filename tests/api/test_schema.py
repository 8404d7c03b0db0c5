"""The generated schemas are structural, bounded, and described with examples that hold."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from poolwise.api import RESOURCES
from poolwise.api.base import Resource
from poolwise.api.crd import validation_schema
from poolwise.api.markers import INT_OR_STRING, PRESERVE_UNKNOWN, VALIDATIONS
from poolwise.api.validation.defaulting import apply_defaults
from poolwise.api.validation.rules import broken_rules
from poolwise.api.validation.schema_errors import schema_errors
from poolwise.api.validation.unknown_fields import unknown_fields
from tests.api.mutations import EXAMPLE, Schema, example_of

by_kind = pytest.mark.parametrize("resource", RESOURCES, ids=lambda resource: resource.__name__)

FORBIDDEN = {
    *("$ref", "$defs", "definitions", "title", "examples", "const", "nullable", "uniqueItems"),
    *("patternProperties", "propertyNames", "oneOf", "anyOf", "allOf", "not", "discriminator"),
}


def nodes(resource: type[Resource], *parts: str) -> Iterator[tuple[str, Schema]]:
    """Path and schema of each node of ``spec`` and ``status``, or of those parts."""
    properties = validation_schema(resource)["properties"]
    for part in parts or ("spec", "status"):
        yield from _below(properties[part], part)


def _below(schema: Schema, path: str) -> Iterator[tuple[str, Schema]]:
    yield path, schema
    for name, child in schema.get("properties", {}).items():
        yield from _below(child, f"{path}.{name}")
    if "items" in schema:
        yield from _below(schema["items"], f"{path}[]")
    if "additionalProperties" in schema:
        yield from _below(schema["additionalProperties"], f"{path}{{}}")


def fields(resource: type[Resource]) -> Iterator[tuple[str, Schema]]:
    """The nodes that have a name of their own."""
    for path, schema in nodes(resource):
        if "." in path and path[-1] not in "]}":
            yield path, schema


@by_kind
def test_nodes_are_structural(resource: type[Resource]) -> None:
    for path, schema in nodes(resource):
        assert ("type" in schema) != (INT_OR_STRING in schema), path
        assert not FORBIDDEN & schema.keys(), path
        assert not ("properties" in schema and "additionalProperties" in schema), path
        assert "default" not in schema or schema["default"] is not None, path


@by_kind
def test_nodes_are_bounded(resource: type[Resource]) -> None:
    for path, schema in nodes(resource):
        is_text = schema.get("type") == "string" or INT_OR_STRING in schema
        assert not is_text or "enum" in schema or "maxLength" in schema, path
        assert schema.get("type") != "array" or "maxItems" in schema, path
        assert schema.get("type") != "integer" or "minimum" in schema, path
        assert "additionalProperties" not in schema or "maxProperties" in schema, path


@by_kind
def test_fields_are_described_with_examples_that_hold(resource: type[Resource]) -> None:
    for path, schema in fields(resource):
        assert EXAMPLE.search(schema.get("description", "")), path
        example = example_of(schema)
        assert not unknown_fields({"field": example}, {"properties": {"field": schema}}), path
        apply_defaults(example, schema)
        assert [str(error) for error in schema_errors(example, schema, path)] == []
        assert [str(error) for error in broken_rules(example, schema, path)] == []


@by_kind
def test_rules_say_what_is_allowed(resource: type[Resource]) -> None:
    rules = [rule for _, schema in nodes(resource) for rule in schema.get(VALIDATIONS, ())]
    assert rules
    for rule in rules:
        said = rule.get("message", "") + rule.get("messageExpression", "")
        assert any(word in said for word in ("must", "required", "needs")), rule


@by_kind
def test_a_spec_keeps_nothing_that_it_does_not_know(resource: type[Resource]) -> None:
    for path, schema in nodes(resource, "spec"):
        assert PRESERVE_UNKNOWN not in schema, path
        assert "format" not in schema, path  # the offline check reads types, bounds and rules


@by_kind
def test_defaults_are_valid_where_they_stand(resource: type[Resource]) -> None:
    found = [(path, schema) for path, schema in nodes(resource) if "default" in schema]
    assert found
    for path, schema in found:
        assert [str(error) for error in schema_errors(schema["default"], schema, path)] == []
        assert [str(error) for error in broken_rules(schema["default"], schema, path)] == []
