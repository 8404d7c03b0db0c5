"""One process of a control plane: start it, ask whether it is ready, end it."""

from __future__ import annotations

import ctypes
import os
import signal
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

from e2e.controlplane.components import Component
from e2e.controlplane.ports import is_free
from e2e.errors import ProcessFailed
from e2e.progress import last_lines

PR_SET_PDEATHSIG = 1


class Process:
    """A running component; it cannot outlive the process that made it (on Linux)."""

    def __init__(self, component: Component, binary: str, log: Path) -> None:
        for port in component.ports:
            if not is_free(port):
                raise ProcessFailed(f"{component.name} needs port {port}, which is taken")
        self.component = component
        self.log = log
        self._started = time.monotonic()
        with log.open("w") as output:
            self._process = subprocess.Popen(
                [binary, *component.arguments],
                cwd=log.parent,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                preexec_fn=end_with_parent(),
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    def check(self) -> None:
        """Raise :class:`ProcessFailed`, with its last lines, when it has ended."""
        status = self._process.poll()
        if status is not None:
            raise ProcessFailed(
                f"{self.component.name} ended after {time.monotonic() - self._started:.1f} s "
                f"with exit status {status}:\n{last_lines(self.log)}"
            )

    def is_ready(self, client: ssl.SSLContext) -> bool:
        """Whether its URL answers 200; raises :class:`ProcessFailed` when it has ended."""
        self.check()
        https = self.component.ready_url.startswith("https:")
        try:
            with urllib.request.urlopen(
                self.component.ready_url, timeout=1, context=client if https else None
            ) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False

    def stop(self, grace_seconds: float) -> None:
        """Ask it to end, and end it when it does not within the grace."""
        self._process.terminate()
        try:
            self._process.wait(grace_seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def end_with_parent() -> Callable[[], None] | None:
    """What ``Popen`` runs in a child that must not outlive this process; Linux only."""
    return _EndWithParent() if sys.platform == "linux" else None


class _EndWithParent:
    """Run in the child before its program: the kernel kills it when its parent is gone.

    The C library is opened before the fork, because little is safe after it.
    """

    def __init__(self) -> None:
        self._parent = os.getpid()
        self._prctl = ctypes.CDLL(None).prctl

    def __call__(self) -> None:
        self._prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != self._parent:  # it died before we asked
            os._exit(1)
