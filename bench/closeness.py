"""What it costs to run on nodes that are far apart: ``python -m bench.closeness --data DIR``.

Reads pairs off the step times that Sia's authors measured (``sia_step_times*``): the same
application, pool, batch and number of accelerators, once on one node and once on several. They are
told by the share of the spread step that was communication, which is what
:mod:`poolwise.plan.candidates.topology` predicts. The rows of the GPT application are left out:
they look modelled.
"""

from __future__ import annotations

import argparse
import bisect
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.placement.sia import placed
from bench.placement.traces import Row
from bench.programs import ends_on_bad_input
from bench.tables import DEFAULT_FOLDER
from poolwise.plan.candidates.topology import DOMINANT, LITTLE

EDGES = (0.0, 0.05, 0.1, 0.15, LITTLE, 0.3, 0.4, DOMINANT, 0.6, 0.7, 1.01)
"""Of the shares that are told together."""
SLOWER = (1.1, 1.5, 1.9)
"""How many times the packed step; 1.9 is twice, as measured to five per cent."""


@dataclass(frozen=True, slots=True)
class Pair:
    """One run on one node and on several."""

    share: float
    """Of the spread step, for communication."""
    times: float
    """The spread step in packed steps."""


def pairs(rows: Iterable[Row]) -> Iterator[Pair]:
    """Every placement over several nodes against the one on one node."""
    runs: defaultdict[tuple[str, ...], dict[str, tuple[float, float]]] = defaultdict(dict)
    for row in rows:
        placement = row["placement"]
        if placement and not row["application"].startswith("gpt"):
            count = str(sum(map(int, placement)))
            run = (row["gpu_pool"], row["application"], count, row["local_batch"])
            runs[run][placement] = float(row["step_time_s"]), float(row["sync_time_s"])
    for places in runs.values():
        packed = [step for placement, (step, _) in places.items() if len(placement) == 1]
        spread = [both for placement, both in places.items() if len(placement) > 1]
        yield from (Pair(sync / step, step / alone) for alone in packed for step, sync in spread)


def table(found: Sequence[Pair]) -> str:
    """A line for each range of shares: how many were how much slower."""
    by_range: defaultdict[int, list[float]] = defaultdict(list)
    for each in found:
        by_range[bisect.bisect_right(EDGES, each.share) - 1].append(each.times)
    head = "share of step    pairs  median  9 in 10  " + "  ".join(f">{each}" for each in SLOWER)
    return "\n".join([head, *(_line(at, sorted(by_range[at])) for at in sorted(by_range))])


def verdict(found: Sequence[Pair]) -> str:
    """What the two thresholds rest on."""
    little = [each.times for each in found if each.share < LITTLE]
    doubled = [each.share for each in found if each.times >= SLOWER[-1]]
    lines = [
        f"{len(found)} pairs; {len(little)} below {LITTLE:.0%}: "
        f"{_over(little, 1.1):.1%} took a tenth longer, {_over(little, 1.5):.1%} half as long again"
    ]
    if doubled:
        lines.append(
            f"{len(doubled)} took {SLOWER[-1]} times as long: "
            f"the least share among them was {min(doubled):.0%}"
        )
    return "\n".join(lines)


@ends_on_bad_input
def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m bench.closeness", description=__doc__)
    parser.add_argument("--data", type=Path, default=DEFAULT_FOLDER, help="folder of the traces")
    found = list(pairs(placed(parser.parse_args().data)))
    print(table(found), verdict(found), sep="\n")
    return 0


def _line(at: int, times: Sequence[float]) -> str:
    low, high = EDGES[at], min(EDGES[at + 1], 1.0)
    shares = "  ".join(f"{_over(times, each):4.0%}" for each in SLOWER)
    middle, most = times[len(times) // 2], times[len(times) * 9 // 10]
    return f"{low:4.0%} to {high:4.0%} {len(times):8} {middle:7.2f} {most:8.2f}  {shares}"


def _over(times: Sequence[float], limit: float) -> float:
    return sum(each > limit for each in times) / len(times) if times else 0.0


if __name__ == "__main__":
    sys.exit(main())
