"""``python -m bench.autoscale.looks [--data DIR]``: other times between two looks at the replicas.

The operator and the page's replays look each ten seconds unless told otherwise. ``ours`` on the
traces of the page and on a whole day, under the same configuration.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from bench.autoscale import suite
from bench.autoscale.grid import DAYS, USUAL, Case, scene_of
from bench.autoscale.numbers import count
from bench.autoscale.outcome import Outcome
from bench.autoscale.reach import aim
from bench.programs import ends_on_bad_input
from bench.tables import DEFAULT_FOLDER

CASES = (*USUAL, DAYS[1])
SECONDS = (5.0, 10.0, 15.0, 30.0)


@dataclass(frozen=True, slots=True)
class Found:
    """What became of one trace."""

    case: Case
    aim: float
    outcomes: tuple[Outcome, ...]
    """By :data:`SECONDS`."""


@ends_on_bad_input
def main() -> int:
    """Replay all of them and tell."""
    parser = argparse.ArgumentParser(prog="python -m bench.autoscale.looks", description=__doc__)
    parser.add_argument("--data", type=Path, default=DEFAULT_FOLDER, help="folder of the traces")
    parser.add_argument("--processes", type=count, default=suite.PROCESSES)
    asked = parser.parse_args()
    print(text(run(asked.data, asked.processes)))
    return 0


def run(data: Path, processes: int, cases: Sequence[Case] = CASES) -> list[Found]:
    """All cases, in their order."""
    with ProcessPoolExecutor(processes) as pool:
        return [
            Found(
                each,
                aim(scene_of(data, each)),
                tuple(pool.map(partial(replayed, data, each), SECONDS)),
            )
            for each in cases
        ]


def replayed(data: Path, case: Case, seconds: float) -> Outcome:
    """One case with so many seconds between two looks."""
    scene = scene_of(data, case)
    scraping = replace(scene.scraping, interval_seconds=seconds)
    return suite.result(replace(scene, scraping=scraping), suite.OURS).outcome


def text(found: Iterable[Found]) -> str:
    """A table: a row for each trace."""
    head = ("trace", "aim %", *(f"{seconds:g} s" for seconds in SECONDS))
    rows = (head, ["---"] * len(head), *(list(_cells(each)) for each in found))
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _cells(found: Found) -> Iterator[str]:
    yield found.case.trace + (", the whole day" if found.case.is_whole else "")
    yield f"{100 * found.aim:.2f}"
    for each in found.outcomes:
        yield f"{100 * each.attainment:.2f} @ {each.replica_hours:.2f}"


if __name__ == "__main__":
    sys.exit(main())
