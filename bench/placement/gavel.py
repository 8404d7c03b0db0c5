"""Truth T1: steps per second that Gavel's authors measured, and the jobs that they simulated.

Gavel (Narayanan et al., OSDI 2020), ``simulation_throughputs.json``: 26 models at a batch size, on
1, 2, 4 or 8 workers, on K80, P100 and V100, all workers on one server or spread over several. Its
cluster of 36 + 36 + 36 is here four servers of 8 and one of 4 each, so that every gang has a
server that takes it whole.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.files import BadInput
from bench.placement.traces import Row, count, number, positive, read, text
from poolwise.sim.fleet import Placement, Pool
from poolwise.sim.jobs import Job

SERVERS = (8, 8, 8, 8, 4)
POOLS = (
    Pool("k80", SERVERS, 0.45),
    Pool("p100", SERVERS, 1.46),
    Pool("v100", SERVERS, 2.48),
)
"""Google Cloud's on-demand prices of one accelerator an hour (us-central1, 2020-2024), the cloud
that Gavel's own cost policies were priced on."""


RATES = {
    "source": text,
    "gpu": text,
    "consolidated": text,
    "model": text,
    "batch_size": text,
    "workers": count,
    "steps_per_s": number,
}
JOBS = {"vc": text, "model": text, "batch_size": text, "workers": count, "total_steps": positive}


@dataclass(frozen=True, slots=True)
class Mix:
    """One kind of job as it recurs in the trace."""

    kind: str
    workers: int
    steps: float
    tenant: str


class Rates:
    """Measured steps per second."""

    def __init__(self, rows: Sequence[Row]) -> None:
        simulated = [row for row in rows if row["source"] == "simulation"]
        self._known = {
            (_kind(row), int(row["workers"]), row["gpu"], row["consolidated"] == "1"): float(
                row["steps_per_s"]
            )
            for row in simulated
        }

    def knows(self, kind: str, workers: int) -> bool:
        """Whether all pools were measured at this size, packed and spread."""
        wanted = {(pool.name, packed) for pool in POOLS for packed in (True, workers == 1)}
        is_known = all((kind, workers, *each) in self._known for each in wanted)
        return is_known and all(self.rate(kind, workers, pool.name, True) > 0 for pool in POOLS)

    def rate(self, kind: str, workers: int, pool: str, is_packed: bool) -> float:
        """Steps per second; 0 where nobody measured any."""
        packed = is_packed or workers == 1
        return self._known.get((kind, workers, pool, packed), 0.0)

    def seconds(self, job: Job, placement: Placement) -> float:
        """Of the whole job: the truth of a replay."""
        rate = self.rate(job.kind, job.accelerators, placement.pool, placement.is_packed)
        return job.work / rate if rate else math.inf


def rates(folder: Path) -> Rates:
    """Of the files ``gavel_throughputs*``."""
    return Rates(read(folder, "gavel_throughputs", RATES))


def mix(folder: Path, known: Rates) -> tuple[Mix, ...]:
    """The jobs of all files ``gavel_philly_jobs*`` whose size was measured."""
    rows = read(folder, "gavel_philly_jobs", JOBS)
    jobs = (
        Mix(_kind(row), int(row["workers"]), float(row["total_steps"]), row["vc"]) for row in rows
    )
    found = tuple(each for each in jobs if known.knows(each.kind, each.workers))
    if not found:
        raise BadInput(
            f"{folder}: no job of gavel_philly_jobs* has a rate in all pools in gavel_throughputs*"
        )
    return found


def jobs(found: Sequence[Mix], count: int, seed: int) -> tuple[Job, ...]:
    """Jobs drawn from a mix, one a second in the mean (Poisson)."""
    draw = random.Random(seed)
    now = 0.0
    drawn = []
    for index in range(count):
        now += draw.expovariate(1.0)
        each = draw.choice(found)
        drawn.append(Job(f"{index:05}", now, each.workers, each.kind, each.steps, each.tenant))
    return tuple(drawn)


def _kind(row: Row) -> str:
    return f"{row['model']}/{row['batch_size']}" if row["batch_size"] else row["model"]
