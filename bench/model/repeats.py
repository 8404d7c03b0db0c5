"""``python -m bench.model.repeats --data DIR``: how well do measurements agree with themselves?

Prints how far repeated measurements of one job on one accelerator are apart, where the constants
:data:`bench.model.experiments.REPEATS_DIFFER` are from; and for how many of the decided pairs of
the natural experiments a second measurement, read as if it were the prediction, would be right: no
model can be asked for more. Results that were copied to a later date are no repeats.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median, quantiles

from bench.model.choice import gathered, rates
from bench.model.dominance import verdict
from bench.model.experiments import QUANTITIES, Pair, paired, with_drafts
from bench.model.outcome import Outcome, scored
from bench.model.targets import outcomes
from bench.programs import ends_on_bad_input
from bench.tables import DEFAULT_FOLDER
from poolwise.model.prediction import NINE_IN_TEN
from poolwise.tables import load

MIXED = ("DeepSeek-V3", "sglang")
"""Model and engine whose rows are of recipes with and without prediction, which nothing tells
apart (:mod:`bench.serving_drafts`)."""
COPIED = 1.0005
"""Largest over smallest of what is one measurement told twice."""
DRAWS = 30
SEED = 1


@ends_on_bad_input
def main() -> None:
    """Print both, quantity by quantity."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DEFAULT_FOLDER, help="the measured tables")
    tables = load()
    counted = scored(outcomes(parser.parse_args().data, tables))
    for quantity in QUANTITIES:
        found = spreads([each for each in counted if each.score == quantity], quantity)
        if len(found) > 1:
            print(
                f"{quantity}: {len(found)} jobs were measured again, median {median(found):.0%} "
                f"apart, 90th percentile {quantiles(found, n=10, method='inclusive')[-1]:.0%}"
            )
    by_quantity: dict[str, list[Pair]] = {}
    for experiment, pair in paired(counted, tables):
        by_quantity.setdefault(experiment.quantity, []).append(pair)
    for line in _ceilings(by_quantity):
        print(line)


def spreads(counted: Sequence[Outcome], quantity: str) -> list[float]:
    """Largest over smallest less 1 of each job with several measurements on one accelerator."""
    one_recipe = [each for each in counted if (each.row["model"], each.row.get("engine")) != MIXED]
    jobs = gathered(with_drafts(rates(one_recipe)), QUANTITIES[quantity]).values()
    measured = [[each[1] for each in runs] for job in jobs for runs in job.values()]
    ratios = [max(each) / min(each) for each in measured]
    return [ratio - 1 for ratio in ratios if ratio > COPIED]


def _ceilings(by_quantity: Mapping[str, Sequence[Pair]]) -> Iterator[str]:
    for quantity, several in by_quantity.items():
        decided, right = ceiling(several)
        share = "" if right is None else f", of which a second measurement is right on {right:.1%}"
        yield f"{quantity}: {decided:.0%} of {len(several)} pairs decided{share}"


def ceiling(several: Sequence[Pair]) -> tuple[float, float | None]:
    """Share of pairs that are decided, and of these the share that a repeat is right on, where
    both measurements are normal around the one we have."""
    drawn, decided, right = random.Random(SEED), 0, 0
    for pair in several:
        deviation = pair.noise / NINE_IN_TEN
        for _ in range(DRAWS):
            first, again = (drawn.gauss(pair.measured, deviation) for _ in range(2))
            found = verdict(first, again, pair.cases, pair.noise)
            decided += found.is_decided
            right += found.is_decided and found.is_right
    draws = DRAWS * len(several)
    return decided / draws if draws else 0.0, right / decided if decided else None


if __name__ == "__main__":
    sys.exit(main())
