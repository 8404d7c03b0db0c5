"""One constant as a row to ship."""

from __future__ import annotations

from poolwise.tables.efficiencies import EfficiencyRow

PRIOR = "prior of the fit: nobody measured it"

Key = tuple[str, str, str, str]
"""Phase, term, scope, format."""


def constant_row(key: Key, value: float, count: int, spread: float, source: str) -> EfficiencyRow:
    """Fitted where rows stand behind it, else the fit's prior. Not validated: fits make many."""
    phase, term, scope, number_format = key
    return EfficiencyRow.model_construct(
        phase=phase,
        term=term,
        scope=scope,
        format=number_format,
        value=value,
        spread=spread,
        count=count,
        provenance="fitted" if count else "specification",
        source=source if count else PRIOR,
    )
