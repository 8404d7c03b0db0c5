"""``python -m bench.autoscale --trace FILE|--data DIR [--json] [--full]``: policies on traces.

``--trace`` replays one file as it is, ``--data`` the busiest hour of the first trace there that
lasts six hours or more (by name; of the longest one where none does), with ``--full`` every trace
there at all start delays and three sizes of fleet. A trace is scaled so that its busiest minute
needs ``--peak-replicas``.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.autoscale import document, replayable, scene, sizing, suite, traces
from bench.autoscale.engine import (
    USUAL_ACCELERATOR,
    USUAL_MODEL,
    USUAL_TENSOR,
    Engine,
    engine,
)
from bench.autoscale.grid import BEFORE_PEAK, HOUR_SECONDS
from bench.autoscale.numbers import count, count_or_none, not_negative, positive, share
from bench.autoscale.request_files import has_columns
from bench.files import BadInput, check_folder
from bench.programs import ends_on_bad_input
from bench.tables import DEFAULT_FOLDER

LONG_SECONDS = 6 * HOUR_SECONDS
PEAKS = (10.0, 40.0, 150.0)


@dataclass(frozen=True)
class Cell:
    """One scene to run."""

    scene: scene.Scene
    peak_replicas: float


@ends_on_bad_input
def main() -> int:
    """2 for input that cannot be used, in one sentence."""
    asked = _arguments().parse_args()
    names = [name for name in suite.available() if not asked.policies or name in asked.policies]
    documents: list[dict[str, Any]] = []
    for each in _cells(asked):
        results = []
        for done in suite.run(each.scene, names, asked.processes):
            results.append(done)
            if sys.stderr.isatty():
                print(f"{each.scene.trace.name}: {done.name}", file=sys.stderr)
        if not asked.json:
            print(document.text(each.scene, results), end="\n\n")
        elif asked.full:
            documents.append(document.cell(each.scene, each.peak_replicas, results))
        else:
            documents.append(document.document(each.scene.trace.name, results))
    if asked.json:
        print(json.dumps({**documents[0], "grid": documents} if asked.full else documents[0]))
    return 0


def _cells(asked: argparse.Namespace) -> Iterator[Cell]:
    """A trace of a folder that nothing can be said of is named, and the others are replayed."""
    on = engine(asked.model, asked.accelerator, asked.tensor, asked.batched_tokens, asked.sequences)
    if asked.trace:
        yield from _cells_of(traces.load(asked.trace, asked.prefixes), on, asked)
        return
    found = 0
    for trace in _read(asked):
        try:
            for cell in _cells_of(trace, on, asked):
                found += 1
                yield cell
        except BadInput as error:
            _leave_out(error)
        if found and not asked.full:
            return
    if not found:
        raise BadInput(f"no trace that can be replayed lies below {asked.data}")


def _read(asked: argparse.Namespace) -> Iterator[traces.Trace]:
    """By name; where one is wanted those of six hours or more first, then the others by length."""
    shorter: list[traces.Trace] = []
    for path in _paths(asked.data):
        try:
            trace = traces.load(path, asked.prefixes)
        except BadInput as error:
            _leave_out(error)
            continue
        if asked.full or trace.seconds >= LONG_SECONDS:
            yield trace
        else:
            shorter.append(trace)
    yield from sorted(shorter, key=lambda each: -each.seconds)


def _leave_out(error: BadInput) -> None:
    print(f"{error}; left out", file=sys.stderr)


def _cells_of(read: traces.Trace, on: Engine, asked: argparse.Namespace) -> Iterator[Cell]:
    trace = replayable.replayable(read, on)
    if trace.complaint:
        print(trace.complaint, file=sys.stderr)
    targets = sizing.Targets(asked.ttft_seconds, asked.tpot_seconds, asked.attainment)
    work = _work(trace, on, targets, asked.seed)
    for wanted in PEAKS if asked.full else (asked.peak_replicas,):
        peak = replayable.affordable_peak(trace, work, wanted)
        if peak < wanted:
            print(_smaller(trace, wanted, peak), file=sys.stderr)
        found = scene.of_peak(trace, on, targets, work, peak)
        replayable.check_left(found.trace, trace)
        if not asked.trace and not asked.full:
            found = scene.around_peak(found, HOUR_SECONDS, BEFORE_PEAK)
        delays = scene.START_DELAYS_SECONDS if asked.full else (asked.start_delay_seconds,)
        for delay in delays:
            yield Cell(scene.with_settings(found, delay, **_settings(asked)), peak)


def _work(trace: traces.Trace, on: Engine, targets: sizing.Targets, seed: int) -> sizing.Work:
    try:
        return sizing.measured(on, trace.requests, targets, seed)
    except sizing.OutOfReach as error:
        raise BadInput(f"{trace.name}: {error}") from error


def _smaller(trace: traces.Trace, wanted: float, peak: float) -> str:
    return (
        f"{trace.name}: its peak is {peak:.3g} replicas instead of {wanted:g}, "
        "which would serve too many of its requests to replay"
    )


def _paths(folder: Path) -> Iterator[Path]:
    """Of traces, the first by name first."""
    check_folder(folder)
    return filter(has_columns, sorted(folder.rglob("*.csv*")))


def _settings(asked: argparse.Namespace) -> dict[str, Any]:
    return {
        "routing": scene.Routing(asked.router),
        "scraping": scene.Scraping(
            asked.scrape_seconds, asked.noise, asked.missing_share, not asked.no_lengths
        ),
        "slowness": asked.slowness,
        "seed": asked.seed,
    }


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.autoscale", description=__doc__)
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--trace", type=Path, help="one file, .csv or .csv.gz")
    which.add_argument("--data", type=Path, default=DEFAULT_FOLDER, help="folder of traces")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--full", action="store_true", help="all traces, start delays and peaks")
    parser.add_argument("--policies", nargs="*", choices=suite.NAMES, help="only these")
    parser.add_argument("--processes", type=count, default=suite.PROCESSES)
    parser.add_argument("--model", default=USUAL_MODEL)
    parser.add_argument("--accelerator", default=USUAL_ACCELERATOR)
    parser.add_argument(
        "--tensor", type=count, default=USUAL_TENSOR, help="accelerators of a replica"
    )
    parser.add_argument("--batched-tokens", type=count, help="of a step; default: vLLM's")
    parser.add_argument("--sequences", type=count, help="of a step; default: vLLM's")
    parser.add_argument("--peak-replicas", type=positive, default=scene.PEAK_REPLICAS)
    delay = scene.START_DELAY_SECONDS
    parser.add_argument("--start-delay-seconds", type=not_negative, default=delay)
    parser.add_argument("--ttft-seconds", type=positive, default=5.0)
    parser.add_argument("--tpot-seconds", type=positive, default=0.1)
    parser.add_argument(
        "--attainment", type=share, default=sizing.ATTAINMENT, help="share that is to meet both"
    )
    routers = [each.value for each in scene.Routing]
    parser.add_argument("--router", choices=routers, default=scene.Routing.LEAST_OUTSTANDING.value)
    usual = scene.Scraping()
    parser.add_argument("--scrape-seconds", type=positive, default=usual.interval_seconds)
    parser.add_argument(
        "--noise", type=not_negative, default=usual.noise, help="of gauges, as a share"
    )
    parser.add_argument("--missing-share", type=not_negative, default=0.0, help="of scrapes")
    parser.add_argument(
        "--no-lengths", action="store_true", help="engines without histograms of lengths"
    )
    parser.add_argument("--slowness", type=positive, default=1.0, help="true steps over told ones")
    parser.add_argument("--prefixes", action="store_true", help="use the column of cached tokens")
    parser.add_argument("--seed", type=count_or_none, default=0)
    return parser


if __name__ == "__main__":
    sys.exit(main())
