"""The grid of replays, shared out over processes."""

from __future__ import annotations

import functools
import multiprocessing
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from bench.files import BadInput
from bench.placement import assignments, openb, regret, scenario
from bench.placement.cells import BOUNDS, POLICIES, Cell, cell
from bench.placement.traces import Missing

JOBS = {"T1": 2500, "T3": 800}
"""Of a stream. Shorter ones end before a load of 0.95 has made its queue; T3 has shorter jobs."""
SEEDS = 10
QUICK_LOADS = {"T1": (0.5, 0.95), "T3": (0.95,)}
FULL_LOADS = (0.5, 0.7, 0.85, 0.95, 1.2)
SLOW = {"T1": ("ours*", "B8", "B9", "U2"), "T3": ("B8", "B9", "U2")}
"""What takes long for what it tells: fewer seeds unless all is asked for."""
SLOW_SEEDS = 2
FIRST = ("B9", "ours", "ours*", "B8")
"""The slowest policies, so that no process is left with one at the end."""
OPENB_SEEDS = 2
LARGE = 8
"""``modern-M`` is so many times ``modern-S``."""


@dataclass(frozen=True, slots=True)
class Task:
    """One thing to be worked out in a process of its own."""

    kind: str
    """A truth, ``openb``, ``regret`` or ``milp``."""
    policy: str = ""
    load: float = 0.0
    seed: int = 0
    size: int = 1
    """Of the fleet: ``modern-S`` times so many."""


@dataclass(frozen=True, slots=True)
class Result:
    """What came of a task; one of the fields."""

    cell: Cell | None = None
    regret: tuple[str, regret.Regret] | None = None
    milp: assignments.Score | None = None
    missing: str = ""
    """The file that a task could not do without."""
    is_unusable: bool = False
    """It is there, and not as it must be."""


def tasks(full: bool) -> list[Task]:
    """The slowest first."""
    found = [
        Task(truth, policy, load, seed)
        for policy in (*FIRST, *sorted(POLICIES.keys() - set(FIRST)), *BOUNDS)
        for truth in ("T1", "T3")
        for load in sorted(FULL_LOADS if full else QUICK_LOADS[truth], reverse=True)
        for seed in range(SLOW_SEEDS if policy in SLOW[truth] and not full else SEEDS)
    ]
    if full:
        found += [
            Task("T3", policy, 0.95, seed, size=LARGE)
            for policy in ("ours", "B5", "U1")
            for seed in range(SLOW_SEEDS)
        ]
    found += [
        Task("openb", f"{policy}/{variant}", openb.PRESSURE, seed)
        for variant in openb.VARIANTS
        for policy in openb.POLICIES
        for seed in range(SEEDS if full else OPENB_SEEDS)
    ]
    found += [Task("regret", name, seed=seed) for name in regret.TRUTHS for seed in range(SEEDS)]
    return [*found, Task("milp")]


def run(folder: Path, wanted: Sequence[Task]) -> Iterator[tuple[Task, Result]]:
    """All results, as they come; who stops asking waits for none that has not begun."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(os.cpu_count(), context, initializer=_hush) as pool:
        pending = {pool.submit(work, folder, task): task for task in wanted}
        try:
            for done in as_completed(pending):
                yield pending[done], done.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _hush() -> None:
    """Solvers print what they please; standard output is for the result."""
    os.dup2(2, 1)


def work(folder: Path, task: Task) -> Result:
    """One task."""
    try:
        if task.kind == "milp":
            return Result(milp=assignments.score())
        if task.kind == "regret":
            return Result(regret=(task.policy, regret.of(folder, task.policy, task.seed)))
        if task.kind == "openb":
            policy, _, variant = task.policy.partition("/")
            return Result(cell=_openb(folder, policy, variant, task.seed))
        found = _scenario(folder, task.kind, task.size)
        return Result(cell=cell(found, task.policy, task.load, task.seed))
    except BadInput as error:
        return Result(missing=str(error), is_unusable=not isinstance(error, Missing))


@functools.cache
def _scenario(folder: Path, truth: str, size: int) -> scenario.Scenario:
    if truth == "T1":
        return scenario.t1(folder, JOBS[truth])
    return scenario.t3(folder, JOBS[truth] * size, size)


def _openb(folder: Path, policy: str, variant: str, seed: int) -> Cell:
    percent = openb.replayed(folder, policy, variant, seed)
    return Cell(
        "openb",
        variant,
        "openb",
        policy,
        openb.PRESSURE,
        seed,
        mean_jct_seconds=None,
        allocation_percent=percent,
    )
