"""Something that runs for as long as a ``with`` lasts, in the hands of a supervising process."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

from e2e.controlplane import kubeconfig
from e2e.controlplane.state import State
from e2e.errors import ProcessFailed
from e2e.progress import last_lines
from e2e.running import Running

REPOSITORY = Path(__file__).resolve().parent.parent.parent
STOP_TIMEOUT_SECONDS = 30.0


class Supervised(Running):
    """Processes that end with the one that started them, whatever ends that, unless ``detached``.

    See :mod:`e2e.controlplane.supervisor` for how.
    """

    def __init__(self, state: State, *, detached: bool = False) -> None:
        self.state = state
        self._detached = detached
        self._supervisor: subprocess.Popen[str] | None = None
        self.ready_seconds = 0.0
        """From the first process to all of them ready."""

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig file."""
        return self.state.kubeconfig

    def kubeconfig_for_service_account(self, namespace: str, name: str) -> Path:
        """A kubeconfig file with a token of that ServiceAccount, which has to exist."""
        kubectl = [self.state.binaries["kubectl"], f"--kubeconfig={self.kubeconfig}"]
        asked = subprocess.run(
            [*kubectl, "create", "token", f"--namespace={namespace}", "--duration=24h", name],
            capture_output=True,
            text=True,
            check=False,
        )
        if asked.returncode:
            raise LookupError(f"no token for {namespace}/{name}: {asked.stderr.strip()}")
        path = self.state.folder / f"{namespace}-{name}.kubeconfig"
        return kubeconfig.with_token(self.kubeconfig, asked.stdout, path)

    def start(self) -> None:
        """Start everything and return when all is ready.

        Raises :class:`ProcessFailed`, naming the process, with the last lines of its log.
        """
        arguments = [sys.executable, "-m", "e2e.controlplane.supervisor", str(self.state.folder)]
        with self.state.log("supervisor").open("w") as errors:
            self._supervisor = subprocess.Popen(
                arguments if self._detached else [*arguments, "--attached"],
                cwd=REPOSITORY,
                stdin=subprocess.DEVNULL if self._detached else subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                start_new_session=True,  # ctrl-C is ours to handle, in our order
            )
        try:
            answer = self._answer(self._supervisor)
        except KeyboardInterrupt:
            self.stop()
            raise
        if "error" in answer:
            self.stop()
            raise ProcessFailed(str(answer["error"]))
        self.ready_seconds = float(str(answer["seconds"]))

    def _answer(self, supervisor: subprocess.Popen[str]) -> dict[str, object]:
        assert supervisor.stdout is not None
        if line := supervisor.stdout.readline():
            answer: dict[str, object] = json.loads(line)
            return answer
        return {"error": f"the supervisor ended:\n{last_lines(self.state.log('supervisor'))}"}

    def wait(self) -> None:
        """Return never: raises :class:`ProcessFailed` when one of the processes dies."""
        assert self._supervisor is not None
        answer = self._answer(self._supervisor)
        raise ProcessFailed(str(answer["error"]))

    def stop(self) -> None:
        """End everything; nothing happens when it is not running.

        Raises :class:`ProcessFailed` when a process had died meanwhile.
        """
        if self._supervisor is None:
            return
        self._supervisor.terminate()
        rest, _ = self._supervisor.communicate(timeout=STOP_TIMEOUT_SECONDS)
        self._supervisor = None
        if self.state.disposable:  # in case it ended before it could
            shutil.rmtree(self.state.folder, ignore_errors=True)
        for line in rest.splitlines():
            raise ProcessFailed(json.loads(line)["error"])
