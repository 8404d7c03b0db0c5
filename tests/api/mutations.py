"""Objects with exactly one thing wrong, derived from the schema itself (after Acto, SOSP 2023).

For each field: null, every other type, one below and one above its bounds, text too long, values
outside its enum, too many items, equal items, unknown fields. The objects that are changed are
valid and built from the examples in the descriptions; several, so that each member of each union
is in one of them.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from poolwise.api import GROUP, VERSION
from poolwise.api.base import Resource
from poolwise.api.crd import validation_schema
from poolwise.api.markers import INT_OR_STRING, LIST_TYPE, VALIDATIONS

Schema = dict[str, Any]
Path = tuple[str | int, ...]

EXAMPLE = re.compile(r"Example: `(.*)`\.$", re.DOTALL)
OTHER_TYPES: dict[str, Any] = {
    "string": "text with $(NAME), {{ .Values }} and ünïcödé",
    "integer": 7,
    "number": 1.5,
    "boolean": True,
    "array": [1],
    "object": {"unexpected": 1},
}


@dataclass(frozen=True)
class Mutation:
    """One change of a valid object."""

    path: Path
    what: str
    document: dict[str, Any]

    def __str__(self) -> str:
        return f"{'.'.join(map(str, self.path))} {self.what}"


def example_of(schema: Schema) -> Any:
    """The example that a field's description ends with."""
    match = EXAMPLE.search(schema.get("description", ""))
    assert match, f"no example in {schema.get('description')!r}"
    return yaml.safe_load(match[1])


def full_spec(schema: Schema) -> Any:
    """A value with every field below it, from the examples of the leaves."""
    if "properties" in schema:
        return {name: full_spec(child) for name, child in schema["properties"].items()}
    if schema.get("type") == "array" and "properties" in schema["items"]:
        return [full_spec(schema["items"])]
    return example_of(schema)


UNIONS: dict[str, tuple[tuple[str, ...], ...]] = {
    "model": (("preset",), ("transformer",), ("custom",)),
    "training": (("tokens",), ("samples",), ("steps",)),
    "accelerators": (("count",), ("min", "max")),
    "run.env.0": (("value",), ("valueFrom",)),
    "run.env.0.valueFrom": (("configMapKeyRef",), ("secretKeyRef",), ("fieldRef",)),
    "run.envFrom.0": (("configMapRef",), ("secretRef",)),
    "run.volumes.0": (("persistentVolumeClaim",), ("configMap",), ("secret",), ("emptyDir",)),
    "tolerateTaints.0": (("value",), ()),
}
"""Below which field exactly one of which groups may stand."""
TRAIN_JOB_VARIANTS = 2
VARIANTS = 6
"""As many as it takes to see each member of each union, nested ones too."""


def full_objects(resource: type[Resource]) -> Iterator[dict[str, Any]]:
    """Valid objects that together have every field of the spec."""
    schema = validation_schema(resource)["properties"]["spec"]
    for variant in range(VARIANTS):
        spec = full_spec(schema)
        for where, groups in UNIONS.items():
            _keep_one(_at(spec, where.split(".")), groups, variant)
        if "custom" in spec.get("model", ()) and "slo" in spec:
            spec["slo"][0]["metric"] = "E2E"  # bare counts generate no tokens
        if "runtimeRef" in spec:
            _keep_runtime(spec, is_train_job=variant < TRAIN_JOB_VARIANTS)
        yield {
            "apiVersion": f"{GROUP}/{VERSION}",
            "kind": resource.__name__,
            "metadata": {"name": "full"},
            "spec": spec,
        }


def _keep_runtime(spec: dict[str, Any], is_train_job: bool) -> None:
    """A TrainJob, or what a TrainJob cannot have."""
    if not is_train_job:
        del spec["runtimeRef"]
        return
    del spec["ttlSecondsAfterFinished"], spec["run"]["envFrom"], spec["run"]["ports"]


