"""``python -m bench.autoscale.equal_cost [--data DIR]``: who is late where all cost the same.

Results compare what the aim costs. Here each rival is tuned for the trace, in hindsight, to be in
time as often as it can for what ``ours`` takes: the published setting, then bisection (in
logarithms) of the law's main target by what it costs. A replay that gets dearer ends at once.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from bench.autoscale import suite
from bench.autoscale.document import setting
from bench.autoscale.grid import DAYS, USUAL, Case, scene_of
from bench.autoscale.numbers import count
from bench.autoscale.outcome import Outcome
from bench.autoscale.policies.laws import LAWS, Setting
from bench.autoscale.policies.profiling import service
from bench.autoscale.replay import replay
from bench.autoscale.scene import Scene
from bench.autoscale.tuning import search
from bench.autoscale.watching import Dear, Watched
from bench.programs import ends_on_bad_input
from bench.tables import DEFAULT_FOLDER

CASES = (USUAL[0], USUAL[3], *DAYS)
"""Those of which many fewer shall be late."""
OF_DAY = ("hpa_running",)
"""Of those that scale, the cheapest at the aim on either day (:data:`bench.autoscale.grid.OF_DAY`);
the others would take hours."""
AS_DEAR = 1.005
"""Costs that are taken as equal."""
BISECTIONS = 6
SHOWN = 2
"""Rivals of each trace, the nearest first."""


@dataclass(frozen=True, slots=True)
class Tuned:
    """A rival for what ours costs at most."""

    name: str
    setting: Setting
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Found:
    """One trace under ours, and under all that can do with as much."""

    case: Case
    ours: Outcome
    rivals: tuple[Tuned, ...]


@ends_on_bad_input
def main() -> int:
    """Replay all of them and tell."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.autoscale.equal_cost", description=__doc__
    )
    parser.add_argument("--data", type=Path, default=DEFAULT_FOLDER, help="folder of the traces")
    parser.add_argument("--processes", type=count, default=suite.PROCESSES)
    asked = parser.parse_args()
    print(text(run(asked.data, asked.processes)))
    return 0


def run(data: Path, processes: int, cases: Sequence[Case] = CASES) -> list[Found]:
    """All cases, in their order."""
    for case in cases:
        _scene(data, case)  # once, for all processes
    with ProcessPoolExecutor(processes) as pool:
        ours = list(pool.map(partial(_ours, data), cases))
        tried = [
            pool.map(partial(tuned, data, case, of.replica_hours * AS_DEAR), _rivals(case))
            for case, of in zip(cases, ours, strict=True)
        ]
        rivals = [tuple(each for each in found if each is not None) for found in tried]
    return [Found(*each) for each in zip(cases, ours, rivals, strict=True)]


def tuned(data: Path, case: Case, replica_hours: float, name: str) -> Tuned | None:
    """One rival at its best for so much; None where whatever was tried costs more."""
    scene, affordable = _scene(data, case), list[Tuned]()

    def attempt(to: Setting) -> bool:
        found = _played(scene, name, replica_hours, to)
        if found is not None:
            affordable.append(found)
        return found is not None

    search(LAWS[name], attempt, BISECTIONS)
    return max(affordable, key=lambda each: each.outcome.attainment, default=None)


def text(found: Iterable[Found]) -> str:
    """A table: of each trace the rivals that are late least often, in as many rows."""
    head = ("trace", "ours %", "replica-h", "rival", "setting", "%", "replica-h",
            "times as many late")  # fmt: skip
    rows = (head, ["---"] * len(head), *(row for each in found for row in _rows(each)))
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


_scene = cache(scene_of)


def _ours(data: Path, case: Case) -> Outcome:
    return suite.result(_scene(data, case), suite.OURS).outcome


def _rivals(case: Case) -> Iterable[str]:
    return OF_DAY if case.is_whole else LAWS


def _played(scene: Scene, name: str, replica_hours: float, to: Setting) -> Tuned | None:
    law = Watched(LAWS[name].policy(service(scene), to), scene, 1.0, replica_hours)
    try:
        outcome = replay(scene, law)
    except Dear:
        return None
    return Tuned(name, to, outcome) if outcome.replica_hours <= replica_hours else None


def _rows(found: Found) -> Iterator[tuple[str, ...]]:
    case, ours = found.case, found.ours
    begin = (f"{case.trace}{', the whole day' if case.is_whole else ''}", *_told(ours))
    if not found.rivals:
        yield (*begin, "all cost more", *[""] * 4)
    for each in sorted(found.rivals, key=lambda rival: -rival.outcome.attainment)[:SHOWN]:
        outcome = each.outcome
        yield (*begin, each.name, setting(each.setting), *_told(outcome), _times(outcome, ours))


def _told(outcome: Outcome) -> tuple[str, str]:
    return f"{100 * outcome.attainment:.2f}", f"{outcome.replica_hours:.2f}"


def _times(rival: Outcome, ours: Outcome) -> str:
    late = 1.0 - ours.attainment
    return f"{(1.0 - rival.attainment) / late:.1f}" if late > 0.0 else "ours none"


if __name__ == "__main__":
    sys.exit(main())
