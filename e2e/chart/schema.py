"""``values.schema.json``: written by hand but for its descriptions and the operator's settings."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from e2e.chart.values import Value
from poolwise.settings import Settings

Schema = dict[str, Any]

ELSEWHERE = {"namespaces"}
"""Settings that the chart sets itself, since rights depend on them."""
LISTEN = "_listen"
_PORT = r"([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])"
ENDPOINT = rf"^(\S+:{_PORT})?$"
"""``ADDRESS:PORT`` or empty, which the model checks in code."""


def settings_schema() -> Schema:
    """What the chart takes as ``settings``, from the model that reads them."""
    whole = Settings.model_json_schema()
    properties = {
        name: _setting(name, schema)
        for name, schema in whole["properties"].items()
        if name not in ELSEWHERE
    }
    return {"type": "object", "additionalProperties": False, "properties": properties}


def _setting(name: str, schema: Schema) -> Schema:
    kept = {key: value for key, value in schema.items() if key not in ("title", "default")}
    return kept | ({"pattern": ENDPOINT} if name.endswith(LISTEN) else {})


def with_descriptions(schema: Schema, values: Iterable[Value]) -> Schema:
    """The schema with the meaning of each value, as ``values.yaml`` has it."""
    described: Schema = json.loads(json.dumps(schema))
    for value in values:
        node = described
        for step in value.path:
            node = node["properties"][step]
        rest = {key: each for key, each in node.items() if key != "description"}
        node.clear()
        node.update({"description": value.meaning, **rest})
    return described


def complete(path: Path, values: Iterable[Value]) -> str:
    """The file at ``path`` as it has to be."""
    schema: Schema = json.loads(path.read_text(encoding="utf-8"))
    if "settings" in schema["properties"]:
        schema["properties"]["settings"] = settings_schema()
    return json.dumps(with_descriptions(schema, values), indent=2) + "\n"
