"""``python -m bench.model.widening --data DIR``: what do twice the accelerators gain a first token?

Runs of one job on one accelerator, engine and date that differ in the width of tensor parallelism
alone, by a factor of two. Prints how many times faster the wider one's first tokens came, measured
and by the formulas (constants that saw neither run), as medians over the jobs of a model, an engine
and a length of prompts. Where the formulas are right for all engines and models on an accelerator
but one, what that one lacks is its own.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median

from bench import tables as measured_tables
from bench.calibrations import Calibrations
from bench.jobs import JOBS, SERVING
from bench.model import serving
from bench.model.choice import Rates
from bench.model.outcome import Outcome, scored
from bench.programs import ends_on_bad_input
from bench.tables import DEFAULT_FOLDER, number
from poolwise.tables import load

SCORE = "ttft"
WIDTH = "tp"
SCALED = frozenset({"n_gpus", "tp", "moe_tp", "moe_ep"})
"""Columns that follow the width."""
JOB = (*(column for column in SERVING if column not in SCALED), "gpu", "source_date")
SHOWN = ("gpu", "engine", "model", "isl")
Gains = Mapping[tuple[str, ...], Sequence[Rates]]
"""Predicted and measured, by the cells shown and the widths."""


def gains(outcomes: Iterable[Outcome]) -> Gains:
    """How many times faster twice the width was, of each job that ran both."""
    jobs: defaultdict[tuple[str, ...], dict[int, list[Outcome]]] = defaultdict(dict)
    for each in scored(outcomes):
        width = number(each.row, WIDTH)
        if each.score == SCORE and width and number(each.row, "attn_dp") in (None, 1.0):
            job = tuple(each.row.get(column, "") for column in JOB)
            jobs[job].setdefault(int(width), []).append(each)
    found: defaultdict[tuple[str, ...], list[Rates]] = defaultdict(list)
    for runs in jobs.values():
        for width in sorted(runs):
            if 2 * width in runs:
                row = runs[width][0].row
                key = (*(row[column] for column in SHOWN), f"{width} to {2 * width}")
                narrow, wide = _seconds(runs[width]), _seconds(runs[2 * width])
                found[key].append((narrow[0] / wide[0], narrow[1] / wide[1]))
    return found


def _seconds(runs: Sequence[Outcome]) -> Rates:
    predicted = median(each.predicted.mid for each in runs if each.predicted)
    return predicted, median(each.measured for each in runs)


def lines(several: Gains) -> Iterator[str]:
    """A Markdown table."""
    yield "| accelerator | engine | model | prompt | width | jobs | measured | predicted |"
    yield "|---|---|---|---|---|---|---|---|"
    for key, found in sorted(several.items()):
        predicted, measured = (median(each) for each in zip(*found, strict=True))
        yield f"| {' | '.join(key)} | {len(found)} | x{measured:.2f} | x{predicted:.2f} |"


@ends_on_bad_input
def main() -> None:
    """Print all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DEFAULT_FOLDER, help="the measured tables")
    rows = measured_tables.read(parser.parse_args().data, serving.TARGET.table)
    tables = load()
    constants = Calibrations.load(serving.TARGET.phases, tables, JOBS).with_companions(rows)
    outcomes = serving.outcomes(rows, tables, lambda row: constants.of(row).formulas)
    for line in lines(gains(outcomes)):
        print(line)


if __name__ == "__main__":
    sys.exit(main())
