"""The operator as a process of this machine, with the rights of a kubeconfig."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path

from e2e.controlplane import ports
from e2e.controlplane.ports import LOOPBACK
from e2e.controlplane.process import end_with_parent
from e2e.errors import ProcessFailed
from e2e.progress import last_lines
from e2e.running import Running

READY_TIMEOUT_SECONDS = 30.0
STOP_TIMEOUT_SECONDS = 30.0
POLL_SECONDS = 0.05


class OperatorProcess(Running):
    """``poolwise run``, while the ``with`` lasts; it cannot outlive the process that made it."""

    def __init__(
        self, kubeconfig: Path, log: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        self.log = log
        self.metrics_port, self.liveness_port = ports.free(2)
        self._kubeconfig = kubeconfig
        self._environment = {
            "POOLWISE_METRICS_LISTEN": f"{LOOPBACK}:{self.metrics_port}",
            "POOLWISE_LIVENESS_LISTEN": f"{LOOPBACK}:{self.liveness_port}",
            "POOLWISE_LEASE_NAMESPACE": "default",
            **(environment or {}),
        }
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it and return once it serves; raises :class:`ProcessFailed` with its last lines."""
        with self.log.open("ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "poolwise", "run", "--kubeconfig", str(self._kubeconfig)],
                env=os.environ | self._environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                preexec_fn=end_with_parent(),
            )
        deadline = time.monotonic() + READY_TIMEOUT_SECONDS
        while not self._serves():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise ProcessFailed(f"the operator does not serve:\n{last_lines(self.log)}")
            time.sleep(POLL_SECONDS)

    def _serves(self) -> bool:
        url = f"http://{LOOPBACK}:{self.liveness_port}/healthz"
        try:
            with urllib.request.urlopen(url, timeout=1) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False

    @property
    def is_running(self) -> bool:
        """Whether the process lives."""
        return self._process is not None and self._process.poll() is None

    def kill(self) -> None:
        """End it at once, as a lost node does."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        """Ask it to end as a kubelet does; nothing happens when it has ended."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(STOP_TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
