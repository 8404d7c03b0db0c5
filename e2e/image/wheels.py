"""``build/wheels`` and ``build/own``: what the Dockerfile installs, and nothing else.

The locked dependencies are downloaded with their hashes, which the image's build checks again;
that costs a network once per lock and base. Poolwise's own wheel is built anew each time.
"""

from __future__ import annotations

import hashlib
import shutil
import sys

from e2e.image.source import ROOT, Source
from e2e.image.target import Target
from e2e.progress import Command, say

LOCK = ROOT / "requirements" / "runtime.txt"
BUILD = ROOT / "build"
FOLDER = BUILD / "wheels"
OWN = BUILD / "own"
STAMP = BUILD / "wheels.key"
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check")


def gather(target: Target, source: Source) -> None:
    """Fill both folders for ``target``; nothing is downloaded when it holds those wheels already.

    Raises :class:`BuildFailed` with pip's last lines, which name the package that has no wheel.
    """
    BUILD.mkdir(exist_ok=True)
    if not _is_current(target):
        _download(target)
    _build_own(source)


def key(target: Target, lock: bytes) -> str:
    """Names what the downloaded wheels depend on."""
    return hashlib.sha256(repr((target.pip_arguments, lock)).encode()).hexdigest()


def _is_current(target: Target) -> bool:
    return STAMP.exists() and STAMP.read_text() == key(target, LOCK.read_bytes())


def _download(target: Target) -> None:
    say(f"==> wheels of the locked packages for {target}")
    STAMP.unlink(missing_ok=True)
    shutil.rmtree(FOLDER, ignore_errors=True)
    arguments = [*PIP, "download", "--require-hashes", "--no-deps", *target.pip_arguments]
    arguments += ["--requirement", str(LOCK), "--dest", str(FOLDER)]
    title = f"getting wheels for {target}"
    Command(title, arguments, ROOT, BUILD / "wheels.log", {}).run()
    STAMP.write_text(key(target, LOCK.read_bytes()))


def _build_own(source: Source) -> None:
    """Hatchling writes the same bytes for the same files and ``SOURCE_DATE_EPOCH``."""
    shutil.rmtree(OWN, ignore_errors=True)
    arguments = [*PIP, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", OWN, ROOT]
    environment = {"SOURCE_DATE_EPOCH": str(source.epoch_seconds)}
    Command("building Poolwise's wheel", arguments, ROOT, BUILD / "own.log", environment).run()
