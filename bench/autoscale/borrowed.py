"""``python -m bench.autoscale.borrowed [--results FILE]``: rivals that have not seen the trace.

A law that is tuned for the very trace it is replayed on knows something of its future, and nobody
has such a setting on the day. Here each law has to do with the setting that was best on the *other*
traces of the page, and with the published one. Ours has one configuration for all of them.

Of the settings that were found for the others, and the published one, that is taken which attains
its aim on the most of the others, and of these the cheapest.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path

from bench.autoscale import grid, suite
from bench.autoscale.cells import Cell, Standing, read, standings
from bench.autoscale.kept import RESULTS
from bench.autoscale.numbers import count
from bench.autoscale.outcome import Outcome
from bench.autoscale.policies.laws import LAWS, Setting
from bench.autoscale.policies.profiling import service
from bench.autoscale.replay import replay
from bench.autoscale.tuning import BEST_STATIC
from bench.programs import ends_on_bad_input
from bench.tables import DEFAULT_FOLDER


@dataclass(frozen=True, slots=True)
class Shown:
    """What became of one setting on one trace."""

    attainment: float
    is_good: bool
    """Whether it attains its aim."""
    over_static: float
    """Its replica-hours over those of the best static fleet in hindsight."""


@dataclass(frozen=True)
class Found:
    """One law on all traces, in their order."""

    name: str
    published: tuple[Shown, ...]
    borrowed: tuple[Shown, ...]


@ends_on_bad_input
def main() -> int:
    """Replay and tell; 2 where the traces were not replayed under all yet."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.autoscale.borrowed",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data", type=Path, default=DEFAULT_FOLDER, help="folder of the traces")
    parser.add_argument("--results", type=Path, default=RESULTS, help="lines of JSON of the page")
    parser.add_argument("--processes", type=count, default=suite.PROCESSES)
    asked = parser.parse_args()
    there = usual(read(asked.results))
    if len(there) < len(grid.USUAL):
        print(f"{asked.results} lacks traces: make bench-autoscale replays them", file=sys.stderr)
        return 2
    lines = [line(found(asked.data, there, name, asked.processes)) for name in LAWS]
    print(text(there, lines))
    return 0


def usual(cells: Sequence[Cell]) -> list[Standing]:
    """The page's traces that every law was tuned on."""
    whole = {suite.OURS, BEST_STATIC, *LAWS}
    there = {each.case: each for each in standings(cells)}
    found = [there[case] for case in grid.USUAL if case in there]
    return [each for each in found if whole <= {cell.name for cell in each.cells}]


def found(data: Path, there: Sequence[Standing], name: str, processes: int) -> Found:
    """One law with every setting that was found for it, on every trace."""
    settings = [published(name), *(_cell(each, name).setting for each in there)]
    replays = [(data, name, *each) for each in product(settings, there)]
    for each in there:
        _scene(data, each.case)  # once, for all processes
    with ProcessPoolExecutor(processes) as pool:
        replayed = list(pool.map(_shown, *zip(*replays, strict=True)))
    width = len(there)
    tries = [replayed[first : first + width] for first in range(0, len(replayed), width)]
    return Found(name, tuple(tries[0]), tuple(_borrowed(tries, place) for place in range(width)))


def published(name: str) -> Setting:
    """As its authors have it."""
    knob = LAWS[name].knob
    return {knob.name: knob.published}


def _borrowed(tries: Sequence[Sequence[Shown]], place: int) -> Shown:
    """Of the published setting and those of other traces, what the best on these does here.

    :param tries: a row for each setting: the published one, then that of each trace.
    """
    candidates = [row for trace, row in enumerate(tries, start=-1) if trace != place]
    return best(candidates, place)[place]


def best(tries: Iterable[Sequence[Shown]], unseen: int) -> Sequence[Shown]:
    """The row that does best on all traces but one."""

    def merit(row: Sequence[Shown]) -> tuple[int, float]:
        seen = [each for trace, each in enumerate(row) if trace != unseen]
        return -sum(each.is_good for each in seen), sum(each.over_static for each in seen)

    return min(tries, key=merit)


def _shown(data: Path, name: str, setting: Setting, standing: Standing) -> Shown:
    scene = _scene(data, standing.case)
    outcome = replay(scene, LAWS[name].policy(service(scene), setting))
    return _told(standing, outcome)


_scene = cache(grid.scene_of)


def _told(standing: Standing, of: Outcome | Cell) -> Shown:
    static = _cell(standing, BEST_STATIC)
    return Shown(
        of.attainment, of.attainment >= static.aim, of.replica_hours / static.replica_hours
    )


def _cell(standing: Standing, name: str) -> Cell:
    cell = standing.of(name)
    assert cell is not None
    return cell


def text(there: Sequence[Standing], lines: Iterable[str]) -> str:
    """A table: two rows for each law, and one for ours."""
    traces = [each.case.trace for each in there]
    head = ("policy", "setting", *traces, "aims attained", "cost there")
    ours = [_told(each, _cell(each, suite.OURS)) for each in there]
    rows = (_row(suite.OURS, "one for all", ours), *lines)
    return "\n".join([f"| {' | '.join(head)} |", "|---" * len(head) + "|", *rows])


def line(found: Found) -> str:
    """Both rows of one law."""
    return "\n".join(
        (
            _row(found.name, "of the other traces", found.borrowed),
            _row(found.name, "as published", found.published),
        )
    )


def _row(name: str, setting: str, shown: Sequence[Shown]) -> str:
    return f"| {' | '.join(_columns(name, setting, shown))} |"


def _columns(name: str, setting: str, shown: Sequence[Shown]) -> Iterator[str]:
    yield name
    yield setting
    for each in shown:
        cell = f"{100 * each.attainment:.2f} @ {each.over_static:.2f}"
        yield f"**{cell}**" if each.is_good else cell
    good = [each for each in shown if each.is_good]
    yield f"{len(good)} of {len(shown)}"
    yield f"{statistics.geometric_mean(each.over_static for each in good):.2f}" if good else ""


if __name__ == "__main__":
    sys.exit(main())
