"""The charts of a release: packaged, and pushed to an OCI registry."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from e2e.release.errors import NotReleasable
from e2e.release.versions import charts
from e2e.tools.build import binaries
from e2e.tools.catalog import HELM


def package(output: Path) -> list[Path]:
    """Write an archive of each chart into that folder."""
    for chart in charts():
        _helm("package", str(chart), "--destination", str(output))
    return packaged(output)


def packaged(output: Path) -> list[Path]:
    """The archives that lie in that folder."""
    return sorted(output.glob("poolwise*.tgz"))


def push(output: Path, registry: str, *, plain_http: bool = False) -> list[str]:
    """Push each archive, and return where each lies now, by digest."""
    archives = packaged(output)
    if not archives:
        raise NotReleasable(f"{output}: has no charts; run python -m e2e.release files first")
    return [_push(archive, registry, plain_http) for archive in archives]


def _push(archive: Path, registry: str, plain_http: bool) -> str:
    options = ["--plain-http"] if plain_http else []
    told = _helm("push", str(archive), f"oci://{registry}", *options)
    pushed = re.search(r"^Pushed: (\S+):\S+$", told, re.MULTILINE)
    digest = re.search(r"^Digest: (sha256:[0-9a-f]{64})$", told, re.MULTILINE)
    if pushed is None or digest is None:
        raise NotReleasable(f"helm push {archive.name}: told no digest, but {told.strip()!r}")
    return f"{pushed[1]}@{digest[1]}"


def _helm(*arguments: str) -> str:
    """What helm said, on either of its outputs."""
    command = [str(binaries((HELM,))["helm"]), *arguments]
    told = subprocess.run(command, capture_output=True, text=True, check=False)
    if told.returncode:
        raise NotReleasable(f"helm {' '.join(arguments[:2])}: {told.stderr.strip()}")
    return told.stdout + told.stderr
