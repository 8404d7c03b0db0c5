"""The operator's image and the suite's own, built here and put on the nodes."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from e2e.controlplane.supervised import REPOSITORY
from e2e.errors import HarnessError
from e2e.image.engine import image_exists
from e2e.kind.command import run

OPERATOR = "poolwise:dev"
PREVIOUS = "poolwise:previous"
"""The same image under an older tag: what the suite upgrades from."""
WORKLOADS = "poolwise-e2e:dev"
"""``torchrun`` and ``vllm`` as doubles: see ``e2e/images``."""
LOCAL_BASE = "local/python:3.11-slim"
"""What ``../shared/kind/prepare`` leaves on machines that reach no registry."""
ALL = (OPERATOR, PREVIOUS, WORKLOADS)


def build() -> None:
    """Build both from this checkout; the engine's cache makes that quick when nothing changed."""
    environment = {"PYTHONPATH": str(REPOSITORY)}
    base = os.environ.get("BASE") or (LOCAL_BASE if image_exists(LOCAL_BASE) else "")
    chosen = ["--base", base] if base else []
    run([sys.executable, "-m", "e2e.image", *chosen, "--tag", OPERATOR], environment=environment)
    run([sys.executable, "-m", "e2e.images", "--tag", WORKLOADS], environment=environment)
    run(["docker", "tag", OPERATOR, PREVIOUS])
    if missing := [image for image in ALL if not image_exists(image)]:
        raise HarnessError(f"built, and yet the engine has no {', '.join(missing)}")


def load(kind: Path, cluster: str) -> None:
    """Put the images on every worker of a kind cluster; nothing of ours runs elsewhere."""
    names = run([kind, "get", "nodes", "--name", cluster]).split()
    workers = [name for name in names if not name.endswith("-control-plane")]
    run([kind, "load", "docker-image", *ALL, "--name", cluster, "--nodes", ",".join(workers)])
