"""The folder that holds one control plane: what the parts that share it call its files."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from e2e.controlplane.ports import LOOPBACK, Ports


@dataclass(frozen=True)
class State:
    """One control plane on disk.

    ``disposable`` folders are removed when it stops. Where the API server is not ours, only the
    fake kubelets run.
    """

    folder: Path
    name: str
    ports: Ports
    binaries: dict[str, str]
    disposable: bool = True
    is_ours: bool = True

    @property
    def url(self) -> str:
        """Where the API server answers."""
        return f"https://{LOOPBACK}:{self.ports.apiserver}"

    @property
    def kubeconfig(self) -> Path:
        """The administrator's."""
        return self.folder / "kubeconfig"

    @property
    def audit_log(self) -> Path:
        return self.folder / "audit.log"

    def log(self, component: str) -> Path:
        """What a process of the control plane prints."""
        return self.folder / f"{component}.log"

    def save(self) -> None:
        """Write ``state.json``, which :meth:`load` reads."""
        fields = {**asdict(self), "folder": str(self.folder)}
        (self.folder / "state.json").write_text(json.dumps(fields, indent=2))

    @classmethod
    def load(cls, folder: Path) -> State:
        """What :meth:`save` wrote into that folder."""
        fields = json.loads((folder / "state.json").read_text())
        return cls(**{**fields, "folder": folder, "ports": Ports(**fields["ports"])})
