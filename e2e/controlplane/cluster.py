"""A control plane as a value: start one, talk to it, end it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Self

from e2e.controlplane import kubeconfig, ports
from e2e.controlplane.audit import POLICY, AuditLog
from e2e.controlplane.build import binaries
from e2e.controlplane.certificates import Authority, private_key, private_pem, public_pem
from e2e.controlplane.errors import StartFailed
from e2e.controlplane.ports import LOOPBACK, Ports
from e2e.controlplane.progress import last_lines
from e2e.controlplane.state import State

REPOSITORY = Path(__file__).resolve().parent.parent.parent
ADMINISTRATORS = "system:masters"
STOP_TIMEOUT_SECONDS = 30.0


class ControlPlane:
    """etcd, API server, controllers, scheduler and fake kubelets, while the ``with`` lasts.

    Everything ends with the process that started it, whatever ends that, unless ``detached``.
    """

    def __init__(self, state: State, *, detached: bool = False) -> None:
        self.state = state
        self.audit = AuditLog(state.audit_log)
        self._detached = detached
        self._supervisor: subprocess.Popen[str] | None = None
        self.ready_seconds = 0.0
        """From the first process to all of them ready."""

    @classmethod
    def prepare(
        cls,
        name: str = "poolwise",
        folder: Path | None = None,
        chosen_ports: Ports | None = None,
        detached: bool = False,
    ) -> Self:
        """Get the binaries, and lay out a state folder: ``folder``, else a temporary one.

        Raises :class:`BuildFailed`.
        """
        found = {name: str(path) for name, path in binaries().items()}
        state = State(
            folder=folder or Path(tempfile.mkdtemp(prefix=f"{name}-")),
            name=name,
            ports=chosen_ports or ports.choose(),
            binaries=found,
            disposable=folder is None,
        )
        _lay_out(state)
        return cls(state, detached=detached)

    @property
    def url(self) -> str:
        """Where the API server answers."""
        return self.state.url

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig file."""
        return self.state.kubeconfig

    def kubeconfig_for(self, user: str, groups: Iterable[str] = ()) -> Path:
        """A kubeconfig file of a user with those groups, who has only what RBAC grants."""
        authority = Authority.load(self.state.folder)
        path = self.state.folder / f"{re.sub('[^a-zA-Z0-9-]+', '-', user)}.kubeconfig"
        client = authority.client(user, groups)
        return kubeconfig.write(path, self.url, authority.certificate, client, self.state.name)

    def kubeconfig_for_service_account(self, namespace: str, name: str) -> Path:
        """A kubeconfig file with the rights of a ServiceAccount."""
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}")
        return self.kubeconfig_for(f"system:serviceaccount:{namespace}:{name}", groups)

    def start(self) -> None:
        """Start everything and return when all is ready.

        Raises :class:`StartFailed`, naming the process, with the last lines of its log.
        """
        arguments = [sys.executable, "-m", "e2e.controlplane.supervisor", str(self.state.folder)]
        log = self.state.log("supervisor")
        with log.open("w") as errors:
            self._supervisor = subprocess.Popen(
                arguments if self._detached else [*arguments, "--attached"],
                cwd=REPOSITORY,
                stdin=subprocess.DEVNULL if self._detached else subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                start_new_session=True,  # ctrl-C is ours to handle, in our order
            )
        answer = self._read()
        if "error" in answer:
            self.stop()
            raise StartFailed(str(answer["error"]))
        self.ready_seconds = float(str(answer["seconds"]))

    def _read(self) -> dict[str, object]:
        assert self._supervisor is not None
        assert self._supervisor.stdout is not None
        line = self._supervisor.stdout.readline()
        if not line:
            log = self.state.log("supervisor")
            return {"error": f"the supervisor ended:\n{last_lines(log)}"}
        answer: dict[str, object] = json.loads(line)
        return answer

    def stop(self) -> None:
        """End everything; nothing happens when it is not running."""
        if self._supervisor is None:
            return
        self._supervisor.terminate()
        self._supervisor.communicate(timeout=STOP_TIMEOUT_SECONDS)
        self._supervisor = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()


def _lay_out(state: State) -> None:
    """Write what the processes read: certificates, keys, kubeconfigs, the audit policy."""
    folder = state.folder
    folder.mkdir(parents=True, exist_ok=True)
    authority = Authority.create()
    authority.save(folder)
    server = authority.server(["localhost"], [LOOPBACK])
    administrator = authority.client("kubernetes-admin", [ADMINISTRATORS])
    for name, pair in (("server", server), ("admin", administrator)):
        (folder / f"{name}.crt").write_bytes(pair.certificate)
        (folder / f"{name}.key").write_bytes(pair.key)
    accounts = private_key()
    (folder / "service-accounts.key").write_bytes(private_pem(accounts))
    (folder / "service-accounts.pub").write_bytes(public_pem(accounts))
    (folder / "audit-policy.json").write_text(json.dumps(POLICY))
    state.audit_log.touch()
    clients = {"kubeconfig": administrator} | {
        f"{user}.kubeconfig": authority.client(f"system:{user}", [ADMINISTRATORS])
        for user in ("kube-controller-manager", "kube-scheduler", "kwok")
    }
    for name, client in clients.items():
        kubeconfig.write(folder / name, state.url, authority.certificate, client, state.name)
    state.save()
