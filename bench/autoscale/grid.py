"""What docs/autoscaling-replay.md is made of: cases, and who is replayed in each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from bench.autoscale import scene, sizing, suite, traces
from bench.autoscale.engine import Engine, engine
from bench.autoscale.scene import Scene
from bench.autoscale.traces import Trace
from bench.autoscale.tuning import BEST_STATIC, HOURLY, STATIC_MEAN
from bench.files import BadInput, check_folder

PEAKS = {
    "servegen_r1_24h": 20.0,
    "mooncake_conversation": 40.0,
    "azure2023_code": 20.0,
    "servegen_mlarge_burst_day1": 10.0,
    "azure2023_conv": 10.0,
}
"""Traces of the page, and how many replicas their busiest minute needs: few for those of short
answers, of which forty replicas serve half a million an hour."""
HOUR_SECONDS = 3600.0
USUAL_TARGETS = sizing.Targets()
BEFORE_PEAK = 2.0 / 3.0
"""Share of the hour that lies before the busiest minute."""
SLOWNESSES = (0.7, 1.3)
"""True steps over those that the model tells of."""
WITH_RIVALS = ("servegen_r1_24h", "azure2023_conv")
"""Traces on which rivals are tuned for other starts, too."""
NEAREST = ("hpa_running", "kpa", "wva_queue", "dynamo_load")
"""These rivals: of those that scale, the nearest to ours on these traces with the usual start."""
SEEDS = (1,)
"""Of the scrapes' noise, beside 0: one hour under ours is chaotic."""
OF_SLOWNESS = (suite.OURS, BEST_STATIC, suite.O1)
OF_STARTS = (*OF_SLOWNESS, suite.O2)
OF_DAY = (suite.OURS, BEST_STATIC, STATIC_MEAN, HOURLY, "hpa_running")
"""Without O1, which would take hours; of those that scale, the cheapest of all that attained their
aim on m-large's day when each was tuned for it."""


@dataclass(frozen=True, slots=True)
class Case:
    """One trace under some circumstances."""

    trace: str
    peak_replicas: float
    start_delay_seconds: float = scene.START_DELAY_SECONDS
    slowness: float = 1.0
    is_whole: bool = False
    """A long one in full; else the hour around its busiest minute."""
    seed: int = 0


USUAL = tuple(Case(name, peak) for name, peak in PEAKS.items())
DAYS = (replace(USUAL[0], is_whole=True), Case("servegen_mlarge_tail_day2", 20.0, is_whole=True))


def slower() -> Iterator[Case]:
    """Each trace before engines that are not what the model says."""
    for case in USUAL:
        yield from (replace(case, slowness=slowness) for slowness in SLOWNESSES)


def started() -> Iterator[Case]:
    """Each trace with other times of a start."""
    others = (each for each in scene.START_DELAYS_SECONDS if each != scene.START_DELAY_SECONDS)
    for delay_seconds in others:
        yield from (replace(case, start_delay_seconds=delay_seconds) for case in USUAL)


def everything() -> Iterator[tuple[Case, tuple[str, ...]]]:
    """All cases, with the policies of each."""
    everybody = suite.available()
    yield from ((case, everybody) for case in USUAL)
    yield from ((case, OF_SLOWNESS) for case in slower())
    yield from ((day, OF_DAY) for day in DAYS)
    for case in started():
        yield case, (*OF_STARTS, *(NEAREST if case.trace in WITH_RIVALS else ()))
    for case in (*USUAL, *slower(), *started()):
        yield from ((replace(case, seed=seed), (suite.OURS,)) for seed in SEEDS)


def trace_of(data: Path, name: str) -> Trace:
    """Of :func:`path_of`; raises :class:`BadInput`, also for a file that is no trace."""
    return traces.load(path_of(data, name))


def path_of(data: Path, name: str) -> Path:
    """The file of that name, wherever it lies below ``data``; BadInput where there is none."""
    check_folder(data)
    path = next(data.rglob(f"{name}.csv*"), None)
    if path is None:
        raise BadInput(f"{data}: no {name}.csv[.gz] lies below it")
    return path


def sized(
    trace: Trace,
    peak_replicas: float,
    on: Engine | None = None,
    targets: sizing.Targets = USUAL_TARGETS,
) -> Scene:
    """A trace before an engine (None: the usual one), with its busiest minute as large as is said.

    :param targets: of each request.
    """
    on = on or engine()
    work = sizing.measured(on, trace.requests, targets)
    return scene.of_peak(trace, on, targets, work, peak_replicas)


def busiest_hour(found: Scene) -> Scene:
    """Of a long trace; others as they are."""
    if found.trace.seconds <= HOUR_SECONDS:
        return found
    return scene.around_peak(found, HOUR_SECONDS, BEFORE_PEAK)


def scene_of(data: Path, case: Case) -> Scene:
    """To be replayed."""
    trace = trace_of(data, case.trace)
    found = sized(trace, case.peak_replicas)
    if not case.is_whole:
        found = busiest_hour(found)
    return scene.with_settings(
        found,
        case.start_delay_seconds,
        found.routing,
        found.scraping,
        slowness=case.slowness,
        seed=case.seed,
    )
