"""Tables of the page: other starts, and engines that are not what the model says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean

from bench.autoscale import grid
from bench.autoscale.cells import Cell, Standing, standings
from bench.autoscale.document import of_one, of_seeds
from bench.autoscale.grid import Case
from bench.autoscale.suite import O1, O2, OURS
from bench.autoscale.tuning import BEST_STATIC, FLEETS

NOTHING = "not run"


def starts(cells: Sequence[Cell]) -> str:
    """Ours beside the best of the others, by trace and start."""
    head = (
        "| trace | start s | ours % (least of the seeds) | replica-h | best static % | replica-h "
        "| best other rival | % | replica-h | O2 % | replica-h | O1 replica-h |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    )
    cases = sorted((*grid.USUAL, *grid.started()), key=_by_trace)
    rows = (_start(cells, each) for each in cases if _of(cells, each).cells)
    return "\n".join((*head, *rows))


def _by_trace(case: Case) -> tuple[int, float]:
    return list(grid.PEAKS).index(case.trace), case.start_delay_seconds


def _start(cells: Sequence[Cell], case: Case) -> str:
    there, ours = _of(cells, case), _ours(cells, case)
    rival = _best_other(there)
    columns = (
        case.trace,
        f"{case.start_delay_seconds:g}",
        *_mean(ours),
        *_attained(there.of(BEST_STATIC)),
        rival.name if rival else NOTHING,
        *_attained(rival),
        *_attained(there.of(O2)),
        _hours(there.of(O1)),
    )
    return f"| {' | '.join(columns)} |"


def slowness(cells: Sequence[Cell]) -> str:
    """What a wrong model costs ours: requests in time, and replicas over O1's."""
    head = (
        "| trace | true steps over the model's | ours % (least of the seeds) | replica-h | lost, "
        "points | over O1 | over O1 with a right model | best static % | replica-h |",
        "|---|---|---|---|---|---|---|---|---|",
    )
    rows = (_slower(cells, each) for each in grid.slower() if _of(cells, each).cells)
    return "\n".join((*head, *rows))


def _slower(cells: Sequence[Cell], case: Case) -> str:
    right = replace(case, slowness=1.0)
    columns = (
        case.trace,
        f"{case.slowness:g}",
        *_mean(_ours(cells, case)),
        _lost(_ours(cells, right), _ours(cells, case)),
        _over(cells, case),
        _over(cells, right),
        *_attained(_of(cells, case).of(BEST_STATIC)),
    )
    return f"| {' | '.join(columns)} |"


def _lost(right: Sequence[Cell], wrong: Sequence[Cell]) -> str:
    """Percentage points of the requests that any fleet can answer in time."""
    if not right or not wrong:
        return NOTHING
    before, after = (fmean(each.timely_share for each in seeds) for seeds in (right, wrong))
    return f"{100 * (before - after):.2f}"


def _over(cells: Sequence[Cell], case: Case) -> str:
    ours, oracle = _ours(cells, case), _of(cells, case).of(O1)
    if not ours or oracle is None:
        return NOTHING
    return f"{fmean(each.replica_hours for each in ours) / oracle.replica_hours:.2f}"


def _of(cells: Sequence[Cell], case: Case) -> Standing:
    return next((each for each in standings(cells) if each.case == case), Standing(case, ()))


def _ours(cells: Sequence[Cell], case: Case) -> list[Cell]:
    """By all seeds."""
    return [each for each in cells if each.name == OURS and replace(each.case, seed=0) == case]


def _best_other(there: Standing) -> Cell | None:
    """Of those that scale: the cheapest that attains its aim, else who attains most."""
    scaling = [each for each in there.rivals if each.name not in FLEETS]
    good = [each for each in scaling if each.is_good]
    if good:
        return min(good, key=lambda each: each.replica_hours)
    return max(scaling, key=lambda each: each.attainment, default=None)


def _mean(ours: Sequence[Cell]) -> tuple[str, str]:
    return of_seeds(ours) if ours else (NOTHING, NOTHING)


def _attained(cell: Cell | None) -> tuple[str, str]:
    return of_one(cell) if cell else (NOTHING, NOTHING)


def _hours(cell: Cell | None) -> str:
    return f"{cell.replica_hours:.2f}" if cell else NOTHING
