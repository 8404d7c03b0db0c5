"""``python -m e2e.image.startup``: how long the operator takes to start from its image.

From ``docker run`` to the first 200 of /healthz, against a control plane of this machine's own.
Prints one JSON object.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from pathlib import Path

from e2e.controlplane.cluster import ControlPlane
from e2e.demo.stage import prepare
from e2e.errors import HarnessError
from e2e.image.container import OperatorContainer
from e2e.progress import say


def starts_seconds(tag: str, kubeconfig: Path, count: int) -> list[float]:
    """How long each of ``count`` starts took, one after another."""
    taken = []
    for number in range(1, count + 1):
        with OperatorContainer(tag, kubeconfig) as operator:
            taken.append(round(operator.started_in_seconds, 2))
        say(f"    start {number}: {taken[-1]:.2f} s")
    return taken


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m e2e.image.startup", description=__doc__)
    parser.add_argument("--tag", default="poolwise:dev", help="(default: %(default)s)")
    parser.add_argument("--runs", type=int, default=7, help="(default: %(default)s)")
    chosen = parser.parse_args()
    try:
        with ControlPlane.prepare("poolwise-image") as control_plane:
            prepare(control_plane)
            taken = starts_seconds(chosen.tag, control_plane.kubeconfig, chosen.runs)
    except HarnessError as error:
        sys.exit(str(error))
    print(json.dumps({"median_seconds": statistics.median(taken), "starts_seconds": taken}))


if __name__ == "__main__":
    main()
