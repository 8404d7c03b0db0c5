"""``python -m bench.autoscale.others [--data DIR]``: other engines, targets and routers.

Nothing of the controller was fitted to these: the traces of the page before other models and
accelerators, with targets that are tighter, wider or inside a bucket of the engine's histograms,
with a smaller share that shall be in time, and behind a plain Service. Peaks are small, so that it
takes minutes. ``ours`` beside the best static fleet of each, in hindsight.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from bench.autoscale import beside, grid, suite
from bench.autoscale.beside import Beside
from bench.autoscale.engine import Engine, engine
from bench.autoscale.numbers import count
from bench.autoscale.scene import Routing, Scene
from bench.autoscale.sizing import Targets
from bench.programs import ends_on_bad_input
from bench.tables import DEFAULT_FOLDER

PEAKS = {
    "servegen_r1_24h": 10.0,
    "mooncake_conversation": 15.0,
    "azure2023_code": 10.0,
    "servegen_mlarge_burst_day1": 8.0,
    "azure2023_conv": 8.0,
}
"""Replicas that the busiest minute needs."""


@dataclass(frozen=True, slots=True)
class Circumstance:
    """What is not as on the page."""

    name: str
    targets: Targets = grid.USUAL_TARGETS
    model: str | None = None
    accelerator: str = ""
    routing: Routing = Routing.LEAST_OUTSTANDING

    @property
    def engine(self) -> Engine:
        """Of a replica: the page's unless another model is named, on one accelerator."""
        return engine(self.model, self.accelerator, 1) if self.model else engine()


CIRCUMSTANCES = (
    Circumstance("1 s and 50 ms", Targets(1.0, 0.05)),
    Circumstance("3 s and 60 ms", Targets(3.0, 0.06)),
    Circumstance("10 s and 200 ms", Targets(10.0, 0.2)),
    Circumstance("95 % in time", Targets(attainment=0.95)),
    Circumstance("a plain Service", routing=Routing.SERVICE),
    Circumstance("Llama-3.1-8B on an L40S, 2 s and 60 ms", Targets(2.0, 0.06),
                 "llama-3.1-8b", "L40S"),
    Circumstance("Qwen3-30B-A3B on an H200, 2 s and 30 ms", Targets(2.0, 0.03),
                 "qwen3-30b-a3b", "H200-SXM-141GB"),
)  # fmt: skip
"""Targets are of the first token and of the mean gap."""


@dataclass(frozen=True, slots=True)
class Found(Beside):
    """What became of one trace."""

    trace: str
    circumstance: str


@ends_on_bad_input
def main() -> int:
    """Replay all of them and tell."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.autoscale.others",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data", type=Path, default=DEFAULT_FOLDER, help="folder of the traces")
    parser.add_argument("--processes", type=count, default=suite.PROCESSES)
    asked = parser.parse_args()
    print(text(run(asked.data, asked.processes)))
    return 0


def run(data: Path, processes: int, peaks: Mapping[str, float] = PEAKS) -> list[Found]:
    """Every circumstance for every trace."""
    cases = [(each, *peak) for each in CIRCUMSTANCES for peak in peaks.items()]
    with ProcessPoolExecutor(processes) as pool:
        return list(pool.map(partial(_found, data), *zip(*cases, strict=True)))


def scene_of(data: Path, circumstance: Circumstance, name: str, peak: float) -> Scene:
    """To be replayed."""
    trace = grid.trace_of(data, name)
    found = grid.sized(trace, peak, circumstance.engine, circumstance.targets)
    return replace(grid.busiest_hour(found), routing=circumstance.routing)


def _found(data: Path, circumstance: Circumstance, name: str, peak: float) -> Found:
    there = scene_of(data, circumstance, name, peak)
    return Found(*beside.replayed(there), name, circumstance.name)


def text(found: Iterable[Found]) -> str:
    """A table: a row for each trace and circumstance."""
    head = (
        "| instead | trace | aim % | ours % | replica-h | best static % | replica-h |",
        "|---|---|---|---|---|---|---|",
    )
    return "\n".join((*head, *(f"| {' | '.join(_cells(each))} |" for each in found)))


def _cells(found: Found) -> Iterator[str]:
    yield from (found.circumstance, found.trace, f"{100 * found.aim:.2f}")
    for each in (found.ours, found.static):
        yield from (f"{100 * each.attainment:.2f}", f"{each.replica_hours:.2f}")


if __name__ == "__main__":
    sys.exit(main())
