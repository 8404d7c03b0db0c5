"""Our predictions and a rival's, scored on the rows that both predict.

``python -m bench.rivals.comparison --data DIR`` prints what the rival reaches on all rows that it
predicts, in percent of what was measured.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from bench.accuracy import Accuracy, accuracy
from bench.programs import ends_on_bad_input
from bench.rivals.questions import wanted
from bench.serving_figures import is_eligible
from bench.tables import DEFAULT_FOLDER, Row, number, read

Times = tuple[float | None, float | None]
"""Seconds per output token and to the first token; None where not predicted."""
Slice = tuple[str, str, str]
"""Target, what it is sliced by (``all`` for nothing, ``eligible`` for rows that state all that is
scored, else a column), and the value."""

PREDICTIONS: Final = Path(__file__).with_name("aiconfigurator_0.12.csv")
TARGETS: Final = (("tpot", "tpot_ms_mean"), ("ttft", "ttft_ms_mean"))
COLUMNS: Final = ("gpu", "engine")
ALL, ELIGIBLE = "all", "eligible"


@dataclass(frozen=True, slots=True)
class Comparison:
    """Both on the same rows."""

    ours: Accuracy
    rival: Accuracy

    @property
    def ratio(self) -> float:
        """How many times lower our median error is."""
        return self.rival.mdape / self.ours.mdape

    def as_dict(self) -> dict[str, Any]:
        """For JSON and for a page."""
        both = {"ours": self.ours.as_dict(), "rival": self.rival.as_dict()}
        return {"rows": self.ours.rows, "ratio": self.ratio, **both}


def predictions(path: Path = PREDICTIONS) -> dict[str, Times]:
    """A rival's, by ``row_id``."""
    with path.open(encoding="utf-8", newline="") as lines:
        return {
            row["row_id"]: (_seconds(row, "tpot_ms"), _seconds(row, "ttft_ms"))
            for row in csv.DictReader(lines)
        }


def by_row(figures: Iterable[tuple[str, str, float | None]]) -> dict[str, Times]:
    """Ours, from ``row_id``, name of the score (``tpot``, ``ttft_disagg``, ...) and seconds."""
    found: dict[str, dict[str, float | None]] = {}
    for row_id, score, seconds in figures:
        found.setdefault(row_id, {})[score.removesuffix("_disagg")] = seconds
    return {row_id: (each.get("tpot"), each.get("ttft")) for row_id, each in found.items()}


def unpredicted(path: Path = PREDICTIONS) -> Counter[str]:
    """How many rows a rival did not predict, by reason."""
    with path.open(encoding="utf-8", newline="") as lines:
        return Counter(row["reason"] for row in csv.DictReader(lines) if row["reason"])


def compare(
    ours: Mapping[str, Times], rival: Mapping[str, Times], rows: Iterable[Row]
) -> dict[Slice, Comparison]:
    """Errors on the rows that both predict, over all and by accelerator and by engine.

    ``ours`` must come from constants refitted without the accelerator of the row, since the rival
    has no measurement of whole runs in its tables and ours are fitted on these.
    """
    both = {row_id: _common(times, rival.get(row_id)) for row_id, times in ours.items()}
    kept = list(rows)
    own = scores({row_id: pair[0] for row_id, pair in both.items()}, kept)
    other = scores({row_id: pair[1] for row_id, pair in both.items()}, kept)
    return {key: Comparison(own[key], other[key]) for key in own}


def scores(predicted: Mapping[str, Times], rows: Iterable[Row]) -> dict[Slice, Accuracy]:
    """Errors of one model on all rows that it predicts, over all and by slice."""
    found: defaultdict[Slice, list[tuple[float, float]]] = defaultdict(list)
    for row in wanted(rows):
        for name, pair in _pairs(row, predicted.get(row["row_id"], (None, None))):
            for key in _slices(row):
                found[name, *key].append(pair)
    return {key: accuracy(*np.array(pairs).T) for key, pairs in sorted(found.items())}


def _slices(row: Row) -> Iterator[tuple[str, str]]:
    """Where the weights' format is not stated, a model is asked for a guessed one."""
    yield ALL, ""
    if is_eligible(row):
        yield ELIGIBLE, ELIGIBLE
    yield from ((column, row[column]) for column in COLUMNS)


def _pairs(row: Row, times: Times) -> Iterator[tuple[str, tuple[float, float]]]:
    suffix = "_disagg" if row["mode"] == "online-disagg" else ""
    for (name, column), seconds in zip(TARGETS, times, strict=True):
        measured = _seconds(row, column)
        if seconds is not None and measured:
            yield name + suffix, (seconds, measured)


def _common(ours: Times, rival: Times | None) -> tuple[Times, Times]:
    """Each without what the other lacks."""
    other = rival or (None, None)
    tpot, ttft = (
        pair if None not in pair else (None, None) for pair in zip(ours, other, strict=True)
    )
    return (tpot[0], ttft[0]), (tpot[1], ttft[1])


def _seconds(row: Row, column: str) -> float | None:
    value = number(row, column)
    return None if value is None else value / 1e3


@ends_on_bad_input
def main() -> None:
    """Prints the rival's errors as Markdown."""
    parser = argparse.ArgumentParser(description="Score a rival on what was measured.")
    parser.add_argument("--data", type=Path, default=DEFAULT_FOLDER, help="the measured tables")
    parser.add_argument("--rival", type=Path, default=PREDICTIONS, help="its predictions, as CSV")
    given = parser.parse_args()
    print("| target | slice | rows | median | mean | p90 | bias | rank |")
    print("|---|---|---|---|---|---|---|---|")
    for key, found in scores(predictions(given.rival), read(given.data, "serve_measured")).items():
        errors = (found.mdape, found.mape, found.p90, found.bias)
        shown = " | ".join(f"{error:.1f}" for error in errors)
        print(f"| {key[0]} | {key[2] or 'all'} | {found.rows} | {shown} | {found.spearman:.2f} |")
    for reason, count in unpredicted(given.rival).most_common():
        print(f"- {count} rows: {reason}")


if __name__ == "__main__":
    sys.exit(main())
