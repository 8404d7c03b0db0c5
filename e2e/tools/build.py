"""Find the binaries of a control plane, or build them from their pinned sources."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from e2e.progress import Command, elapsed, say
from e2e.tools import cache
from e2e.tools.catalog import BUILD_ENVIRONMENT, TOOLS, Tool
from e2e.tools.go import toolchain

Binaries = dict[str, Path]


def binaries(tools: Sequence[Tool] = TOOLS) -> Binaries:
    """Where each tool is, by its name: from ``KUBEBUILDER_ASSETS``, the cache, PATH, or built now.

    Raises :class:`BuildFailed` with the last lines of the output.
    """
    found = {tool.name: path for tool in tools if (path := find(tool)) is not None}
    missing = [tool for tool in tools if tool.name not in found]
    if missing:
        found |= _build_all(missing)
    return found


def built_path(tool: Tool) -> Path:
    """Where the cache holds the tool, once it is built."""
    return cache.root() / "tools" / tool.module.key / tool.name


def find(tool: Tool) -> Path | None:
    """An existing binary of the pinned minor version, or None.

    The cache comes before PATH: what was built from the locked sources needs no questions.
    """
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    if assets and (given := shutil.which(tool.name, path=assets)) and _fits(tool, given):
        return Path(given)
    if (built := built_path(tool)).exists():
        return built
    if (installed := shutil.which(tool.name)) and _fits(tool, installed):
        return Path(installed)
    return None


def _fits(tool: Tool, binary: str) -> bool:
    command = [binary, *tool.version_arguments]
    printed = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    if fits := tool.fits(printed):
        return fits
    version = " ".join(printed.split())[:60] or "of an unknown version"
    say(f"==> not using {binary}: it is {version}; needed is {tool.module.minor}")
    return False


def _build_all(tools: Sequence[Tool]) -> Binaries:
    total = sum(tool.cold_build_seconds for tool in tools)
    names = ", ".join(tool.name for tool in tools)
    say(
        f"==> building {names} from their Go modules: about {elapsed(total)} the first time on "
        "2 cores, a minute when Go's cache is warm, never again after that"
    )
    return {tool.name: _build(tool) for tool in tools}


def _build(tool: Tool) -> Path:
    target = built_path(tool)
    with cache.locked(target.parent, f"building {tool.name}"):
        if not target.exists():
            started = time.monotonic()
            cold = elapsed(tool.cold_build_seconds)
            say(f"==> {tool.name} {tool.module.version} (the first time {cold} on 2 cores)")
            _compile(tool, target)
            say(f"    {tool.name}: built in {elapsed(time.monotonic() - started)}")
    return target


def _compile(tool: Tool, target: Path) -> None:
    """Build beside, then move: a binary that is there is whole."""
    go = toolchain(tool.module.path)
    fresh = target.with_name(f".{tool.name}")
    arguments = [go, "build", *tool.module.flags, "-o", fresh, tool.package]
    log = target.with_name(f"{tool.name}.log")
    Command(f"building {tool.name}", arguments, tool.module.path, log, BUILD_ENVIRONMENT).run()
    fresh.replace(target)
