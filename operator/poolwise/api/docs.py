"""docs/api.md: the tables that people read, from the schemas that the API server checks.

``python -m poolwise.api.docs --output docs/api.md`` writes the page, ``--check`` fails where the
file differs. An object that two kinds share is told once, where it first comes up.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from poolwise.api import GROUP, RESOURCES, VERSION
from poolwise.api.base import Resource
from poolwise.api.crd import names, validation_schema
from poolwise.api.docs_containers import containers
from poolwise.api.docs_open import open_fields
from poolwise.api.generated import Page
from poolwise.api.markers import INT_OR_STRING, PRESERVE_UNKNOWN, VALIDATIONS

Schema = Mapping[str, Any]
Homes = Mapping[str, str]
"""Where each object is told: what it may contain, to the title of its section."""

_HEAD = f"""\
<!-- Generated from operator/poolwise/api by `make generate`; change the models instead. -->
# The API: `{GROUP}/{VERSION}`

Every field of the custom resources, as the API server checks it; what a status carries
[beyond its schema](#what-a-status-carries-beyond-these-tables) stands at the end. Fields without a
default may be left out unless they are required. Quantities and durations are written as Kubernetes
writes them (`450G` is 450·10⁹, `32Ki` is 32,768, `500ms`, `30m`); rates count one direction.
Unknown fields are refused by strict clients (`kubectl` is one) and dropped otherwise. What
conditions and their reasons mean is in [conditions.md](conditions.md).
"""
_ROW = "| {} | {} | {} | {} |"
_TABLE_HEAD = (_ROW.format("field", "type and bounds", "default", "meaning"), "|---|---|---|---|")
_AS_GIVEN = re.compile(r",? (is|has|are) %\w( together)?$|, %\w is none$| \(%\w\)")
"""What a message says of the value at hand; the page tells what is allowed."""
_TELLS_TYPE = re.compile("must be (an? (quantity|duration|time|image|name)|Auto or|above 0)")
"""A rule whose words leave nothing for the type to say."""


def page() -> str:
    """The whole page."""
    homes: dict[str, str] = {}
    for resource in RESOURCES:
        for title, schema in _objects(resource):
            homes.setdefault(_contents(schema), title)
    kinds = (_kind(resource, homes) for resource in RESOURCES)
    return "\n".join((_HEAD, *kinds, containers() + open_fields()))


def _kind(resource: type[Resource], homes: Homes) -> str:
    spelled, schema = names(resource), validation_schema(resource)
    scope = "namespaced" if resource.is_namespaced else "of the whole cluster"
    lines = [
        f"## {spelled['kind']}",
        "",
        f"{schema['description']} {scope.capitalize()}; `kubectl get {resource.short_name}`, or",
        f"`{spelled['plural']}.{GROUP}` where another API has that short name.",
        "",
        *_rules(schema),
    ]
    for title, part in _objects(resource):
        if homes[_contents(part)] == title:
            lines += _section(title, part, homes)
    return "\n".join(lines)


def _objects(resource: type[Resource]) -> Iterator[tuple[str, Schema]]:
    """Title and schema of each object with fields of its own, outer ones first."""
    properties = validation_schema(resource)["properties"]
    for part in ("spec", "status"):
        yield from _nested(f"{resource.__name__} {part}", properties[part])


def _nested(title: str, schema: Schema) -> Iterator[tuple[str, Schema]]:
    if "properties" in schema:
        yield title, schema
    for name, child in _fields(schema):
        yield from _nested(f"{title}.{name}", child)
    if "items" in schema:
        yield from _nested(f"{title}[]", schema["items"])


def _fields(schema: Schema) -> list[tuple[str, Schema]]:
    """The required ones first."""
    required = schema.get("required", ())
    fields = schema.get("properties", {}).items()
    return sorted(fields, key=lambda field: field[0] not in required)


def _contents(schema: Schema) -> str:
    return json.dumps([schema["properties"], schema.get("required"), schema.get(VALIDATIONS)])


def _section(title: str, schema: Schema, homes: Homes) -> list[str]:
    required = schema.get("required", ())
    rows = [
        _ROW.format(
            f"`{name}`", _type(child, homes), _default(name in required, child), _about(child)
        )
        for name, child in _fields(schema)
    ]
    more = (
        ["It may carry [more than these](#what-a-status-carries-beyond-these-tables).", ""]
        if schema.get(PRESERVE_UNKNOWN)
        else []
    )
    told = _about(schema).split(" Example: ")[0]
    return [f"### {title}", "", told, "", *_TABLE_HEAD, *rows, "", *more, *_rules(schema)]


def _about(schema: Schema) -> str:
    """What the field means, fit for a cell."""
    return _escaped(schema.get("description", ""))


def _default(is_required: bool, schema: Schema) -> str:
    """An object's default is that of its fields, which its own table tells."""
    if is_required:
        return "required"
    if "default" not in schema or "properties" in schema:
        return ""
    default = schema["default"]
    told = default if isinstance(default, str) else json.dumps(default).replace('"', "")
    return f"`{_escaped(told)}`"


def _type(schema: Schema, homes: Homes) -> str:
    """The type in words, with everything that bounds it."""
    told = (_noun(schema, homes), *_bounds(schema), *_field_rules(schema))
    return "; ".join(part for part in told if part)


def _noun(schema: Schema, homes: Homes) -> str:
    if "properties" in schema:
        return f"[object](#{_anchor(homes[_contents(schema)])})"
    if "items" in schema:
        return _several("list", schema, schema["items"], homes)
    if "additionalProperties" in schema:
        return _several("map", schema, schema["additionalProperties"], homes)
    if "enum" in schema:
        return " ".join(f"`{value}`" for value in schema["enum"] if value)
    if any(_TELLS_TYPE.match(_message(rule)) for rule in schema.get(VALIDATIONS, ())):
        return ""
    return "integer or string" if schema.get(INT_OR_STRING) else str(schema["type"])


def _several(what: str, schema: Schema, each: Schema, homes: Homes) -> str:
    least = schema.get("minItems", schema.get("minProperties"))
    most = schema.get("maxItems", schema.get("maxProperties"))
    count = f" of {_range(least, most)}" if most and "enum" not in each else ""
    return f"{what}{count}; each {_type(each, homes)}"


def _anchor(title: str) -> str:
    """As GitHub makes it of a heading."""
    return re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")


def _bounds(schema: Schema) -> Iterator[str]:
    if numbers := _range(schema.get("minimum"), schema.get("maximum")):
        yield numbers
    if "maxLength" in schema and not {"enum", VALIDATIONS} & schema.keys():
        yield f"at most {schema['maxLength']:,} characters"


def _range(least: float | None, most: float | None) -> str:
    if least is not None and most is not None:
        return f"{least:,} to {most:,}"
    if least is not None:
        return f"at least {least:,}"
    return f"at most {most:,}" if most is not None else ""


def _field_rules(schema: Schema) -> Iterator[str]:
    """Rules on a value itself; those of an object are told below its table."""
    if "properties" not in schema:
        for rule in schema.get(VALIDATIONS, ()):
            allowed = re.sub("^must be (an? )?", "", _message(rule)).split(", such as")[0]
            yield _escaped(allowed)


def _rules(schema: Schema) -> list[str]:
    """Rules across the fields of an object, one for each sentence."""
    fields: dict[str, list[str]] = {}
    for rule in schema.get(VALIDATIONS, ()):
        fields.setdefault(_message(rule), []).append(rule.get("fieldPath", "").removeprefix("."))
    lines = [
        f"- {', '.join(f'`{name}`' for name in of if name)} {_escaped(message)}".replace(
            "-  ", "- "
        )
        for message, of in fields.items()
    ]
    return [*lines, ""] if lines else []


def _message(rule: Schema) -> str:
    """What is allowed, without the value at hand."""
    if "message" in rule:
        return str(rule["message"])
    text = rule["messageExpression"].removeprefix("'").split("'.format(")[0].replace("\\'", "'")
    return _AS_GIVEN.sub("", text).replace("%s, which", "what").replace("%s", "any")


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the page, or with ``--check`` say that it differs; 1 if it does."""
    return Page("poolwise.api.docs", Path("docs/api.md"), page(), "models").main(arguments)


if __name__ == "__main__":
    sys.exit(main())
