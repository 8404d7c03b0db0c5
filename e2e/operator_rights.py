"""The operator's rights as the chart gives them to its service account, given to a user."""

from __future__ import annotations

from collections.abc import Iterator

import yaml

from e2e.controlplane.client import Client, Object
from e2e.controlplane.supervised import REPOSITORY

USER = "poolwise-operator"
GROUP = "rbac.authorization.k8s.io"
RIGHTS = REPOSITORY / "charts" / "poolwise" / "files" / "rights.yaml"
ROLES = {
    "workloads": ("ClusterRole", "poolwise"),
    "cluster": ("ClusterRole", "poolwise-cluster"),
    "lease": ("Role", "poolwise-lease"),
}
"""Kind and name of the role for each part of the file, as templates/roles.yaml has them."""
LEASE_NAMESPACE = "default"


def grant(client: Client, user: str = USER) -> None:
    """Let ``user`` do what the operator does, and nothing more."""
    for part, rules in yaml.safe_load(RIGHTS.read_text(encoding="utf-8")).items():
        for document in _role_and_binding(*ROLES[part], rules, user):
            client.apply(document)


def _role_and_binding(kind: str, name: str, rules: list[Object], user: str) -> Iterator[Object]:
    where = {"name": name} | ({"namespace": LEASE_NAMESPACE} if kind == "Role" else {})
    common = {"apiVersion": f"{GROUP}/v1", "metadata": where}
    yield {**common, "kind": kind, "rules": rules}
    yield {
        **common,
        "kind": f"{kind}Binding",
        "roleRef": {"apiGroup": GROUP, "kind": kind, "name": name},
        "subjects": [{"apiGroup": GROUP, "kind": "User", "name": user}],
    }
