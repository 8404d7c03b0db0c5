"""What is being built: its version, its commit, and the time that its files get."""

from __future__ import annotations

import os
import subprocess
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Source:
    """Goes into the image's labels and, as a time, into its files."""

    version: str
    revision: str
    url: str
    epoch_seconds: int

    @property
    def build_arguments(self) -> list[str]:
        """The Dockerfile's build arguments."""
        values = {
            "VERSION": self.version,
            "REVISION": self.revision,
            "SOURCE": self.url,
            "SOURCE_DATE_EPOCH": str(self.epoch_seconds),
        }
        return [
            part for name, value in values.items() for part in ("--build-arg", f"{name}={value}")
        ]


def read(url: str = "") -> Source:
    """Read it from pyproject.toml, git and ``SOURCE_DATE_EPOCH``; works without git, too."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    epoch = os.environ.get("SOURCE_DATE_EPOCH") or _git("log", "-1", "--format=%ct") or "0"
    return Source(project["version"], _revision(), url, int(epoch))


def _revision() -> str:
    """The commit, marked when files differ from it."""
    commit = _git("rev-parse", "HEAD")
    if not commit:
        return "unknown"
    return f"{commit}-dirty" if _git("status", "--porcelain", "--untracked-files=no") else commit


def _git(*arguments: str) -> str:
    """What git prints, or nothing where there is no git or no repository."""
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
