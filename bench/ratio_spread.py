"""``python -m bench.ratio_spread --data DIR``: how much of an error two accelerators share.

Rows that are equal in all but ``gpu`` (:mod:`bench.jobs`) have errors e1 and e2 of
ln(predicted / measured). What they share cancels in e1 - e2, so that half the square of its spread
is the variance of an accelerator's own part. Both are predicted without their job; but a range is
made of errors of rows that are predicted each by itself (:func:`bench.model.targets.outcomes`), so
``OWN_SHARE`` of :mod:`poolwise.model.ranges` is a share of the square of their spread, on the same
rows. A spread is what holds nine in ten, as in the tables.
"""

from __future__ import annotations

import argparse
import itertools
import math
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench.accuracy import Vector
from bench.correction import PHASES
from bench.jobs import SERVING, TRAINING
from bench.model.outcome import Outcome, scored
from bench.model.targets import compared, outcomes
from bench.programs import ends_on_bad_input
from bench.tables import DEFAULT_FOLDER
from poolwise.model.correction import Phase
from poolwise.model.prediction import NINE_IN_TEN
from poolwise.tables import load

SAME_PROGRAM = ("source", "framework")
"""Of training: what is not the accelerator's."""


@dataclass(frozen=True, slots=True)
class Shared:
    """Errors of matched pairs."""

    pairs: int
    whole: float
    """Spread of the errors of rows that are predicted each by itself."""
    own: float
    """Of an accelerator's own part."""

    @property
    def own_share(self) -> float:
        """Of the variance."""
        return min(1.0, (self.own / self.whole) ** 2) if self.whole else 1.0


@ends_on_bad_input
def main() -> None:
    """Print a line for each phase."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DEFAULT_FOLDER, help="the measured tables")
    folder, tables = parser.parse_args().data, load()
    alone, beside = list(outcomes(folder, tables)), list(compared(folder, tables))
    print(f"{'phase':<13}{'pairs':>7}{'spread':>8}{'own':>7}{'own share':>11}{'ratio 90 %':>12}")
    for phase in Phase:
        pairs = list(matched(beside, phase))
        if pairs:
            each = shared(pairs, list(matched(alone, phase)))
            margin = 100 * float(np.expm1(NINE_IN_TEN * each.own * 2**0.5))
            print(
                f"{phase:<13}{each.pairs:>7}{each.whole:>8.3f}{each.own:>7.3f}"
                f"{each.own_share:>11.2f}{'±':>7}{margin:>3.0f} %"
            )


def matched(found: Iterable[Outcome], phase: Phase) -> Iterator[tuple[float, float]]:
    """Errors of two accelerators that ran the same; each with the median of its rows."""
    key = (*TRAINING, *SAME_PROGRAM) if phase is Phase.TRAINING else SERVING
    jobs: dict[tuple[str, ...], dict[str, list[float]]] = {}
    for each in scored(found):
        if PHASES.get(each.score) is phase:
            job = tuple(each.row.get(column, "") for column in key)
            jobs.setdefault(job, {}).setdefault(each.row["gpu"], []).append(each.error)
    for by_gpu in jobs.values():
        medians = [float(np.median(errors)) for errors in by_gpu.values()]
        yield from itertools.combinations(medians, 2)


def shared(pairs: Sequence[tuple[float, float]], alone: Sequence[tuple[float, float]]) -> Shared:
    """Spreads of the errors of rows by themselves, and of what two accelerators do not share."""
    errors = np.array(pairs)
    differences = errors[:, 0] - errors[:, 1]
    own = _spread(differences) / math.sqrt(2.0)
    return Shared(len(pairs), whole=_spread(np.array(alone)), own=own)


def _spread(values: Vector) -> float:
    return float(np.quantile(np.abs(values), 0.9)) / NINE_IN_TEN


if __name__ == "__main__":
    sys.exit(main())
