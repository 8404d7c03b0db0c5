"""A control plane of our own: start one, talk to it, end it."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Self

from e2e.controlplane import kubeconfig, ports
from e2e.controlplane.audit import POLICY, AuditLog
from e2e.controlplane.certificates import Authority, private_key, private_pem, public_pem
from e2e.controlplane.ports import LOOPBACK, Ports
from e2e.controlplane.state import State
from e2e.controlplane.supervised import Supervised
from e2e.tools.build import binaries

ADMINISTRATORS = "system:masters"
COMPONENT_USERS = ("kube-controller-manager", "kube-scheduler", "kwok")


class ControlPlane(Supervised):
    """etcd, API server, controllers, scheduler and fake kubelets, while the ``with`` lasts."""

    @classmethod
    def prepare(
        cls,
        name: str = "poolwise",
        folder: Path | None = None,
        chosen_ports: Ports | None = None,
        detached: bool = False,
    ) -> Self:
        """Get the binaries, and lay out a state folder: ``folder``, else a temporary one.

        A temporary folder is removed at the end. Raises :class:`BuildFailed`.
        """
        found = {tool: str(path) for tool, path in binaries().items()}
        state = State(
            folder=folder or Path(tempfile.mkdtemp(prefix=f"{name}-")),
            name=name,
            ports=chosen_ports or ports.choose(),
            binaries=found,
            disposable=folder is None,
        )
        lay_out(state)
        return cls(state, detached=detached)

    @property
    def url(self) -> str:
        """Where the API server answers."""
        return self.state.url

    @property
    def audit(self) -> AuditLog:
        """Who wrote what."""
        return AuditLog(self.state.audit_log)

    def kubeconfig_for(self, user: str, groups: Iterable[str] = ()) -> Path:
        """A kubeconfig file of a user with those groups, who has only what RBAC grants."""
        authority = Authority.load(self.state.folder)
        path = self.state.folder / f"{re.sub('[^a-zA-Z0-9-]+', '-', user)}.kubeconfig"
        client = authority.client(user, groups)
        return kubeconfig.write(path, self.url, authority.certificate, client, self.state.name)


def lay_out(state: State) -> None:
    """Write what the processes read: certificates, keys, kubeconfigs, the audit policy."""
    folder = state.folder
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)  # it holds private keys
    authority = Authority.create()
    authority.save(folder)
    _write_certificates(folder, authority)
    users = {f"{user}.kubeconfig": f"system:{user}" for user in COMPONENT_USERS}
    for name, user in {"kubeconfig": "kubernetes-admin", **users}.items():
        client = authority.client(user, [ADMINISTRATORS])
        kubeconfig.write(folder / name, state.url, authority.certificate, client, state.name)
    (folder / "audit-policy.json").write_text(json.dumps(POLICY))
    state.audit_log.touch()
    state.save()


def _write_certificates(folder: Path, authority: Authority) -> None:
    pairs = {
        "server": authority.server(["localhost"], [LOOPBACK]),
        "admin": authority.client("kubernetes-admin", [ADMINISTRATORS]),
    }
    for name, pair in pairs.items():
        (folder / f"{name}.crt").write_bytes(pair.certificate)
        (folder / f"{name}.key").write_bytes(pair.key)
    accounts = private_key()
    (folder / "service-accounts.key").write_bytes(private_pem(accounts))
    (folder / "service-accounts.pub").write_bytes(public_pem(accounts))
