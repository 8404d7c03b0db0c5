"""Predictions of aiconfigurator 0.12 for the rows of its own published sample.

``python -m bench.rivals.aiconfigurator --data DIR --out FILE.csv``, with the Python of an
environment that has ``aiconfigurator==0.12.0``; README.md beside this file says how it was run.
"""

from __future__ import annotations

import argparse
import csv
import importlib
import logging
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

from bench.programs import ends_on_bad_input
from bench.rivals.questions import Question, question, wanted
from bench.tables import DEFAULT_FOLDER, Row, read

FIELDS: Final = ("row_id", "tpot_ms", "ttft_ms", "reason", "database", "coverage")
COVERAGES: Final = ("SILICON", "HYBRID")
"""Measured tables alone, else with aiconfigurator's own formulas where a table has a gap."""
FULL: Final = "does not fit by its memory estimate"
REFUSALS: Final = {
    "OOM": FULL,
    "should be divisible by tp_size": "heads not divisible by the tensor-parallel size",
    "Cross-node EP": "no tables for expert parallelism across nodes",
    "data missing": "no tables for an operator in this precision",
}
"""Parts of its errors."""
Estimate = Callable[..., Any]
"""``aiconfigurator.cli.api.cli_estimate``."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Milliseconds, or the reason why there are none, and the tables that were used."""

    tpot_ms: float | None
    ttft_ms: float | None
    reason: str
    database: str
    coverage: str

    def cells(self, row_id: str) -> tuple[str, ...]:
        """In the order of ``FIELDS``."""
        times = ("" if value is None else f"{value:.5g}" for value in (self.tpot_ms, self.ttft_ms))
        return row_id, *times, self.reason, self.database, self.coverage


@dataclass
class Rival:
    """The installed aiconfigurator."""

    estimate: Estimate
    latest: Callable[[str, str], str | None]
    """Newest maintained tables of a system and a backend; aiconfigurator 0.12 offers no other."""
    shapes: Path
    folder: Path
    context_tokens: int | None = None
    _answers: dict[Question, Answer] = field(default_factory=dict)

    def answer(self, asked: Question) -> Answer:
        """Its prediction; asked once for rows that differ in nothing that it looks at."""
        if asked not in self._answers:
            self._answers[asked] = self._ask(asked)
        return self._answers[asked]

    def _ask(self, asked: Question) -> Answer:
        database = self.latest(asked.system, asked.backend)
        if database is None:
            return _silent("no tables for this engine")
        reason = ""
        for coverage in COVERAGES:
            try:
                found = self._point(asked, database, coverage)
                return Answer(found.tpot, found.ttft, "", database, coverage)
            except Exception as error:  # of many kinds: whatever it cannot predict is its answer
                reason = reason or short(error)
                if reason == FULL:  # formulas would refuse it too
                    break
        return _silent(reason, database)

    def _point(self, asked: Question, database: str, coverage: str) -> Any:
        return self.estimate(
            asked.checkpoint.path(self.shapes, self.folder),
            backend_version=database,
            database_mode=coverage,
            ctx_tokens=self.context_tokens and max(self.context_tokens, asked.prompt_tokens),
            **asked.keywords(),
        )


def _silent(reason: str, database: str = "") -> Answer:
    return Answer(None, None, reason, database, "")


def short(error: Exception) -> str:
    """Why it refused, by the kinds of refusal that were met, else the error's first words."""
    words = " ".join(str(error).split()) or type(error).__name__
    return next((reason for part, reason in REFUSALS.items() if part in words), words[:80])


def installed(folder: Path, context_tokens: int | None = None) -> Rival:
    """Raises ImportError where aiconfigurator is not installed."""
    core = importlib.import_module("aiconfigurator_core")
    databases = importlib.import_module("aiconfigurator.sdk.perf_database")
    return Rival(
        estimate=importlib.import_module("aiconfigurator.cli.api").cli_estimate,
        latest=cache(databases.get_latest_database_version),
        shapes=Path(str(core.__file__)).parent / "model_configs",
        folder=folder,
        context_tokens=context_tokens,
    )


def predictions(rows: Iterable[Row], rival: Rival) -> Iterator[tuple[str, ...]]:
    """Cells of each row, in the order of ``FIELDS``."""
    asked = {row["row_id"]: question(row) for row in wanted(rows)}
    for each in sorted(asked.values(), key=_tables):
        _answer(each, rival)
    for row_id, each in asked.items():
        yield _answer(each, rival).cells(row_id)


def _answer(asked: Question | str, rival: Rival) -> Answer:
    return _silent(asked) if isinstance(asked, str) else rival.answer(asked)


def _tables(asked: Question | str) -> tuple[str, ...]:
    """What keeps together the questions that read the same tables, which are slow to load."""
    return () if isinstance(asked, str) else (asked.system, asked.backend, repr(asked.checkpoint))


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the warnings of others."""
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)


@ends_on_bad_input
def main() -> None:
    """Writes the predictions."""
    parser = argparse.ArgumentParser(description="Ask aiconfigurator what was measured.")
    parser.add_argument("--data", type=Path, default=DEFAULT_FOLDER, help="the measured tables")
    parser.add_argument("--out", type=Path, required=True, help="the predictions, as CSV")
    parser.add_argument("--context-tokens", type=int, help="prompt tokens a step; else its default")
    given = parser.parse_args()
    rows = read(given.data, "serve_measured")
    with _quiet(), tempfile.TemporaryDirectory() as folder, given.out.open("w", newline="") as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(FIELDS)
        writer.writerows(predictions(rows, installed(Path(folder), given.context_tokens)))


if __name__ == "__main__":
    sys.exit(main())
