"""The operator's rights as charts/rbac.yaml has them, given to a user."""

from __future__ import annotations

import yaml

from e2e.controlplane.client import Client, Object
from e2e.controlplane.supervised import REPOSITORY

USER = "poolwise-operator"
GROUP = "rbac.authorization.k8s.io"
ROLES = REPOSITORY / "charts" / "rbac.yaml"
LEASE_NAMESPACE = "default"


def grant(client: Client, user: str = USER) -> None:
    """Let ``user`` do what the operator does, and nothing more."""
    for role in yaml.safe_load_all(ROLES.read_text()):
        for document in (role, _binding(role, user)):
            client.apply(_placed(document))


def _binding(role: Object, user: str) -> Object:
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": f"{role['kind']}Binding",
        "metadata": {"name": role["metadata"]["name"]},
        "roleRef": {"apiGroup": GROUP, "kind": role["kind"], "name": role["metadata"]["name"]},
        "subjects": [{"apiGroup": GROUP, "kind": "User", "name": user}],
    }


def _placed(document: Object) -> Object:
    """Roles and their bindings go where the Lease is; the others have no namespace."""
    if document["kind"].startswith("Cluster"):
        return document
    return {**document, "metadata": {**document["metadata"], "namespace": LEASE_NAMESPACE}}
