"""Run other programs: their output, or an error that quotes it."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from e2e.errors import ProcessFailed

TIMEOUT_SECONDS = 600.0
LAST_LINES = 15

Completed = subprocess.CompletedProcess[str]


def attempt(
    arguments: Sequence[str | Path],
    stdin: str = "",
    environment: Mapping[str, str] | None = None,
    timeout_seconds: float = TIMEOUT_SECONDS,
) -> Completed:
    """Run to the end; whether it went well is the caller's to look at.

    Raises :class:`ProcessFailed` when it is not there, or does not end in time.
    """
    try:
        return subprocess.run(
            [str(argument) for argument in arguments],
            input=stdin,
            env={**os.environ, **(environment or {})},
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=timeout_seconds,
        )
    except FileNotFoundError as error:
        raise ProcessFailed(f"{arguments[0]} is not installed") from error
    except subprocess.TimeoutExpired as error:
        raise ProcessFailed(
            f"{shlex.join(map(str, arguments))}: no end after {timeout_seconds:g} s"
        ) from error


def run(
    arguments: Sequence[str | Path],
    stdin: str = "",
    environment: Mapping[str, str] | None = None,
    timeout_seconds: float = TIMEOUT_SECONDS,
) -> str:
    """What it printed; raises :class:`ProcessFailed` with its last lines when it fails."""
    completed = attempt(arguments, stdin, environment, timeout_seconds)
    if completed.returncode:
        raise ProcessFailed(told(completed))
    return completed.stdout


def told(completed: Completed) -> str:
    """The command, how it ended, and its last lines."""
    command = shlex.join(map(str, completed.args))
    lines = (completed.stdout + completed.stderr).splitlines()[-LAST_LINES:]
    return "\n    ".join([f"exit status {completed.returncode} of {command}", *lines])
