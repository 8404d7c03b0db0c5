"""Everything that ``python -m bench.model --json`` prints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bench.model.choice import choices
from bench.model.counted import counted
from bench.model.experiments import experiments
from bench.model.outcome import Outcome
from bench.model.scores import by_name, grouped, unpredicted
from bench.model.unread import unread
from bench.tables import Row
from poolwise.tables import Tables


def document(
    rows: Sequence[Row], found: Sequence[Outcome], compared: Sequence[Outcome], tables: Tables
) -> dict[str, Any]:
    """Scores, errors by what rows have in common, choices and natural experiments; and what became
    of all ``rows``."""
    splits = grouped(found, lambda each: each.row.get("split") or "")
    return {
        "scores": by_name(found),
        "by_gpu": grouped(found, lambda each: each.row.get("gpu", "")),
        "by_model": grouped(found, lambda each: each.row.get("model", "")),
        "by_source": grouped(found, lambda each: each.row.get("source", "")),
        **({"by_split": splits} if splits else {}),
        "unpredicted": unpredicted(found),
        "unread": unread(rows),
        "counted": counted(rows, found),
        "choice": choices(compared),
        "experiments": experiments(compared, tables),
    }
