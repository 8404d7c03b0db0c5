"""``python -m e2e.docs``: do on a kind cluster of its own what the pages tell a reader to do there.

The quick start is played as it stands, image and all, with the page on upgrades before its last
step. A cluster of its name has to be absent, and is gone afterwards, whatever happened.
"""

from __future__ import annotations

import os
import shlex
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from e2e.docs.blocks import Command, Step, steps
from e2e.docs.pages import ON_KIND
from e2e.docs.playing import REPOSITORY, WrongPage, clone, play
from e2e.errors import HarnessError
from e2e.kind.command import run
from e2e.kind.engine import Engine, node_image
from e2e.progress import say
from e2e.tools.build import Binaries, binaries
from e2e.tools.catalog import KIND_TOOLS

CLUSTER = "poolwise-demo"
SHOWN_COLUMNS = 88
KIND_WITH_IMAGE = """#!/bin/sh
# kind, which takes the node image that is on this machine.
if [ "$1 $2" = "create cluster" ]; then set -- "$@" --image {image}; fi
exec {kind} "$@"
"""


def main() -> int:
    """Play the pages; 1 with the first thing that is not as a page tells it."""
    try:
        with Engine(), tempfile.TemporaryDirectory(prefix="poolwise-docs-") as folder:
            _play_on_own_cluster(Path(folder))
    except (HarnessError, WrongPage) as error:
        say(f"error: {error}")
        return 1
    return 0


def _play_on_own_cluster(folder: Path) -> None:
    found = binaries(KIND_TOOLS)
    if CLUSTER in run([found["kind"], "get", "clusters"]).split():
        raise HarnessError(
            f"a kind cluster {CLUSTER} is there already: kind delete cluster --name {CLUSTER}"
        )
    environment = _environment(folder, found)
    try:
        copy = clone(folder)
        for step in _steps():
            say(f"==> {_shown(step)}")
            play([step], copy, environment)
    finally:
        run([found["kind"], "delete", "cluster", "--name", CLUSTER], environment=environment)


def _steps() -> Iterator[Step]:
    """The first page with the others before its last step, which takes everything away."""
    first, *others = (list(steps(REPOSITORY / page)) for page in ON_KIND)
    yield from first[:-1]
    for page in others:
        yield from page
    yield first[-1]


def _environment(folder: Path, found: Binaries) -> Mapping[str, str]:
    """The tools of the repository on PATH, and a kubeconfig that is nobody's."""
    tools = folder / "bin"
    tools.mkdir()
    for name, binary in found.items():
        (tools / name).symlink_to(binary)
    if image := node_image():
        (tools / "kind").unlink()
        (tools / "kind").write_text(KIND_WITH_IMAGE.format(image=image, kind=found["kind"]))
        (tools / "kind").chmod(0o755)
    path = f"{tools}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "KUBECONFIG": str(folder / "kubeconfig")}


def _shown(step: Step) -> str:
    """Where it stands, and its first line."""
    first = next(iter(step.text.strip().splitlines()))
    told = shlex.quote(first) if not isinstance(step, Command) else first
    return f"{step.block}  {told}"[:SHOWN_COLUMNS]


if __name__ == "__main__":
    sys.exit(main())
