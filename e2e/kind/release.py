"""Helm, as a user calls it: each call's command and output go to a log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from e2e.controlplane.supervised import REPOSITORY
from e2e.errors import ProcessFailed
from e2e.kind import images
from e2e.kind.command import Completed, attempt, told

CHART = REPOSITORY / "charts" / "poolwise"
RELEASE = "poolwise"
NAMESPACE = "poolwise-system"
TIMEOUT = "180s"
IMAGE_VALUES = ("image.repository=poolwise", "image.tag=dev", "image.pullPolicy=Never")
DRAIN_VALUES = ("settings.drain_limit_seconds=20",)
"""By the longest answers it is minutes, and a replica over two nodes ends in two parts."""
ENGINE_VALUES = (f"settings.vllm_image={images.WORKLOADS}", *DRAIN_VALUES)


@dataclass(frozen=True)
class Helm:
    """Helm with a home of its own, so that the user's repositories and caches stay theirs."""

    binary: Path
    kubeconfig: Path
    folder: Path
    namespace: str = NAMESPACE
    log: Path = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "log", self.folder / "helm.log")

    def install(self, *values: str, name: str = RELEASE, chart: Path = CHART) -> str:
        """Install and wait until all is ready; raises :class:`ProcessFailed`."""
        wait = ["--create-namespace", "--wait", "--timeout", TIMEOUT]
        return self.run(["install", name, chart, *wait, *_sets(values)])

    def install_without_waiting(self, *values: str) -> str:
        """Install what is not going to be ready; raises :class:`ProcessFailed`."""
        return self.run(["install", RELEASE, CHART, "--create-namespace", *_sets(values)])

    def upgrade(self, *values: str, chart: Path = CHART, options: Sequence[str] = ()) -> str:
        """Upgrade and wait until all is ready; raises :class:`ProcessFailed`."""
        wait = ["--wait", "--timeout", TIMEOUT]
        return self.run(["upgrade", RELEASE, chart, *wait, *options, *_sets(values)])

    def rollback(self, revision: str = "") -> str:
        """Return to a revision, or to the one before; raises :class:`ProcessFailed`."""
        chosen = [revision] if revision else []
        return self.run(["rollback", RELEASE, *chosen, "--wait", "--timeout", TIMEOUT])

    def uninstall(self, name: str = RELEASE) -> str:
        """Uninstall and wait until all is gone; raises :class:`ProcessFailed`."""
        return self.run(["uninstall", name, "--wait", "--timeout", TIMEOUT])

    def test(self) -> str:
        """Run the chart's own tests; raises :class:`ProcessFailed`."""
        return self.run(["test", RELEASE, "--logs", "--timeout", TIMEOUT])

    def run(self, arguments: Sequence[str | Path]) -> str:
        """What it printed; raises :class:`ProcessFailed` with its last lines."""
        completed = self.attempt(arguments)
        if completed.returncode:
            raise ProcessFailed(told(completed))
        return completed.stdout

    def attempt(self, arguments: Sequence[str | Path]) -> Completed:
        """Any command, in the release's namespace; whether it went well is the caller's."""
        where: list[str | Path] = ["--kubeconfig", self.kubeconfig, "--namespace", self.namespace]
        completed = attempt([self.binary, *arguments, *where], environment=self._home())
        with self.log.open("a") as log:
            log.write(f"{told(completed)}\n")
        return completed

    def _home(self) -> Mapping[str, str]:
        names = {"cache": "HELM_CACHE_HOME", "config": "HELM_CONFIG_HOME", "data": "HELM_DATA_HOME"}
        return {name: str(self.folder / "helm" / part) for part, name in names.items()}


def _sets(values: Sequence[str]) -> list[str]:
    return [part for value in values for part in ("--set", value)]
