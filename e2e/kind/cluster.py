"""A kind cluster of our own, or one that was given."""

from __future__ import annotations

import secrets
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from e2e.errors import HarnessError, ProcessFailed
from e2e.kind.command import attempt, run
from e2e.kind.containers import silent_kubelet
from e2e.kind.engine import node_image
from e2e.progress import say
from e2e.running import Running
from e2e.tools.build import Binaries

CONFIGURATION = Path(__file__).with_name("cluster.yaml")
NAME = "poolwise-e2e"
READY_SECONDS = 300
TRIES = 3
CLUSTER_LABEL = "io.x-k8s.kind.cluster"


class KindCluster(Running):
    """Created when the ``with`` is entered, deleted when it is left, under a name of its own.

    Its kubeconfig lies in a temporary folder; the user's own is neither read nor written.
    """

    def __init__(self, binaries: Binaries, *, keep: bool = False) -> None:
        self._kind = binaries["kind"]
        self._keep = keep
        self.name = f"{NAME}-{secrets.token_hex(3)}"
        self.kubeconfig = Path(tempfile.mkdtemp(prefix=f"{self.name}-")) / "kubeconfig"

    def start(self) -> None:
        """Create it; raises :class:`ProcessFailed` with kind's last lines, and leaves nothing.

        A node whose kubelet does not come up in kubeadm's four minutes is a matter of luck on a
        small machine: kind gives up then, so that we begin anew, and say what the nodes said.
        """
        for tries_left in reversed(range(TRIES)):
            try:
                return self._create()
            except ProcessFailed as error:
                said = f"{error}\n{self._kubelets()}"
                self._delete()
                if not tries_left:
                    raise ProcessFailed(said) from error
                say(f"{said}\nonce more, for it may be chance")
            except BaseException:
                self._delete()
                raise

    def _create(self) -> None:
        image = node_image()
        self.kubeconfig.parent.mkdir(exist_ok=True)
        command: list[str | Path] = [self._kind, "create", "cluster", "--name", self.name]
        chosen = ["--image", image] if image else []
        where: list[str | Path] = ["--config", CONFIGURATION, "--kubeconfig", self.kubeconfig]
        # Retained when it fails, so that the nodes can be asked why; deleted by us.
        run([*command, *chosen, *where, "--wait", f"{READY_SECONDS}s", "--retain"])

    def _kubelets(self) -> str:
        """The last lines of each node's kubelet that does not answer."""
        nodes = attempt([self._kind, "get", "nodes", "--name", self.name]).stdout.split()
        return "\n".join(lines for node in nodes if (lines := silent_kubelet(node)))

    def stop(self) -> None:
        """Delete it, unless it is to be kept."""
        if self._keep:
            say(f"the cluster stays: export KUBECONFIG={self.kubeconfig}")
            say(f"delete it with: kind delete cluster --name {self.name}")
        else:
            self._delete()

    def _delete(self) -> None:
        attempt([self._kind, "delete", "cluster", "--name", self.name])
        shutil.rmtree(self.kubeconfig.parent, ignore_errors=True)


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
