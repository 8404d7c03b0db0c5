"""The container engine, by its command line ``docker`` (podman's imitation does too)."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence

from e2e.errors import HarnessError


class EngineFailed(HarnessError):
    """The container engine is missing, does not answer, or refused a command."""


def docker(*arguments: object) -> str:
    """Run ``docker ARGUMENTS`` and return its standard output.

    Raises :class:`EngineFailed` with the engine's own words.
    """
    command = ["docker", *map(str, arguments)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise EngineFailed("docker: not found on PATH; install Docker, or podman-docker") from error
    if done.returncode:
        said = _words(done.stderr) or f"exit status {done.returncode}"
        raise EngineFailed(f"docker {_brief(command)}: {said}")
    return done.stdout


def _brief(command: Sequence[str]) -> str:
    """The start of a command: enough to recognise it in an error, without programs in it."""
    text = " ".join("..." if "\n" in each else each for each in command[1:])
    return text if len(text) <= 100 else f"{text[:100]} ..."


def _words(said: str) -> str:
    """What the engine said, without its advice to read its help."""
    lines = [line for line in said.strip().splitlines() if not line.startswith("Run 'docker")]
    return "\n".join(lines).strip()


def logs(container: str, lines: int = 20) -> str:
    """The end of what a container wrote to either stream."""
    command = ["docker", "logs", "--tail", str(lines), container]
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    return done.stdout


def why_unavailable() -> str | None:
    """One sentence saying why there is no engine, or None when it answers."""
    if shutil.which("docker") is None:
        return "docker is not on PATH"
    try:
        docker("info", "--format", "{{.ServerVersion}}")
    except EngineFailed as error:
        return str(error)
    return None


def image_exists(tag: str) -> bool:
    """Whether the engine holds an image of that name."""
    return bool(docker("images", "--quiet", tag).strip())


def size_bytes(tag: str) -> int:
    """What the image's layers take, unpacked."""
    return int(docker("image", "inspect", "--format", "{{.Size}}", tag))
