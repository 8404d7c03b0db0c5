"""``python -m bench.autoscale.peaks [--trace NAME] [--data DIR]``: one trace at many sizes.

An hour under a controller is chaotic, and at one peak it may be lucky: ``ours`` at each, beside the
best static fleet of that very peak in hindsight.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench.autoscale import beside, suite
from bench.autoscale.beside import Beside
from bench.autoscale.grid import Case, scene_of
from bench.autoscale.numbers import count
from bench.programs import ends_on_bad_input
from bench.tables import DEFAULT_FOLDER

TRACE = "azure2023_code"
PEAKS = (5, 8, 9, 10, 11, 12, 14, 15, 16, 18, 19, 20, 21, 22, 25, 28, 30, 33, 36, 40)
"""In full replicas."""


@dataclass(frozen=True, slots=True)
class Found(Beside):
    """What became of one peak."""

    peak_replicas: float


@ends_on_bad_input
def main() -> int:
    """Replay all of them and tell."""
    parser = argparse.ArgumentParser(prog="python -m bench.autoscale.peaks", description=__doc__)
    parser.add_argument("--data", type=Path, default=DEFAULT_FOLDER, help="folder of the traces")
    parser.add_argument("--trace", default=TRACE, help="name of one, without its ending")
    parser.add_argument("--processes", type=count, default=suite.PROCESSES)
    asked = parser.parse_args()
    with ProcessPoolExecutor(asked.processes) as pool:
        found = list(pool.map(partial(replayed, asked.data, asked.trace), PEAKS))
    print(text(found))
    return 0


def replayed(data: Path, trace: str, peak_replicas: float) -> Found:
    """One peak under both."""
    return Found(*beside.replayed(scene_of(data, Case(trace, peak_replicas))), peak_replicas)


def text(found: Iterable[Found]) -> str:
    """A row for each peak, and a summary."""
    told = list(found)
    cheaper = sum(each.is_in_time and each.cost <= 1.0 for each in told)
    costs = statistics.geometric_mean(each.cost for each in told)
    return "\n".join(
        [
            "| peak | aim % | ours % | replica-h | best static % | replica-h |",
            "|---|---|---|---|---|---|",
            *map(_row, told),
            "",
            f"{sum(each.is_in_time for each in told)} of {len(told)} in time, {cheaper} of them no "
            f"dearer than the best static fleet; {costs:.2f} times its cost in the geometric mean, "
            f"{100 * statistics.fmean(each.ours.attainment for each in told):.2f} % in time.",
        ]
    )


def _row(found: Found) -> str:
    cells = f"{found.peak_replicas:g}", f"{100 * found.aim:.2f}"
    outcomes = (
        f"{100 * each.attainment:.2f} | {each.replica_hours:.2f}"
        for each in (found.ours, found.static)
    )
    return f"| {' | '.join((*cells, *outcomes))} |"


if __name__ == "__main__":
    sys.exit(main())
