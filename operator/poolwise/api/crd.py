"""CustomResourceDefinitions from the models.

``python -m poolwise.api.crd --output crds`` writes them, ``--check`` fails where a file differs.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from poolwise.api import GROUP, RESOURCES, VERSION
from poolwise.api.base import Column, Resource
from poolwise.api.schema import structural_schema

CATEGORY = "poolwise"
_HEADER = "# Generated from operator/poolwise/api by `make generate`; change the models instead.\n"


def names(resource: type[Resource]) -> dict[str, Any]:
    """How the kind is spelled in URLs and by kubectl."""
    kind = resource.__name__
    return {
        "kind": kind,
        "listKind": f"{kind}List",
        "plural": f"{kind.lower()}s",
        "singular": kind.lower(),
        "shortNames": [resource.short_name],
        "categories": [CATEGORY],
    }


@cache
def validation_schema(resource: type[Resource]) -> Mapping[str, Any]:
    """The schema that the API server checks objects against; metadata it checks by itself."""
    schema = structural_schema(resource)
    properties = {**schema["properties"], "metadata": {"type": "object"}}
    return {**schema, "required": ["spec"], "properties": properties}


def crd(resource: type[Resource]) -> dict[str, Any]:
    """The CustomResourceDefinition of one kind."""
    spelled = names(resource)
    version = {
        "name": VERSION,
        "served": True,
        "storage": True,
        "additionalPrinterColumns": [_column(column) for column in resource.columns],
        "subresources": _subresources(resource),
        "schema": {"openAPIV3Schema": validation_schema(resource)},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{spelled['plural']}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "names": spelled,
            "scope": "Namespaced" if resource.is_namespaced else "Cluster",
            "versions": [version],
        },
    }


def _column(column: Column) -> dict[str, Any]:
    found = {"name": column.name, "type": column.type, "jsonPath": column.path}
    return {**found, "priority": 1} if column.is_wide else found


def _subresources(resource: type[Resource]) -> dict[str, Any]:
    if not resource.is_scalable:
        return {"status": {}}
    scale = {
        "specReplicasPath": ".spec.replicas",
        "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.selector",
    }
    return {"status": {}, "scale": scale}


def files() -> dict[str, str]:
    """File name to content, one CRD each."""
    return {f"{names(resource)['plural']}.yaml": _as_yaml(crd(resource)) for resource in RESOURCES}


class _Plain(yaml.SafeDumper):
    """YAML without anchors: the schema repeats itself, people read each place alone."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def _as_yaml(document: Mapping[str, Any]) -> str:
    return _HEADER + yaml.dump(document, Dumper=_Plain, sort_keys=False, width=120)


def differing(folder: Path) -> list[str]:
    """Names of files that are missing in ``folder`` or differ from the models."""
    return [
        name
        for name, text in files().items()
        if not (folder / name).is_file() or (folder / name).read_text() != text
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the CRDs, or with ``--check`` say which differ; 1 if any does."""
    parser = argparse.ArgumentParser(prog="python -m poolwise.api.crd", description=__doc__)
    parser.add_argument("--output", type=Path, default=Path("crds"), help="folder of the files")
    parser.add_argument("--check", action="store_true", help="write nothing; 1 if a file differs")
    options = parser.parse_args(arguments)
    if options.check:
        stale = differing(options.output)
        for name in stale:
            print(f"{options.output / name} differs from the models: run make generate")
        return 1 if stale else 0
    options.output.mkdir(parents=True, exist_ok=True)
    for name, text in files().items():
        (options.output / name).write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
