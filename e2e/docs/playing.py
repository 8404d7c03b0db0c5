"""Plays a page: writes its files and runs its commands, as a reader would in one shell."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from e2e.docs.blocks import Command, File, Step
from e2e.docs.matching import prints

REPOSITORY = Path(__file__).resolve().parent.parent.parent
STATE = ".shell"
LIMIT_SECONDS = 600
NOT_COPIED = (".?*", "__pycache__", "build", "dist")
"""What a fresh clone would not have; ``.gitignore`` names the same."""
ENVIRONMENT_SOURCES = ("pyproject.toml", "requirements/dev.txt")
"""What ``make setup`` makes .venv from."""
SHELL = f"""
set -e -o pipefail
if [ -f {STATE} ]; then . ./{STATE}; fi
trap 'code=$?; export -p > {STATE}; exit $code' EXIT
"""
"""Variables that a command exports are there for the next one."""


class WrongPage(AssertionError):
    """A page says what is not so."""


def clone(folder: Path) -> Path:
    """A copy of the repository in which a page may write, with the same virtual environment.

    ``make`` takes that environment as it is: what it is made from looks older.
    """
    copy = folder / "poolwise"
    shutil.copytree(REPOSITORY, copy, ignore=shutil.ignore_patterns(*NOT_COPIED))
    (copy / ".venv").symlink_to(REPOSITORY / ".venv")
    for source in ENVIRONMENT_SOURCES:
        os.utime(copy / source, (0, 0))
    return copy


def play(steps: Iterable[Step], folder: Path, environment: Mapping[str, str] = os.environ) -> None:
    """Do every step in ``folder``; raises :class:`WrongPage` at the first that is not as told."""
    for step in steps:
        if isinstance(step, File):
            if step.name:
                (folder / step.name).write_text(step.text, encoding="utf-8")
        else:
            _check(step, run(step.text, folder, environment))


def run(
    command: str, folder: Path, environment: Mapping[str, str] = os.environ
) -> subprocess.CompletedProcess[str]:
    """Run a command in a shell where ``poolwise`` and the other tools of .venv are found."""
    tools = Path(sys.executable).parent
    path = f"{tools}{os.pathsep}{environment.get('PATH', os.defpath)}"
    return subprocess.run(
        ["bash", "-c", SHELL + command],
        cwd=folder,
        env={**environment, "PATH": path, "COLUMNS": "240", "NO_COLOR": "1"},
        text=True,
        capture_output=True,
        stdin=subprocess.DEVNULL,
        timeout=LIMIT_SECONDS,
    )


def _check(step: Command, done: subprocess.CompletedProcess[str]) -> None:
    if done.returncode:
        raise WrongPage(
            f"{step.block}: exit {done.returncode} of\n{step.text}\n{done.stdout}{done.stderr}"
        )
    if step.printed and not prints(step.printed, done.stdout):
        shown = "\n".join(step.printed)
        raise WrongPage(
            f"{step.block}: {step.text}\nshould print\n{shown}\nbut prints\n{done.stdout}"
        )
