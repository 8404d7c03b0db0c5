"""The operator's rights as the chart gives them to its service account, given to a user."""

from __future__ import annotations

import time

import yaml

from e2e.controlplane.client import POLL_SECONDS, Client, Object
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
TIMEOUT_SECONDS = 20.0


def grant(client: Client, user: str = USER, namespace: str = "") -> None:
    """Let ``user`` do what the operator does, and nothing more: in one namespace, or in all."""
    for part, rules in yaml.safe_load(RIGHTS.read_text(encoding="utf-8")).items():
        kind, name = ROLES[part]
        where = {"namespace": LEASE_NAMESPACE} if kind == "Role" else {}
        client.apply(
            {
                "apiVersion": f"{GROUP}/v1",
                "kind": kind,
                "metadata": {"name": name, **where},
                "rules": rules,
            }
        )
        # A ClusterRole that is bound in a namespace holds there alone.
        if namespace and part == "workloads":
            where = {"namespace": namespace}
        client.apply(_binding(kind, name, user, where))


def await_right(client: Client, user: str, may: bool, **of: str) -> None:
    """Return once the API server's answer is whether ``user`` ``may`` do this: it learns of a role
    a moment after that was written.

    ``of`` is verb, group, resource and namespace of a SubjectAccessReview. Raises
    :class:`TimeoutError`.
    """
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {"user": user, "resourceAttributes": of},
    }
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while client.create(review)["status"]["allowed"] is not may:
        if time.monotonic() > deadline:
            raise TimeoutError(f"after {TIMEOUT_SECONDS:g} s {user} may {'not ' * may}do {of}")
        time.sleep(POLL_SECONDS)


def _binding(kind: str, name: str, user: str, where: Object) -> Object:
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "RoleBinding" if where else "ClusterRoleBinding",
        "metadata": {"name": f"{name}-{user}", **where},
        "roleRef": {"apiGroup": GROUP, "kind": kind, "name": name},
        "subjects": [{"apiGroup": GROUP, "kind": "User", "name": user}],
    }
