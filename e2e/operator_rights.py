"""The operator's rights as charts/rbac.yaml has them, given to a user."""

from __future__ import annotations

import yaml

from e2e.controlplane.client import Client, Object
from e2e.controlplane.supervised import REPOSITORY

USER = "poolwise-operator"
GROUP = "rbac.authorization.k8s.io"
ROLES = REPOSITORY / "charts" / "rbac.yaml"
NAMESPACED = "poolwise"
"""The role whose rights are in namespaces."""
LEASE_NAMESPACE = "default"


def grant(client: Client, user: str = USER, namespace: str = "") -> None:
    """Let ``user`` do what the operator does, and nothing more: in one namespace, or in all."""
    for role in yaml.safe_load_all(ROLES.read_text()):
        client.apply(_placed(role, LEASE_NAMESPACE))
        client.apply(_binding(role, user, namespace))


def _binding(role: Object, user: str, namespace: str) -> Object:
    """What is in namespaces is granted in ``namespace``; nodes and pools are in none."""
    name, kind = role["metadata"]["name"], role["kind"]
    is_narrow = kind == "Role" or (namespace and name == NAMESPACED)
    binding = {
        "apiVersion": f"{GROUP}/v1",
        "kind": "RoleBinding" if is_narrow else "ClusterRoleBinding",
        "metadata": {"name": f"{name}-{user}"},
        "roleRef": {"apiGroup": GROUP, "kind": kind, "name": name},
        "subjects": [{"apiGroup": GROUP, "kind": "User", "name": user}],
    }
    return _placed(binding, LEASE_NAMESPACE if kind == "Role" else namespace)


def _placed(document: Object, namespace: str) -> Object:
    if document["kind"].startswith("Cluster"):
        return document
    return {**document, "metadata": {**document["metadata"], "namespace": namespace}}
