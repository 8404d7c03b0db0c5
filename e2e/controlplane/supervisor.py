"""The process that owns one control plane: it starts the others, watches them and ends them.

It ends everything in reverse order when it gets a signal, when one of its processes dies, or when
the other end of its standard input is gone, which is how it notices that whoever started it was
killed. Should it be killed itself, the kernel ends its processes. So nothing is left running.

Run as ``python -m e2e.controlplane.supervisor FOLDER [--attached]``. It answers with a line of
JSON on standard output: ``{"pid": 1, "seconds": 2.9}`` when all is ready, else ``{"error": ...}``.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import shutil
import signal
import ssl
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from types import FrameType

from e2e.controlplane.components import Component, start_order
from e2e.controlplane.process import Process
from e2e.controlplane.state import State
from e2e.errors import ProcessFailed
from e2e.progress import last_lines

READY_TIMEOUT_SECONDS = 60.0
POLL_SECONDS = 0.05
GRACE_SECONDS = 3.0
LOCK = "supervisor.pid"


class StopRequested(Exception):
    """A signal came, or the one who started us is gone."""


class Wishes:
    """Whether anybody wants us to stop, without a thread and without polling."""

    def __init__(self, attached: bool) -> None:
        self._wakeup, written = os.pipe()
        os.set_blocking(written, False)
        signal.set_wakeup_fd(written)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD):
            signal.signal(number, _noted)
        self._lifeline = [sys.stdin.fileno()] if attached else []

    def wait(self, seconds: float | None) -> None:
        """Return after ``seconds`` or when a process ended; raise :class:`StopRequested`."""
        readable, _, _ = select.select([self._wakeup, *self._lifeline], [], [], seconds)
        if set(readable) & set(self._lifeline):
            raise StopRequested
        if readable and set(os.read(self._wakeup, 64)) - {signal.SIGCHLD}:
            raise StopRequested


def _noted(number: int, frame: FrameType | None) -> None:
    """Handle a signal by doing nothing: its number is in the wake-up pipe."""


class Supervisor:
    """Runs the processes of one control plane, in the order of their start."""

    def __init__(self, state: State, wishes: Wishes) -> None:
        self._state = state
        self._wishes = wishes
        self._running: list[Process] = []
        self._client = ssl.create_default_context()
        if state.is_ours:
            self._client.load_verify_locations(state.folder / "ca.crt")
            self._client.load_cert_chain(state.folder / "admin.crt", state.folder / "admin.key")

    def start(self) -> None:
        """Start everything, each group when the one before is ready.

        Raises :class:`ProcessFailed` with the last lines of whoever failed.
        """
        deadline = time.monotonic() + READY_TIMEOUT_SECONDS
        for group in start_order(self._state):
            self._await([self._run(component) for component in group], deadline)

    def _run(self, component: Component) -> Process:
        binary = self._state.binaries[component.name]
        process = Process(component, binary, self._state.log(component.name))
        self._running.append(process)
        return process

    def _await(self, processes: Iterable[Process], deadline: float) -> None:
        pending = list(processes)
        while pending := [each for each in pending if not each.is_ready(self._client)]:
            if time.monotonic() > deadline:
                late = pending[0]
                raise ProcessFailed(
                    f"{late.component.name} was not ready after {READY_TIMEOUT_SECONDS:.0f} s:\n"
                    f"{last_lines(late.log)}"
                )
            self._wishes.wait(POLL_SECONDS)

    def watch(self) -> None:
        """Return never: raises :class:`StopRequested`, or :class:`ProcessFailed` for a death."""
        while True:
            self._wishes.wait(None)
            for process in self._running:
                process.check()

    def stop(self) -> None:
        """End everything in reverse order: an API server without its etcd would hang."""
        while self._running:
            self._running.pop().stop(GRACE_SECONDS)


def supervise(folder: Path, attached: bool) -> None:
    """Run the control plane of that folder until somebody wants it to stop."""
    state = State.load(folder)
    with (folder / LOCK).open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # somebody may be asking for a moment
        lock.truncate(0)
        print(os.getpid(), file=lock, flush=True)
        supervisor = Supervisor(state, Wishes(attached))
        try:
            started = time.monotonic()
            supervisor.start()
            _answer({"pid": os.getpid(), "seconds": round(time.monotonic() - started, 2)})
            supervisor.watch()
        except StopRequested:
            pass
        except ProcessFailed as error:
            _answer({"error": str(error)})
        finally:
            supervisor.stop()
            if state.disposable:
                shutil.rmtree(folder, ignore_errors=True)


def _answer(message: dict[str, object]) -> None:
    """Tell whoever started us, who may be gone by now; keep it in the log too."""
    line = json.dumps(message)
    print(line, file=sys.stderr, flush=True)
    try:
        print(line, flush=True)
    except BrokenPipeError:
        return


if __name__ == "__main__":
    supervise(Path(sys.argv[1]), "--attached" in sys.argv[2:])
