"""The container engine: the one that runs, or one that the machine's own script starts."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from e2e.controlplane.supervised import REPOSITORY
from e2e.errors import HarnessError
from e2e.image.engine import image_exists
from e2e.kind.command import Completed, attempt
from e2e.progress import say
from e2e.running import Running

SCRIPTS = REPOSITORY.parent / "shared" / "kind"
"""Beside the checkout, on machines that reach no container registry."""
LOCAL_NODE_IMAGE = "local/kind-node:v1.36.3"
NODE_IMAGE_VARIABLE = "KIND_NODE_IMAGE"


class NoEngine(HarnessError):
    """There is no container engine, and nothing here that could start one."""


class Engine(Running):
    """Docker, for as long as the ``with`` lasts; stopped only when it was started for it."""

    def __init__(self, scripts: Path = SCRIPTS) -> None:
        self._prepare, self._stop = scripts / "prepare", scripts / "stop"
        self.is_ours = False

    def start(self) -> None:
        """Make sure that an engine answers; raises :class:`NoEngine`."""
        answered = attempt_info()
        if answered.returncode == 0 and (node_image() or not self._prepare.exists()):
            return
        if not self._prepare.exists():
            raise NoEngine(
                f"docker info fails, and nothing here can start an engine: {why(answered)}"
            )
        self.is_ours = answered.returncode != 0
        say(f"==> {self._prepare} (up to 20 minutes the first time, then seconds)")
        if subprocess.run([self._prepare], stdin=subprocess.DEVNULL, check=False).returncode:
            raise NoEngine(f"{self._prepare} failed")

    def stop(self) -> None:
        """Stop the engine, where it was started here."""
        if self.is_ours and self._stop.exists():
            self.is_ours = False
            say(f"==> {self._stop}")
            attempt([self._stop])


def attempt_info() -> Completed:
    """``docker info``; a machine without the command answers as one without an engine."""
    try:
        return attempt(["docker", "info"], timeout_seconds=60)
    except HarnessError as error:
        return Completed(["docker", "info"], 127, "", str(error))


def why(answered: Completed) -> str:
    """The last line of what the engine's client said."""
    return (answered.stderr.strip() or "no answer").splitlines()[-1]


def node_image() -> str:
    """The node image that was asked for or is on this machine; empty for kind's own default."""
    if asked := os.environ.get(NODE_IMAGE_VARIABLE):
        return asked
    return LOCAL_NODE_IMAGE if image_exists(LOCAL_NODE_IMAGE) else ""
