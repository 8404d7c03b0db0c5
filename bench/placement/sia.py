"""Truth T2: seconds per step that Sia's authors measured, and the jobs of their workloads.

Sia (Jayaram Subramanya et al., SOSP 2023), ``placements-*.csv``: application, pool, placement
("44": four accelerators on each of two nodes), batch per accelerator. The pools are the paper's 64
accelerators: 6 nodes of 4 T4, 3 of 8 RTX 2080 Ti, 2 of 8 A100. The jobs carry no amount of work, so
nothing can be replayed: what is scored is the choice of a place.
"""

from __future__ import annotations

import bisect
import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.placement.traces import Row, count, number, positive, read, text
from poolwise.sim.fleet import Pool

POOLS = (Pool("aws", (4,) * 6), Pool("rtx", (8,) * 3), Pool("dgx-ext", (8,) * 2))


def digits(cell: str) -> str:
    """What a placement must be; empty where it is that. A number of so many digits it is not: on 14
    nodes it would be one beyond all bounds."""
    is_placement = cell.isascii() and cell.isdecimal() and "0" not in cell
    return "" if is_placement else "a digit from 1 to 9 for each node, as 44"


STEPS = {
    "application": text,
    "gpu_pool": text,
    "placement": digits,
    "local_batch": positive,
    "step_time_s": positive,
    "sync_time_s": number,
}
TASKS = {"application": text, "replicas": count, "batch_size": count}


@dataclass(frozen=True, slots=True)
class Task:
    """A job as it recurs."""

    application: str
    replicas: int
    batch: int
    """Of all replicas together."""

    @property
    def kind(self) -> str:
        """What recurs whatever the number of replicas."""
        return f"{self.application}/{self.batch}"


@dataclass(frozen=True, slots=True)
class _Point:
    """One measured step."""

    local_batch: float
    step_seconds: float
    sync_seconds: float


class Steps:
    """Measured seconds of a step, between measured batches as straight lines."""

    def __init__(self, rows: Sequence[Row]) -> None:
        found: defaultdict[tuple[str, str, str], dict[float, _Point]] = defaultdict(dict)
        for row in rows:
            point = _Point(
                float(row["local_batch"]), float(row["step_time_s"]), float(row["sync_time_s"])
            )
            key = row["application"], row["gpu_pool"], row["placement"]
            found[key][point.local_batch] = point
        self._points = {
            key: sorted(points.values(), key=lambda each: each.local_batch)
            for key, points in found.items()
        }

    def seconds(self, task: Task, pool: str, placement: str) -> float:
        """Of one step of the whole batch; infinite where nobody measured it.

        A batch that is larger than any measured one is taken in several equal parts, whose
        gradients are exchanged once, as the authors' own AdaptDL does.
        """
        points = self._points.get((task.application, pool, placement))
        if points is None:
            return math.inf
        local = task.batch / task.replicas
        parts = max(1, math.ceil(local / points[-1].local_batch - 1e-9))
        point = _between(points, local / parts)
        return (parts - 1) * (point.step_seconds - point.sync_seconds) + point.step_seconds

    def placements(self, task: Task, pool: Pool) -> Iterator[str]:
        """The tightest and the loosest that fit the pool and were measured."""
        fitting = sorted(
            (len(placement), placement)
            for application, name, placement in self._points
            if (application, name) == (task.application, pool.name)
            and sum(map(int, placement)) == task.replicas
            and len(placement) <= len(pool.nodes)
            and max(map(int, placement)) <= max(pool.nodes)
        )
        if fitting:
            yield _most_even(fitting, fitting[0][0])
            if fitting[-1][0] > fitting[0][0]:
                yield _most_even(fitting, fitting[-1][0])


def steps(folder: Path) -> Steps:
    """Of the files ``sia_step_times*``."""
    return Steps(placed(folder))


def placed(folder: Path) -> list[Row]:
    """Rows of these files that tell of a placement."""
    return read(folder, "sia_step_times", STEPS, where=lambda row: row.get("placement", "-"))


def tasks(folder: Path) -> tuple[Task, ...]:
    """The jobs of ``sia_workloads*``, as often as they come."""
    rows = read(folder, "sia_workloads", TASKS)
    return tuple(
        Task(row["application"], int(row["replicas"]), int(row["batch_size"])) for row in rows
    )


def _most_even(fitting: Sequence[tuple[int, str]], nodes: int) -> str:
    """Of the placements on so many nodes, the one whose fullest node holds least."""
    return min(
        (placement for count, placement in fitting if count == nodes),
        key=lambda placement: (max(map(int, placement)), placement),
    )


def _between(points: Sequence[_Point], local: float) -> _Point:
    batches = [point.local_batch for point in points]
    at = min(max(bisect.bisect_left(batches, local), 1), len(points) - 1)
    if len(points) == 1 or local <= batches[0]:
        return points[0]
    low, high = points[at - 1], points[at]
    share = (local - low.local_batch) / (high.local_batch - low.local_batch)
    return _Point(
        local,
        low.step_seconds + share * (high.step_seconds - low.step_seconds),
        low.sync_seconds + share * (high.sync_seconds - low.sync_seconds),
    )
