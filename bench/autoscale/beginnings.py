"""``python -m bench.autoscale.beginnings [--data DIR]``: the first quarter of an hour.

At first nothing is known of a service but what it declares, nothing is let go for five minutes, and
there is no time to make up for it. Stretches of 17 minutes of the traces that last 40, from five
beginnings each: ``ours`` beside the best static fleet, which hindsight sized for those very
minutes. The first five minutes are not scored, as everywhere.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import groupby, product
from pathlib import Path

from bench.autoscale import beside, suite
from bench.autoscale.beside import Beside
from bench.autoscale.document import of_seeds
from bench.autoscale.grid import sized, trace_of
from bench.autoscale.numbers import count
from bench.autoscale.traces import window
from bench.programs import ends_on_bad_input
from bench.tables import DEFAULT_FOLDER

TRACES = ("azure2023_conv", "azure2023_code", "mooncake_conversation")
PEAKS = (10.0, 20.0, 40.0)
SECONDS = 1036.0
BEGINNINGS_SECONDS = (0.0, 340.0, 680.0, 1020.0, 1360.0)


@dataclass(frozen=True, slots=True)
class Stretch:
    """Of one trace."""

    trace: str
    peak_replicas: float
    begin_seconds: float


@dataclass(frozen=True, slots=True)
class Found(Beside):
    """What became of one."""

    stretch: Stretch


@ends_on_bad_input
def main() -> int:
    """Replay all of them and tell."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.autoscale.beginnings", description=__doc__
    )
    parser.add_argument("--data", type=Path, default=DEFAULT_FOLDER, help="folder of the traces")
    parser.add_argument("--processes", type=count, default=suite.PROCESSES)
    asked = parser.parse_args()
    print(text(run(asked.data, asked.processes)))
    return 0


def run(data: Path, processes: int) -> list[Found]:
    """All stretches, those of one trace and peak together."""
    stretches = [Stretch(*each) for each in product(TRACES, PEAKS, BEGINNINGS_SECONDS)]
    with ProcessPoolExecutor(processes) as pool:
        return list(pool.map(partial(replayed, data), stretches))


def replayed(data: Path, stretch: Stretch) -> Found:
    """One stretch under both."""
    trace = window(trace_of(data, stretch.trace), stretch.begin_seconds, SECONDS)
    return Found(*beside.replayed(sized(trace, stretch.peak_replicas)), stretch)


def text(found: Iterable[Found]) -> str:
    """A table: a row for each trace and peak."""
    head = (
        "| trace | replicas at its peak | in time | ours % (least) | replica-h "
        "| best static % (least) | replica-h | over best static |",
        "|---|---|---|---|---|---|---|---|",
    )
    together = groupby(found, key=lambda each: (each.stretch.trace, each.stretch.peak_replicas))
    return "\n".join([*head, *(f"| {' | '.join(_cells(list(each)))} |" for _, each in together)])


def _cells(found: list[Found]) -> Iterator[str]:
    yield found[0].stretch.trace
    yield f"{found[0].stretch.peak_replicas:g}"
    yield f"{sum(each.is_in_time for each in found)} of {len(found)}"
    yield from of_seeds([each.ours for each in found])
    yield from of_seeds([each.static for each in found])
    yield f"{statistics.geometric_mean(each.cost for each in found):.2f}"


if __name__ == "__main__":
    sys.exit(main())
