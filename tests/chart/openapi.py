"""JSON schemas for kubeconform from what an API server says of its own types.

The server describes its built-in kinds and the CRDs in it alike (``/openapi/v3``), so that one
conversion does for Kubernetes, for the Prometheus operator, and for us. Objects are made strict:
where fields are listed, no others are taken.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

Schema = dict[str, Any]
Read = Callable[[str], str]
"""GET of a path of the API server."""

REFERENCE = "#/components/schemas/"
KINDS = "x-kubernetes-group-version-kind"
OPEN = "x-kubernetes-preserve-unknown-fields"
LOCATION = "{{.ResourceKind}}-{{.Group}}-{{.ResourceAPIVersion}}.json"
"""Names of the files, as kubeconform's ``-schema-location`` spells them."""


def write(read: Read, api_versions: Iterable[str], folder: Path) -> None:
    """One file for each kind of these API versions."""
    paths = json.loads(read("/openapi/v3"))["paths"]
    for api_version in sorted(set(api_versions)):
        prefix = "apis" if "/" in api_version else "api"
        url = paths[f"{prefix}/{api_version}"]["serverRelativeURL"]
        schemas = json.loads(read(url))["components"]["schemas"]
        _write_version(api_version, {name: strict(each) for name, each in schemas.items()}, folder)


def _write_version(api_version: str, schemas: Schema, folder: Path) -> None:
    group, _, version = api_version.rpartition("/")
    shared = folder / f"definitions-{group}-{version}.json"
    shared.write_text(json.dumps({"definitions": schemas}))
    for name, schema in schemas.items():
        for kind in schema.get(KINDS, ()):
            if (kind["group"], kind["version"]) == (group, version):
                # kubeconform takes the version of the core group for its name.
                path = folder / f"{kind['kind'].lower()}-{group or version}-{version}.json"
                path.write_text(json.dumps({"$ref": f"{shared.name}#/definitions/{name}"}))


def strict(node: Any) -> Any:
    """The schema in JSON Schema's words, refusing fields that it does not list."""
    if isinstance(node, list):
        return [strict(each) for each in node]
    if not isinstance(node, dict):
        return node
    made = {key: strict(value) for key, value in node.items()}
    if isinstance(made.get("$ref"), str):
        made["$ref"] = made["$ref"].replace(REFERENCE, "#/definitions/")
    if node.get("nullable") is True and isinstance(made.get("type"), str):
        made["type"] = [made["type"], "null"]
    if isinstance(node.get("properties"), dict) and not node.get(OPEN):
        made.setdefault("additionalProperties", False)
    return made
