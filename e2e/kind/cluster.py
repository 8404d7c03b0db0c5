"""A kind cluster of our own, or one that was given."""

from __future__ import annotations

import secrets
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from e2e.errors import HarnessError, ProcessFailed
from e2e.kind.command import attempt, run
from e2e.kind.engine import node_image
from e2e.progress import say
from e2e.running import Running
from e2e.tools.build import Binaries

CONFIGURATION = Path(__file__).with_name("cluster.yaml")
NAME = "poolwise-e2e"
READY_SECONDS = 300
CLUSTER_LABEL = "io.x-k8s.kind.cluster"


class KindCluster(Running):
    """Created when the ``with`` is entered, deleted when it is left, under a name of its own.

    Its kubeconfig lies in a temporary folder; the user's own is neither read nor written.
    """

    def __init__(self, binaries: Binaries, *, keep: bool = False) -> None:
        self._kind = binaries["kind"]
        self._keep = keep
        self.name = f"{NAME}-{secrets.token_hex(3)}"
        self._folder = Path(tempfile.mkdtemp(prefix=f"{self.name}-"))
        self.kubeconfig = self._folder / "kubeconfig"

    def start(self) -> None:
        """Create it; raises :class:`ProcessFailed` with kind's last lines, and leaves nothing."""
        image = node_image()
        arguments: list[str | Path] = [
            "create",
            "cluster",
            "--name",
            self.name,
            "--config",
            CONFIGURATION,
        ]
        chosen = ["--image", image] if image else []
        where: list[str | Path] = ["--kubeconfig", self.kubeconfig, "--wait", f"{READY_SECONDS}s"]
        try:
            run([self._kind, *arguments, *chosen, *where])
        except BaseException:
            self._delete()
            raise

    def stop(self) -> None:
        """Delete it, unless it is to be kept."""
        if self._keep:
            say(f"the cluster stays: export KUBECONFIG={self.kubeconfig}")
            say(f"delete it with: kind delete cluster --name {self.name}")
        else:
            self._delete()

    def _delete(self) -> None:
        attempt([self._kind, "delete", "cluster", "--name", self.name])
        shutil.rmtree(self._folder, ignore_errors=True)


class GivenCluster(Running):
    """Somebody's cluster, behind a kubeconfig; it is neither created nor deleted here."""

    def __init__(self, binaries: Binaries, kubeconfig: Path) -> None:
        if not kubeconfig.is_file():
            raise HarnessError(f"no kubeconfig at {kubeconfig}")
        self.kubeconfig = kubeconfig.resolve()
        self.name = kind_name([binaries["kubectl"], f"--kubeconfig={self.kubeconfig}"])

    def start(self) -> None:
        """It runs already."""

    def stop(self) -> None:
        """It goes on."""


def kind_name(kubectl: Sequence[str | Path]) -> str:
    """Of which kind cluster on this machine the nodes are containers; empty when they are none."""
    node = run([*kubectl, "get", "nodes", "-o", "jsonpath={.items[0].metadata.name}"])
    label = f'{{{{index .Config.Labels "{CLUSTER_LABEL}"}}}}'
    try:
        found = attempt(["docker", "inspect", "--format", label, node])
    except ProcessFailed:
        return ""
    return found.stdout.strip() if found.returncode == 0 else ""
