"""``python -m bench.correction --data DIR``: what a few measurements of a workload are worth.

Rows of one model, accelerator and engine stand for one workload on one pool. Some of its rows are
taken as measured by the cluster, and correct the predictions of all its others
(:mod:`poolwise.model.correction`). Each line of the table tells the error of those others before
and after, and how many of them the corrected range holds.

The program also tells the constants of the correction: which share of the variance of
ln(measured / predicted) such rows have in common, how many rows are off by more than the bound, and
what medians of one model and software have in common across accelerators.
"""

from __future__ import annotations

import argparse
import itertools
import math
import random
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench.model.outcome import Outcome, scored
from bench.model.targets import outcomes
from bench.programs import ends_on_bad_input
from bench.tables import DEFAULT_FOLDER
from poolwise.model.correction import BOUND, Correction, Phase, Sample, corrected
from poolwise.model.prediction import Interval
from poolwise.tables import load

PHASES: Mapping[str, Phase] = {
    "train_dense": Phase.TRAINING,
    "train_moe": Phase.TRAINING,
    "ttft": Phase.FIRST_TOKEN,
    "tpot": Phase.TOKEN,
}
"""Of the names that ``bench.model`` scores."""
RATES = ("train_dense", "train_moe")
"""Measured as rates; corrections are of times."""
WORKLOAD = ("model", "gpu", "engine", "framework")
SEEN = (0, 1, 3)
"""Measurements before the others are predicted."""
DRAWS = 10
"""Random choices of what is measured first."""


@dataclass(frozen=True, slots=True)
class Timed:
    """One row as a time that was predicted and measured."""

    workload: tuple[str, ...]
    phase: Phase
    predicted: Interval
    seconds: float

    @property
    def ratio(self) -> float:
        """Measured over predicted."""
        return self.seconds / self.predicted.mid


@dataclass(frozen=True, slots=True)
class Line:
    """The rest of the rows after some were measured."""

    phase: Phase
    seen: int
    rows: int
    before: float
    """Median absolute error in percent, zero-shot."""
    after: float
    held: float
    """Share of rows inside the corrected range, in percent."""


@ends_on_bad_input
def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DEFAULT_FOLDER, help="the measured tables")
    several = timed(outcomes(parser.parse_args().data, load()))
    print(f"{'phase':<13}{'measured':>9}{'rows':>8}{'zero-shot %':>13}{'after %':>9}{'in 90 %':>9}")
    for line in (line for phase in Phase for line in lines(several, phase)):
        print(
            f"{line.phase:<13}{line.seen:>9}{line.rows:>8}"
            f"{line.before:>13.1f}{line.after:>9.1f}{line.held:>9.0f}"
        )
    print(
        f"\n{'phase':<13}{'workloads':>10}{'rows':>8}{'lasting':>9}{f'beyond {BOUND:g}':>10}"
        f"{'pairs':>8}{'across':>9}"
    )
    for phase in Phase:
        chosen = workloads(several, phase)
        if chosen:
            rows, (shared, pairs) = sum(map(len, chosen)), across(several, phase)
            print(
                f"{phase:<13}{len(chosen):>10}{rows:>8}"
                f"{lasting(chosen):>9.2f}{100 * beyond_bound(chosen):>8.1f} %"
                f"{pairs:>8}{shared:>9.2f}"
            )


def timed(found: Iterable[Outcome]) -> list[Timed]:
    """Scored rows as times."""
    return [
        _timed(each, each.predicted)
        for each in scored(found)
        if each.score in PHASES and each.predicted is not None
    ]


def _timed(outcome: Outcome, predicted: Interval) -> Timed:
    workload = tuple(outcome.row.get(column, "") for column in WORKLOAD)
    phase = PHASES[outcome.score]
    if outcome.score not in RATES:
        return Timed(workload, phase, predicted, outcome.measured)
    slow = Interval(1 / predicted.mid, 1 / predicted.high, 1 / predicted.low)
    return Timed(workload, phase, slow, 1 / outcome.measured)


def workloads(several: Iterable[Timed], phase: Phase, least: int = 2) -> list[list[Timed]]:
    """Rows by workload, where there are so many at least."""
    found: dict[tuple[str, ...], list[Timed]] = {}
    for each in several:
        if each.phase is phase:
            found.setdefault(each.workload, []).append(each)
    return [rows for rows in found.values() if len(rows) >= least]


def lines(several: Sequence[Timed], phase: Phase) -> Iterator[Line]:
    """The same rows at every number of measurements: workloads with enough of them."""
    chosen = [rows for rows in workloads(several, phase) if len(rows) > max(SEEN)]
    for seen in SEEN if chosen else ():
        pairs = [pair for rows in chosen for pair in _predicted_again(rows, seen)]
        before = [each.predicted.mid / each.seconds - 1 for each, _ in pairs]
        after = [now.mid / each.seconds - 1 for each, now in pairs]
        held = [now.low <= each.seconds <= now.high for each, now in pairs]
        yield Line(phase, seen, len(pairs) // DRAWS, _median(before), _median(after), _share(held))


def _predicted_again(rows: Sequence[Timed], seen: int) -> Iterator[tuple[Timed, Interval]]:
    """Rows that were not measured, with their corrected ranges; for each draw."""
    for draw in range(DRAWS):
        order = random.Random(draw).sample(rows, len(rows))
        samples = [Sample(0.0, each.ratio) for each in order[:seen]]
        estimate = Correction(rows[0].phase).with_samples(samples).at(0.0)
        for each in order[max(SEEN) :]:
            yield each, corrected(each.predicted, estimate)


def lasting(chosen: Sequence[Sequence[Timed]]) -> float:
    """Share of the variance that a workload's rows have in common.

    What is left is how far each row is from the median of the others of its workload. Both spreads
    hold nine in ten, as the intervals do that are narrowed by this share.
    """
    groups = [np.log([each.ratio for each in rows]) for rows in chosen]
    left = [
        row - np.median(np.delete(group, index))
        for group in groups
        for index, row in enumerate(group)
    ]
    before, after = (
        float(np.quantile(np.abs(errors), 0.9)) for errors in (np.concatenate(groups), left)
    )
    return max(0.0, 1.0 - (after / before) ** 2)


def across(several: Iterable[Timed], phase: Phase) -> tuple[float, int]:
    """Share of the variance of a workload's median that workloads of the same model and software
    on other accelerators have too, and of how many pairs."""
    medians: dict[tuple[str, ...], list[float]] = {}
    for rows in workloads(several, phase, least=1):
        model, _, *software = rows[0].workload
        middle = float(np.median(np.log([each.ratio for each in rows])))
        medians.setdefault((model, *software), []).append(middle)
    pairs = [pair for each in medians.values() for pair in itertools.combinations(each, 2)]
    if not pairs:
        return 0.0, 0
    one, other = np.array(pairs).T
    return float(2.0 * (one * other).mean() / (one**2 + other**2).mean()), len(pairs)


def beyond_bound(chosen: Sequence[Sequence[Timed]]) -> float:
    """Share of rows whose error no correction may reach."""
    ratios = np.array([each.ratio for rows in chosen for each in rows])
    return float(np.mean(np.abs(np.log(ratios)) > math.log(BOUND)))


def _median(errors: Sequence[float]) -> float:
    return 100 * float(np.median(np.abs(errors)))


def _share(held: Sequence[bool]) -> float:
    return 100 * float(np.mean(held))


if __name__ == "__main__":
    sys.exit(main())
