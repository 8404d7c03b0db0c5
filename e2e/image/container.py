"""Containers of the operator's image, restricted as the chart restricts its pods."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from e2e.controlplane import ports
from e2e.controlplane.ports import LOOPBACK
from e2e.image import engine
from e2e.image.engine import EngineFailed, docker

RESTRICTED = ("--read-only", "--cap-drop=ALL", "--security-opt=no-new-privileges")
KUBECONFIG = "/kubeconfig"
TIMEOUT_SECONDS = 60.0
POLL_SECONDS = 0.02


def run(tag: str, *arguments: str, entrypoint: str | None = None) -> str:
    """What one command in the image prints, without a network, on a read-only file system."""
    options = [f"--entrypoint={entrypoint}"] if entrypoint else []
    return docker("run", "--rm", "--network=none", *RESTRICTED, *options, tag, *arguments)


def python(tag: str, code: str) -> str:
    """What ``code`` prints in the image's interpreter."""
    return run(tag, "-IBc", code, entrypoint="/opt/poolwise/bin/python3")


class OperatorContainer:
    """``poolwise run`` from the image, on the host's network, while the ``with`` lasts."""

    def __init__(
        self, tag: str, kubeconfig: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        self._tag = tag
        self._kubeconfig = kubeconfig
        self._folder = Path(tempfile.mkdtemp(prefix="poolwise-image-"))
        self._container = ""
        self.started_in_seconds = 0.0
        """From ``docker run`` to the first answer on /healthz."""
        self.started_in_cpu_seconds = 0.0
        """What the operator itself computed until then: the same on a busy machine."""
        self.metrics_port, self.health_port = ports.free(2)
        self._environment = {
            "POOLWISE_METRICS_LISTEN": f"{LOOPBACK}:{self.metrics_port}",
            "POOLWISE_LIVENESS_LISTEN": f"{LOOPBACK}:{self.health_port}",
            "POOLWISE_LEASE_NAMESPACE": "default",
            **(environment or {}),
        }

    def start(self) -> None:
        """Start it and return once it answers; raises :class:`EngineFailed` with its last lines."""
        started = time.monotonic()
        self._container = docker("run", "--detach", *self._options(), self._tag, *self._command())
        self._container = self._container.strip()
        while not self._answers():
            if time.monotonic() - started > TIMEOUT_SECONDS or not self.is_running:
                raise EngineFailed(f"{self._tag} does not answer on /healthz:\n{self.logs()}")
            time.sleep(POLL_SECONDS)
        self.started_in_seconds = time.monotonic() - started
        self.started_in_cpu_seconds = self._cpu_seconds()

    def _options(self) -> list[str]:
        settings = [f"--env={name}={value}" for name, value in self._environment.items()]
        mount = f"--volume={self._readable_kubeconfig()}:{KUBECONFIG}:ro"
        # A kubeconfig's certificates are written to files; with a ServiceAccount nothing is.
        return ["--network=host", *RESTRICTED, "--tmpfs=/tmp", mount, *settings]

    @staticmethod
    def _command() -> list[str]:
        return ["run", "--kubeconfig", KUBECONFIG]

    def _readable_kubeconfig(self) -> Path:
        """A copy that the image's user may read; only its folder is private."""
        copy = self._folder / "kubeconfig"
        copy.write_bytes(self._kubeconfig.read_bytes())
        copy.chmod(0o644)
        return copy

    def _answers(self) -> bool:
        url = f"http://{LOOPBACK}:{self.health_port}/healthz"
        try:
            with urllib.request.urlopen(url, timeout=1) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False

    @property
    def is_running(self) -> bool:
        """Whether its process lives."""
        state = docker("inspect", "--format", "{{.State.Running}}", self._container)
        return state.strip() == "true"

    @property
    def exit_status(self) -> int:
        """Of a container that has ended."""
        return int(docker("inspect", "--format", "{{.State.ExitCode}}", self._container))

    def _cpu_seconds(self) -> float:
        """Of its first process, by the kernel's account: user and system time."""
        pid = docker("inspect", "--format", "{{.State.Pid}}", self._container).strip()
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def logs(self, lines: int = 20) -> str:
        """The end of what it wrote."""
        return engine.logs(self._container, lines)

    def stop(self, grace_seconds: int = 30) -> int:
        """End it as a kubelet does, and return its exit status."""
        docker("stop", "-t", grace_seconds, self._container)
        return self.exit_status

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._remove()

    def _remove(self) -> None:
        if self._container:
            docker("rm", "--force", self._container)
        shutil.rmtree(self._folder)
