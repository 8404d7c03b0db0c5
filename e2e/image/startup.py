"""``python -m e2e.image.startup``: how long the operator takes to start from its image.

From ``docker run`` to the first 200 of /healthz, against a control plane of this machine's own.
Prints one JSON object.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from e2e.controlplane.cluster import ControlPlane
from e2e.demo.stage import prepare
from e2e.errors import HarnessError
from e2e.image.container import OperatorContainer
from e2e.progress import say


@dataclass(frozen=True)
class Start:
    """One start: by the clock, and what the operator's process computed in that time."""

    wall: float
    cpu: float


def starts(tag: str, kubeconfig: Path, count: int) -> list[Start]:
    """How long each of ``count`` starts took, one after another."""
    taken = []
    for number in range(1, count + 1):
        with OperatorContainer(tag, kubeconfig) as operator:
            taken.append(Start(operator.started_in_seconds, operator.started_in_cpu_seconds))
        say(f"    start {number}: {taken[-1].wall:.2f} s, of CPU {taken[-1].cpu:.2f} s")
    return taken


def report(taken: Sequence[Start]) -> dict[str, Any]:
    """Medians, and each start."""
    return {
        "median_seconds": round(statistics.median(start.wall for start in taken), 2),
        "median_cpu_seconds": round(statistics.median(start.cpu for start in taken), 2),
        "starts_seconds": [round(start.wall, 2) for start in taken],
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m e2e.image.startup", description=__doc__)
    parser.add_argument("--tag", default="poolwise:dev", help="(default: %(default)s)")
    parser.add_argument("--runs", type=int, default=7, help="(default: %(default)s)")
    chosen = parser.parse_args()
    try:
        with ControlPlane.prepare("poolwise-image") as control_plane:
            prepare(control_plane)
            taken = starts(chosen.tag, control_plane.kubeconfig, chosen.runs)
    except HarnessError as error:
        sys.exit(str(error))
    print(json.dumps(report(taken)))


if __name__ == "__main__":
    main()
