"""Somebody else's cluster, reached through a kubeconfig context, with fake nodes added to it."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path
from typing import Self

from e2e.controlplane import ports
from e2e.controlplane.state import State
from e2e.controlplane.supervised import Supervised
from e2e.errors import NoSuchCluster
from e2e.tools.build import binaries
from e2e.tools.catalog import FAKE_KUBELET, KUBECTL


class ExistingCluster(Supervised):
    """A cluster that runs already. Only kwok is started, and manages only our own fake nodes."""

    @classmethod
    def prepare(cls, context: str) -> Self:
        """Take the context of that name from the user's kubeconfig.

        Raises :class:`NoSuchCluster` with kubectl's own words, and :class:`BuildFailed`.
        """
        found = {tool: str(path) for tool, path in binaries([KUBECTL, FAKE_KUBELET]).items()}
        kubeconfig = _read_context(found["kubectl"], context)
        folder = Path(tempfile.mkdtemp(prefix="poolwise-context-"))
        state = State(folder, context, ports.choose(), found, is_ours=False)
        state.kubeconfig.touch(mode=0o600)
        state.kubeconfig.write_text(kubeconfig)
        (folder / "kwok.kubeconfig").symlink_to(state.kubeconfig)
        state.save()
        return cls(state)


def _read_context(kubectl: str, context: str) -> str:
    """A kubeconfig with that one context, and everything that it refers to inside."""
    view = ["config", "view", "--minify", "--flatten", f"--context={context}"]
    shown = subprocess.run([kubectl, *view], capture_output=True, text=True, check=False)
    if shown.returncode:
        raise NoSuchCluster(f"context {context}: {shown.stderr.strip()}")
    return shown.stdout