def _keep_one(parent: Any, groups: tuple[tuple[str, ...], ...], variant: int) -> None:
    if not isinstance(parent, dict) or not any(set(group) <= parent.keys() for group in groups):
        return
    for name in {name for group in groups for name in group} - set(groups[variant % len(groups)]):
        parent.pop(name, None)


def mutations(resource: type[Resource], without: tuple[str, ...] = ()) -> Iterator[Mutation]:
    """All single changes of every field of that kind, but below the fields ``without``."""
    schema = validation_schema(resource)["properties"]["spec"]
    seen: set[Path] = set()
    for document in full_objects(resource):
        for path, field in _fields(schema, document["spec"], ("spec",)):
            if path not in seen and not ".".join(map(str, path)).startswith(without):
                seen.add(path)
                yield from _changes(document, path, field)


def _changes(document: dict[str, Any], path: Path, field: Schema) -> Iterator[Mutation]:
    for what, value in _bad_values(field, _at(document, path)):
        yield Mutation(path, what, _replaced(document, path, value))
    if "properties" in field:
        yield Mutation(path, "unknown field", _replaced(document, (*path, "unknown"), 1))


def _fields(schema: Schema, value: Any, path: Path) -> Iterator[tuple[Path, Schema]]:
    yield path, schema
    for name, child in schema.get("properties", {}).items():
        if name in value:
            yield from _fields(child, value[name], (*path, name))
    if "items" in schema and value:
        yield from _fields(schema["items"], value[0], (*path, 0))


def _bad_values(schema: Schema, value: Any) -> Iterator[tuple[str, Any]]:
    yield "null", None
    own = {"integer", "string"} if schema.get(INT_OR_STRING) else {schema.get("type")}
    for name, other in OTHER_TYPES.items():
        if name not in own:
            yield f"as {name}", other
    for bound, step in (("minimum", -1), ("maximum", 1)):
        if bound in schema:
            yield f"beyond {bound}", schema[bound] + step
    if "integer" in own:
        yield from (("beyond 64 bits", value) for value in (10**20, -(10**20)))
    if "string" in own:
        yield from _bad_texts(schema)
    if schema.get("type") == "array":
        yield from _bad_lists(schema, value)
    if schema.get("type") == "object":
        yield "empty", {}
        if "maxProperties" in schema:
            value = next(iter(value.values()), "x")
            yield "too many", {f"k{i}": value for i in range(schema["maxProperties"] + 1)}


def _bad_texts(schema: Schema) -> Iterator[tuple[str, str]]:
    yield "empty", ""
    yield "spaces", " padded "
    yield "control characters", 'a\n\x1b[31mb\t"\\\u200b'
    yield "upper case", "UPPER_CASE"
    yield "namespaced", "other/name"
    rules = str(schema.get(VALIDATIONS))
    if "quantity" in rules:
        yield from ((text, text) for text in ("-1", "1e30", "NaN", "0.5", "1Gi", "007", "1E", "1e"))
    if "duration" in rules:
        yield from ((text, text) for text in ("-5s", "5", "1e9h", "P1D", "0s", "999999h", "1h0.5m"))
    if "Auto" in rules or "99.9" in rules:
        yield from ((text, text) for text in ("0", "100", "99.99", "-1", "129", "128", "auto"))
    if "maxLength" in schema:
        yield "too long", "a" * (schema["maxLength"] + 1)


def _bad_lists(schema: Schema, value: list[Any]) -> Iterator[tuple[str, list[Any]]]:
    yield "empty", []
    yield "with null", [None]
    if value:
        yield "too many", value * (schema["maxItems"] + 1)
        yield "equal items", [value[0], value[0]]
        if schema.get(LIST_TYPE) != "set" and isinstance(value[0], dict):
            yield "an empty item", [{}]


def _at(document: Any, path: Iterable[str | int]) -> Any:
    """What stands there; None where nothing does."""
    for step in path:
        match document:
            case list():
                document = document[int(step)]
            case dict():
                document = document.get(step)
    return document


def _replaced(document: dict[str, Any], path: Path, value: Any) -> dict[str, Any]:
    changed = copy.deepcopy(document)
    _at(changed, path[:-1])[path[-1]] = value
    return changed
