"""``python -m e2e.kind``: run the suite on a kind cluster that is made for it and deleted again."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NoReturn

from e2e.controlplane.supervised import REPOSITORY
from e2e.errors import HarnessError
from e2e.kind import images
from e2e.kind.cluster import GivenCluster, KindCluster
from e2e.kind.engine import Engine
from e2e.kind.steps import Steps
from e2e.progress import say
from e2e.tools.build import Binaries, binaries
from e2e.tools.catalog import KIND_TOOLS

SUITE = Path("e2e") / "suite"
EVIDENCE = REPOSITORY / "build" / "e2e"
ENDED_BY_SIGNAL = 130
KUBECONFIG_VARIABLE = "KUBECONFIG_E2E"


def arguments(words: Sequence[str] | None = None) -> tuple[argparse.Namespace, list[str]]:
    """Read the command line; what is not ours is pytest's."""
    parser = argparse.ArgumentParser(prog="python -m e2e.kind", description=__doc__)
    parser.add_argument("--core", action="store_true", help="only the short part")
    parser.add_argument("--keep", action="store_true", help="leave the cluster up")
    parser.add_argument(
        "--kubeconfig",
        type=Path,
        metavar="FILE",
        default=os.environ.get(KUBECONFIG_VARIABLE) or None,
        help="use that cluster's current context instead: its workers are given accelerators for "
        "the time of the run, it is neither created nor deleted, and "
        "unless it is a kind cluster of this machine it can already pull the images (default: "
        f"what {KUBECONFIG_VARIABLE} names, else a cluster of our own)",
    )
    parser.add_argument("--no-build", action="store_true", help="use the images that are there")
    return parser.parse_known_args(words)


def main() -> int:
    """Run the suite; pytest's exit status, or 1 with one sentence when it could not be run."""
    chosen, others = arguments()
    # As ctrl-C does: what was started is ended on the way out.
    signal.signal(signal.SIGTERM, _interrupt)
    steps = Steps()
    try:
        with ExitStack() as stack:
            return _run(chosen, others, steps, stack)
    except HarnessError as error:
        say(f"error: {error}")
        return 1
    except KeyboardInterrupt:
        say("interrupted")
        return ENDED_BY_SIGNAL
    finally:
        say(f"==> it took\n{steps.table()}")


def _interrupt(_signal: int, _frame: object) -> NoReturn:
    raise KeyboardInterrupt


def _run(chosen: argparse.Namespace, others: Sequence[str], steps: Steps, stack: ExitStack) -> int:
    with steps.step("tools"):
        found = binaries(KIND_TOOLS)
    cluster = _cluster(chosen, found, steps, stack)
    if cluster.name:
        if not chosen.no_build:
            with steps.step("building the images"):
                images.build()
        with steps.step("loading the images"):
            images.load(found["kind"], cluster.name)
    with steps.step("the suite"):
        return _pytest(cluster, chosen.core, others)


def _cluster(
    chosen: argparse.Namespace, found: Binaries, steps: Steps, stack: ExitStack
) -> KindCluster | GivenCluster:
    if chosen.kubeconfig:
        return stack.enter_context(GivenCluster(found, chosen.kubeconfig))
    with steps.step("container engine"):
        stack.enter_context(Engine())
    with steps.step("cluster"):
        return stack.enter_context(KindCluster(found, keep=chosen.keep))


def _pytest(cluster: KindCluster | GivenCluster, core: bool, others: Sequence[str]) -> int:
    """pytest in a process of its own; ctrl-C reaches it too, and it ends first."""
    evidence = EVIDENCE / time.strftime("%Y%m%d-%H%M%S")
    command = [sys.executable, "-m", "pytest", str(SUITE), "--durations=10"]
    where = [
        f"--kubeconfig={cluster.kubeconfig}",
        f"--kind={cluster.name}",
        f"--evidence={evidence}",
    ]
    process = subprocess.Popen(
        [*command, *where, *(["-m", "core"] if core else []), *others], cwd=REPOSITORY
    )
    try:
        return process.wait()
    except KeyboardInterrupt:
        process.terminate()
        process.wait()
        raise


if __name__ == "__main__":
    sys.exit(main())
