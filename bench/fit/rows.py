"""One constant as a row to ship."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from bench.dates import span_of
from bench.tables import Row
from poolwise.tables.efficiencies import EfficiencyRow

PRIOR = "prior of the fit: nobody measured it"

Key = tuple[str, str, str, str]
"""Phase, term, scope, format."""


@dataclass(frozen=True, slots=True)
class Behind:
    """What stands behind a constant: the number of rows, and when they were measured."""

    count: int
    date: str

    @staticmethod
    def of(rows: Iterable[Row], every: Iterable[Row] = ()) -> Behind:
        """These rows. A prior that none of them speaks for has the dates of ``every`` row that was
        looked through."""
        several = list(rows)
        return Behind(len(several), span_of(several or every))


def constant_row(
    key: Key, value: float, behind: Behind, spread: float, source: str
) -> EfficiencyRow:
    """Fitted where rows stand behind it, else the fit's prior. Not validated: fits make many."""
    phase, term, scope, number_format = key
    return EfficiencyRow.model_construct(
        phase=phase,
        term=term,
        scope=scope,
        format=number_format,
        value=value,
        spread=spread,
        count=behind.count,
        provenance="fitted" if behind.count else "specification",
        source=source if behind.count else PRIOR,
        date=behind.date,
    )
