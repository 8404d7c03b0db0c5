"""``python -m e2e.docs``: do on a kind cluster of its own what the pages tell a reader to do there.

The quick start is played as it stands, image and all, with the page on upgrades before its last
step. A cluster of its name has to be absent, and is gone afterwards, whatever happened.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from e2e.docs.blocks import Step, steps
from e2e.docs.pages import ON_KIND
from e2e.docs.playing import REPOSITORY, WrongPage, clone, play
from e2e.errors import HarnessError
from e2e.image.engine import image_exists
from e2e.kind.command import run
from e2e.kind.engine import Engine, node_image
from e2e.kind.images import LOCAL_BASE
from e2e.progress import say
from e2e.tools.build import Binaries, binaries
from e2e.tools.catalog import KIND_TOOLS

CLUSTER = "poolwise-demo"
SHOWN_COLUMNS = 88
INOTIFY = Path("/proc/sys/fs/inotify/max_user_instances")
INOTIFY_INSTANCES = 256
"""Three nodes beside another cluster take more than the 128 that kernels begin with: then no
kubelet starts (https://kind.sigs.k8s.io/docs/user/known-issues/)."""
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
    check_room(run([found["kind"], "get", "clusters"]).split())
    environment = _environment(folder, found)
    try:
        copy = clone(folder)
        for step in steps_on_kind():
            say(f"==> {_shown(step)}")
            play([step], copy, environment)
    finally:
        run([found["kind"], "delete", "cluster", "--name", CLUSTER], environment=environment)


def check_room(clusters: Collection[str]) -> None:
    """Raise :class:`HarnessError` where another cluster is in the way."""
    if CLUSTER in clusters:
        raise HarnessError(
            f"there is a kind cluster {CLUSTER}: kind delete cluster --name {CLUSTER}"
        )
    limit = int(INOTIFY.read_text()) if INOTIFY.exists() else INOTIFY_INSTANCES
    if clusters and limit < INOTIFY_INSTANCES:
        raise HarnessError(
            f"beside the kind cluster {', '.join(clusters)} another needs "
            f"fs.inotify.max_user_instances={INOTIFY_INSTANCES}, it is {limit}"
        )


def steps_on_kind() -> Iterator[Step]:
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
    base = {"BASE": LOCAL_BASE} if image_exists(LOCAL_BASE) else {}
    path = f"{tools}{os.pathsep}{os.environ['PATH']}"
    return {**base, **os.environ, "PATH": path, "KUBECONFIG": str(folder / "kubeconfig")}


def _shown(step: Step) -> str:
    """Where it stands, and its first line."""
    return f"{step.block}  {step.text.strip().splitlines()[0]}"[:SHOWN_COLUMNS]


if __name__ == "__main__":
    sys.exit(main())
