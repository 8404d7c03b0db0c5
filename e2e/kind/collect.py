"""Evidence: what a cluster looked like when something failed, as files of one folder."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from e2e.errors import ProcessFailed
from e2e.kind.command import attempt

KINDS = (
    "trainingjobs.poolwise.dev,inferenceservices.poolwise.dev,acceleratorpools.poolwise.dev,"
    "jobs,deployments,replicasets,services,poddisruptionbudgets,pods,leases,events"
)
TIMEOUT_SECONDS = 120.0


def collect(kubectl: Sequence[str | Path], folder: Path) -> None:
    """Write objects, node descriptions and the logs of all our pods into the folder.

    What cannot be had leaves its error in the file, and does not stop the rest.
    """
    folder.mkdir(parents=True, exist_ok=True)
    everywhere = ["--all-namespaces"]
    _write(folder / "objects.yaml", [*kubectl, "get", KINDS, *everywhere, "-o", "yaml"])
    _write(folder / "pods.txt", [*kubectl, "get", "pods", *everywhere, "-o", "wide"])
    _write(folder / "nodes.yaml", [*kubectl, "get", "nodes", "-o", "yaml"])
    _write(folder / "nodes.txt", [*kubectl, "describe", "nodes"])
    newest = "--sort-by=.metadata.creationTimestamp"
    _write(folder / "events.txt", [*kubectl, "get", "events", *everywhere, newest])
    for namespace, pod in _pods(kubectl):
        _pod_logs(kubectl, namespace, pod, folder)


def export(kind: Path, cluster: str, folder: Path) -> None:
    """The logs of the nodes themselves: kubelet, container runtime, control plane."""
    attempt([kind, "export", "logs", folder, "--name", cluster], timeout_seconds=TIMEOUT_SECONDS)
    # What the pods printed is in the folder already, each with its own name.
    for node in folder.glob("*/pods"):
        shutil.rmtree(node, ignore_errors=True)


def _pods(kubectl: Sequence[str | Path]) -> list[tuple[str, str]]:
    names = '{range .items[*]}{.metadata.namespace} {.metadata.name}{"\\n"}{end}'
    listed = attempt([*kubectl, "get", "pods", "--all-namespaces", "-o", f"jsonpath={names}"])
    pairs = [line.split() for line in listed.stdout.splitlines()]
    return [(namespace, pod) for namespace, pod in pairs if namespace != "kube-system"]


def _pod_logs(kubectl: Sequence[str | Path], namespace: str, pod: str, folder: Path) -> None:
    """The log of now, and that of the container before it, where there was one."""
    logs = [*kubectl, "logs", f"--namespace={namespace}", pod, "--all-containers"]
    _write(folder / f"{namespace}-{pod}.log", logs)
    before = attempt([*logs, "--previous"], timeout_seconds=TIMEOUT_SECONDS)
    if before.returncode == 0:
        (folder / f"{namespace}-{pod}.previous.log").write_text(before.stdout)


def _write(file: Path, command: Sequence[str | Path]) -> None:
    try:
        printed = attempt(command, timeout_seconds=TIMEOUT_SECONDS)
    except ProcessFailed as error:
        file.write_text(str(error))
    else:
        file.write_text(printed.stdout + printed.stderr)
