"""``python -m e2e.autoscale``: scale engine processes for real, and compare with the simulator.

Exit status 1 where live and simulated are further apart than allowed, 2 where the machine did not
keep up, so that nothing can be said.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bench.autoscale.traces import load
from bench.files import BadInput
from e2e.autoscale.cluster import operated
from e2e.autoscale.comparison import Comparison
from e2e.autoscale.courses import COURSES, steps
from e2e.autoscale.live import Course, compare
from e2e.autoscale.local import Local
from e2e.autoscale.service import Wish
from e2e.autoscale.trace import Compressed
from e2e.controlplane import namespaces, ports
from e2e.errors import HarnessError
from e2e.progress import say
from e2e.workloads import Observer

UP_SECONDS = 180.0
APART, LATE = 1, 2


def arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m e2e.autoscale", description=__doc__)
    parser.add_argument("--course", choices=COURSES, default="rise-and-fall", help="built-in load")
    parser.add_argument("--trace", type=Path, help="columns arrival_s, input_tokens, output_tokens")
    parser.add_argument("--begin", type=float, default=0.0, help="seconds into the file")
    parser.add_argument("--seconds", type=float, default=3600.0, help="of the file")
    parser.add_argument("--compression", type=float, default=10.0, help="so many times as fast")
    parser.add_argument("--peak", type=float, default=3.0, help="replicas that its peak takes up")
    parser.add_argument("--start-seconds", type=float, default=Wish().start_seconds)
    parser.add_argument("--accelerators", type=int, help="of one replica; else as is best")
    parser.add_argument("--seed", type=int, default=0, help="of the built-in loads")
    parser.add_argument("--repeat", type=int, default=1, help="runs, one after the other")
    parser.add_argument("--logs", type=Path, help="a folder that keeps those of all processes")
    parser.add_argument("--json", action="store_true", help="print one document for each run")
    return parser.parse_args(words)


def course(given: argparse.Namespace) -> Course:
    """What the command line asks for; raises :class:`BadInput`."""
    (port,) = ports.free(1)
    wish = Wish(
        metrics_port=port,
        start_seconds=given.start_seconds,
        accelerators=given.accelerators,
    )
    if given.trace is None:
        return steps(COURSES[given.course], wish, given.seed)
    shape = (given.compression, given.begin, given.seconds, given.peak)
    return Course(Compressed(load(given.trace), *shape), wish)


def run(given: argparse.Namespace, folder: Path) -> int:
    """All runs; the exit status."""
    chosen = course(given)
    status = 0
    with operated(dict(chosen.settings), folder) as client:
        for _ in range(given.repeat):
            namespace = namespaces.create(client)
            with Local(
                Observer(client, UP_SECONDS), namespace, chosen.wish.metrics_port, folder
            ) as stage:
                found = compare(chosen, stage)
                namespaces.remove(client, namespace)
            print(json.dumps(found.document()) if given.json else found, flush=True)
            status = max(status, _status(found))
    return status


def _status(found: Comparison) -> int:
    if found.complaint:
        return LATE
    return APART if found.differences() else 0


def main() -> int:
    """The exit status."""
    given = arguments()
    try:
        with tempfile.TemporaryDirectory(prefix="autoscale-") as folder:
            logs = given.logs or Path(folder)
            logs.mkdir(parents=True, exist_ok=True)
            return run(given, logs)
    except (HarnessError, BadInput) as error:
        say(f"error: {error}")
        return APART


if __name__ == "__main__":
    sys.exit(main())
