"""Everything that ``python -m bench.model --json`` prints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bench.model.choice import choices
from bench.model.experiments import experiments
from bench.model.outcome import Outcome
from bench.model.scores import by_name, grouped, unpredicted
from poolwise.tables import Tables


def document(
    found: Sequence[Outcome], compared: Sequence[Outcome], tables: Tables
) -> dict[str, Any]:
    """Scores, errors by what rows have in common, choices and natural experiments."""
    splits = grouped(found, lambda each: each.row.get("split") or "")
    return {
        "scores": by_name(found),
        "by_gpu": grouped(found, lambda each: each.row.get("gpu", "")),
        "by_model": grouped(found, lambda each: each.row.get("model", "")),
        "by_source": grouped(found, lambda each: each.row.get("source", "")),
        **({"by_split": splits} if splits else {}),
        "unpredicted": unpredicted(found),
        "choice": choices(compared),
        "experiments": experiments(compared, tables),
    }
