"""Scores of the rows that this project measured (``bench/own``), which no fit has seen."""

from __future__ import annotations

from bench.model.outcome import Outcome
from bench.model.scores import Score, grouped
from bench.model.targets import outcomes
from bench.tables import OWN_FOLDER
from poolwise.tables import Tables


def own_scores(tables: Tables) -> dict[str, dict[str, Score]]:
    """By accelerator and, of training, how it ran."""
    return grouped(outcomes(OWN_FOLDER, tables), _label)


def _label(outcome: Outcome) -> str:
    how = outcome.row.get("framework", "").rpartition(", ")[2]
    return ", ".join(filter(None, (outcome.row["gpu"], how)))
