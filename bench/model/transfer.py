"""``python -m bench.model.transfer --data DIR``: what of an error does not transfer?

Each accelerator's eligible services are predicted by constants and residuals that were fitted
without it. Prints the errors that are left, and what would be left if one factor were known for all
rows alike in some columns: an error that falls much with the accelerator's engine is one of levels,
which a few measured runs would correct; what falls only with single configurations is one of form.
A factor is taken from the very rows that it corrects, so these are bounds and no scores.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from statistics import median

import numpy as np

from bench.model import serving
from bench.model.leave_one_out import left_out
from bench.model.outcome import Outcome, scored
from bench.programs import ends_on_bad_input
from bench.tables import DEFAULT_FOLDER

SCORES = ("tpot", "ttft", "offline_throughput")
JOB = ("gpu", "engine", "model", "weight_precision")
CONFIGURATION = (*JOB, "source_date", "tp", "attn_dp", "moe_ep", "isl", "osl")
KNOWN: tuple[tuple[str, ...], ...] = (
    (),
    ("engine",),
    ("gpu",),
    ("gpu", "engine"),
    JOB,
    (*JOB, "source_date"),
    CONFIGURATION,
)
"""Columns by which a factor might be known."""


def remaining(outcomes: Sequence[Outcome], columns: Sequence[str]) -> list[float]:
    """ln(predicted / measured) less its median over the rows with the same cells; none without
    columns."""
    if not columns:
        return [each.error for each in outcomes]
    alike: defaultdict[tuple[str, ...], list[float]] = defaultdict(list)
    for each in outcomes:
        alike[tuple(each.row.get(column, "") for column in columns)].append(each.error)
    return [error - median(errors) for errors in alike.values() for error in errors]


def lines(outcomes: Iterable[Outcome]) -> Iterator[str]:
    """A Markdown table for each score."""
    counted = scored(outcomes)
    for name in SCORES:
        of_score = [each for each in counted if each.score == name]
        if of_score:
            yield f"\n| {name}, one factor known by | factors | median | mean | p90 |"
            yield "|---|---|---|---|---|"
            yield from (_line(of_score, columns) for columns in KNOWN)


def _line(outcomes: Sequence[Outcome], columns: Sequence[str]) -> str:
    factors = len({tuple(each.row.get(column, "") for column in columns) for each in outcomes})
    wrong = 100 * np.abs(np.expm1(remaining(outcomes, columns)))
    figures = (np.median(wrong), np.mean(wrong), np.percentile(wrong, 90))
    shown = " | ".join(f"{float(each):.1f}" for each in figures)
    return f"| {', '.join(columns) or 'nothing'} | {factors if columns else 0} | {shown} |"


@ends_on_bad_input
def main() -> None:
    """Refit without each accelerator, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DEFAULT_FOLDER, help="the measured tables")
    units = left_out(parser.parse_args().data, serving.TARGET, "accelerator")
    for line in lines(each for unit in units for each in unit.outcomes):
        print(line)


if __name__ == "__main__":
    sys.exit(main())
