"""``python -m bench.autoscale.strangers [--data DIR]``: services that no constant was chosen on.

Hours of three services of ServeGen, at random out of two weeks, drawn from what is published of
their clients (:mod:`bench.autoscale.client_windows`): of all of them, and of those with few
requests, who come in bursts. ``ours`` beside the best static fleet in hindsight, and two rivals
with their published settings: ``llmd_slo``, which attains most of its aims that way on the traces
of the page and is the cheapest that does, and ``hpa_running``, the nearest to ours of those that
were tuned there. Days of which others keep a part for scoring are left out, and so
is m-small as a whole, of whose short requests twenty replicas serve four million an hour.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from bench.autoscale import client_windows, suite
from bench.autoscale.borrowed import published
from bench.autoscale.document import of_one
from bench.autoscale.grid import HOUR_SECONDS, sized
from bench.autoscale.numbers import count
from bench.autoscale.outcome import Outcome
from bench.autoscale.policies.laws import LAWS
from bench.autoscale.policies.profiling import service
from bench.autoscale.reach import aim
from bench.autoscale.replay import replay
from bench.autoscale.scene import Scene
from bench.autoscale.tuning import BEST_STATIC
from bench.programs import ends_on_bad_input
from bench.tables import DEFAULT_FOLDER

DAYS = 14
KEPT_DAYS = {"m-large": (8, 9), "m-small": (6,)}
"""Of which others keep a part for scoring."""
FEW, FEWER = 6.0, 0.5
"""Requests per second, on average over the two weeks."""
SERVICES = (
    ("m-mid", None), ("m-mid", FEW), ("m-large", None), ("m-large", FEW), ("m-large", FEWER),
    ("m-small", FEW),
)  # fmt: skip
"""(service, the most that a client of it sends)."""
HOURS = 4
"""Of each; prompt and answer have one rank in every other."""
PEAK_REPLICAS = 20.0
RIVALS = ("hpa_running", "llmd_slo")


@dataclass(frozen=True, slots=True)
class Hour:
    """Of one service."""

    model: str
    most_rate: float | None
    """Of a client, in requests per second; None: all clients."""
    begin_hours: float
    is_coupled: bool
    seed: int

    @property
    def clients(self) -> str:
        """Who is in it."""
        return "all" if self.most_rate is None else f"up to {self.most_rate:g}/s"


@dataclass(frozen=True, slots=True)
class Found:
    """What became of one."""

    hour: Hour
    aim: float
    static: Outcome
    others: tuple[Outcome, ...]
    """Ours, and the rivals."""


@ends_on_bad_input
def main() -> int:
    """Replay all of them and tell."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.autoscale.strangers",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data", type=Path, default=DEFAULT_FOLDER, help="folder of the traces")
    parser.add_argument("--processes", type=count, default=suite.PROCESSES)
    asked = parser.parse_args()
    print(text(run(asked.data, asked.processes)))
    return 0


def run(data: Path, processes: int) -> list[Found]:
    """Those of all services, in their order."""
    with ProcessPoolExecutor(processes) as pool:
        return list(pool.map(partial(replayed, data), list(drawn_hours())))


def drawn_hours() -> Iterator[Hour]:
    """The same hours of a service for all groups of its clients."""
    for model, most_rate in SERVICES:
        draw = np.random.default_rng(sum(map(ord, model)))
        days = [day for day in range(DAYS) if day not in KEPT_DAYS.get(model, ())]
        for number in range(HOURS):
            begin = float(draw.choice(days) * 24 + draw.integers(0, 24))
            yield Hour(model, most_rate, begin, number % 2 == 1, number)


def scene(data: Path, hour: Hour) -> Scene:
    """Before the usual engine; raises :class:`BadInput` where nobody came."""
    found = client_windows.clients(data, hour.model)
    if hour.most_rate is not None:
        found = tuple(each for each in found if each.mean_rate <= hour.most_rate)
    trace = client_windows.stretch(
        found,
        f"{hour.model} from {hour.begin_hours:g} h",
        hour.begin_hours * HOUR_SECONDS,
        HOUR_SECONDS,
        hour.is_coupled,
        hour.seed,
    )
    return sized(trace, PEAK_REPLICAS)


def replayed(data: Path, hour: Hour) -> Found:
    """One hour under all."""
    told = scene(data, hour)
    rivals = (replay(told, LAWS[name].policy(service(told), published(name))) for name in RIVALS)
    ours = suite.result(told, suite.OURS).outcome
    return Found(hour, aim(told), suite.result(told, BEST_STATIC).outcome, (ours, *rivals))


def text(found: Sequence[Found]) -> str:
    """A table: a row for each hour, and one for all."""
    names = (suite.OURS, *RIVALS)
    columns = "".join(f"| {name} % | over best static " for name in names)
    return "\n".join(
        [
            "| service | clients | from h | lengths | best static % | replica-h " + columns + "|",
            "|---" * (6 + 2 * len(names)) + "|",
            *(f"| {' | '.join(_cells(each))} |" for each in found),
            f"| all | | | | | | {' | '.join(_of_all(found, len(names)))} |",
        ]
    )


def _cells(found: Found) -> Iterator[str]:
    yield found.hour.model
    yield found.hour.clients
    yield f"{found.hour.begin_hours:g}"
    yield "of one rank" if found.hour.is_coupled else "apart"
    yield from of_one(found.static)
    for each in found.others:
        share = f"{100 * each.attainment:.2f}"
        yield f"**{share}**" if each.attainment >= found.aim else share
        yield f"{_over_static(found, each):.2f}"


def _of_all(found: Sequence[Found], policies: int) -> Iterator[str]:
    """How many attain their aim, and the geometric mean of what they cost."""
    for place in range(policies):
        told = [(each, each.others[place]) for each in found]
        good = sum(outcome.attainment >= each.aim for each, outcome in told)
        yield f"{good} of {len(told)}"
        yield f"{statistics.geometric_mean(_over_static(*each) for each in told):.2f}"


def _over_static(found: Found, outcome: Outcome) -> float:
    return outcome.replica_hours / found.static.replica_hours


if __name__ == "__main__":
    sys.exit(main())
