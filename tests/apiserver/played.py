"""Kinds of others on an API server without their controllers: any schema, and nothing behind it."""

from __future__ import annotations

from collections.abc import Sequence

from e2e.controlplane.client import Object


def crd(group: str, kind: str, versions: Sequence[str], *, namespaced: bool = True) -> Object:
    """The definition of a kind that takes any fields; the first version is stored."""
    plural = f"{kind.lower()}es" if kind.endswith("s") else f"{kind.lower()}s"
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
            "scope": "Namespaced" if namespaced else "Cluster",
            "versions": [
                {
                    "name": version,
                    "served": True,
                    "storage": position == 0,
                    "schema": {"openAPIV3Schema": anything},
                    "subresources": {"status": {}},
                }
                for position, version in enumerate(versions)
            ],
        },
    }
