"""The operator as a process of this machine, with the rights of a kubeconfig."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException
from pathlib import Path

from e2e.controlplane import ports
from e2e.controlplane.ports import LOOPBACK
from e2e.controlplane.process import end_with_parent
from e2e.errors import ProcessFailed
from e2e.progress import last_lines
from e2e.running import Running

READY_TIMEOUT_SECONDS = 120.0
"""On a machine that does ten other things; 3 s where it does none."""
STOP_TIMEOUT_SECONDS = 30.0
PROBE_TIMEOUT_SECONDS = 10.0
"""Not 1 s: it plans in between, and on a busy machine is not always asked twice."""
POLL_SECONDS = 0.05
OK = 200


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
        """Start it and return once it is ready.

        Raises :class:`ProcessFailed` with its last lines.
        """
        self.launch()
        try:
            self.wait_ready()
        except ProcessFailed:
            self.stop()
            raise

    def launch(self) -> None:
        """Start it, and return at once."""
        with self.log.open("ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "poolwise", "run", "--kubeconfig", str(self._kubeconfig)],
                env=os.environ | self._environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                preexec_fn=end_with_parent(),
            )

    def wait_ready(self) -> None:
        """Return once it is ready; raises :class:`ProcessFailed` with what it waits for."""
        deadline = time.monotonic() + READY_TIMEOUT_SECONDS
        while (answer := self.probe("/readyz"))[0] != OK:
            if not self.is_running or time.monotonic() > deadline:
                what = f"the operator is not ready: {answer[1]}\n{last_lines(self.log)}"
                raise ProcessFailed(what)
            time.sleep(POLL_SECONDS)

    def probe(self, path: str) -> tuple[int, str]:
        """Status and text of ``/healthz`` or ``/readyz``; 0 while nobody answers."""
        connection = HTTPConnection(LOOPBACK, self.liveness_port, timeout=PROBE_TIMEOUT_SECONDS)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, str(answer.read(), "utf-8").strip()
        except (OSError, HTTPException) as error:
            return 0, str(error)
        finally:
            connection.close()

    @property
    def is_running(self) -> bool:
        """Whether the process lives."""
        return self.exit_code is None and self._process is not None

    @property
    def exit_code(self) -> int | None:
        """How it ended; None while it has not."""
        return self._process.poll() if self._process else None

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
