"""Control planes that stay up under a name, each in a folder of this clone."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import signal
import time
from pathlib import Path

from e2e.controlplane.cluster import ControlPlane
from e2e.controlplane.state import State
from e2e.controlplane.supervised import REPOSITORY, STOP_TIMEOUT_SECONDS
from e2e.controlplane.supervisor import LOCK
from e2e.errors import HarnessError

FOLDER = REPOSITORY / ".cluster"
POLL_SECONDS = 0.05
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}")


def names(root: Path = FOLDER) -> list[str]:
    """The names that have a folder, running or not."""
    return sorted(state.parent.name for state in root.glob("*/state.json"))


def is_running(name: str, root: Path = FOLDER) -> bool:
    """Whether its supervisor lives: that holds a lock which the kernel drops with the process."""
    try:
        with (folder_of(name, root) / LOCK).open() as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


def folder_of(name: str, root: Path = FOLDER) -> Path:
    """Where the control plane of that name keeps what it has, which :func:`stop` removes.

    Raises :class:`HarnessError` for a name that leads elsewhere, such as ``..`` or ``/``.
    """
    if not _NAME.fullmatch(name):
        raise HarnessError(
            f'"{name}" is no name of a control plane: letters, digits, "-", "_" and "." are'
            " allowed, at most 63, the first a letter or a digit"
        )
    return root / name


def attach(name: str, root: Path = FOLDER) -> ControlPlane:
    """The control plane of that name, which runs."""
    return ControlPlane(State.load(folder_of(name, root)))


def prepare(name: str, root: Path = FOLDER, *, detached: bool) -> ControlPlane:
    """One to start under that name, in place of a dead one's remains.

    Raises :class:`HarnessError` when it runs already.
    """
    if is_running(name, root):
        raise HarnessError(f"control plane {name} is running already")
    folder = folder_of(name, root)
    shutil.rmtree(folder, ignore_errors=True)
    return ControlPlane.prepare(name, folder, detached=detached)


def stop(name: str, root: Path = FOLDER) -> bool:
    """End the one of that name and remove its folder; whether there was one to end.

    Only the supervisor that holds the lock is signalled, so that no other process can be hit.
    """
    folder, running = folder_of(name, root), is_running(name, root)
    if running:
        os.kill(int((folder / LOCK).read_text()), signal.SIGTERM)
        deadline = time.monotonic() + STOP_TIMEOUT_SECONDS
        while is_running(name, root):
            if time.monotonic() > deadline:
                raise HarnessError(f"{name} did not end in {STOP_TIMEOUT_SECONDS:.0f} s")
            time.sleep(POLL_SECONDS)
    shutil.rmtree(folder, ignore_errors=True)
    return running
