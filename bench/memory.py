"""``python -m bench.memory --data DIR``: does memory hold what ran, and meet measured peaks?

A run of a known layout that is said not to fit is a false alarm: it ran. Where the source does not
say what was recomputed, the least demanding choice counts.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np

from bench.accuracy import accuracy
from bench.columns import GIB
from bench.fit.training import laid_rows
from bench.programs import ends_on_bad_input
from bench.tables import DEFAULT_FOLDER, figure, read
from bench.training_runs import LaidRun
from poolwise.model.prediction import Memory
from poolwise.model.training.memory import training_memory
from poolwise.model.work import Recompute
from poolwise.tables import load


def least_memory(each: LaidRun) -> Memory:
    """Of the choices that the source leaves open."""
    stated = each.run.fixed.recompute
    choices: Iterable[Recompute] = Recompute if stated is None else [stated]
    layouts = [replace(each.layout, recompute=choice) for choice in choices]
    memories = [training_memory(each.run.work, layout, each.run.machine) for layout in layouts]
    return min(memories, key=lambda memory: memory.needed_bytes)


@ends_on_bad_input
def main() -> None:
    """Print false alarms by source, and the error of the peaks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DEFAULT_FOLDER, help="the measured tables")
    rows = read(parser.parse_args().data, "train_measured")
    several = laid_rows(rows, load())
    known = [each for each in several if each.run.fixed.tensor is not None]
    refused = [each for each in known if not least_memory(each).fits]
    print(f"{len(refused)} of {len(known)} runs that ran are said not to fit")
    peaks = [each for each in known if figure(each.run.row, "peak_mem_gib")]
    if peaks:
        measured = np.array([figure(each.run.row, "peak_mem_gib") for each in peaks], dtype=float)
        predicted = np.array([least_memory(each).needed_bytes / GIB for each in peaks])
        print(f"peaks: {accuracy(predicted, measured)}")


if __name__ == "__main__":
    sys.exit(main())
