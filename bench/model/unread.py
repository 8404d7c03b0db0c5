"""Figures that a table states and nobody can score: text (``n/a``, ``1,234``, ``~5``), 0, ``inf``.

They are not guessed at, and not lost: the document counts them beside what is not predicted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from bench.columns import FIGURES
from bench.tables import Row, figure


def unread(rows: Iterable[Row]) -> dict[str, int]:
    """How many figures, by column with the first of them, the most frequent first."""
    counts: Counter[str] = Counter()
    first: dict[str, str] = {}
    for row in rows:
        for column in columns(row):
            counts[column] += 1
            first.setdefault(column, row[column])
    return {
        f"{column} is {first[column]!r}, must be a number above 0": count
        for column, count in counts.most_common()
    }


def columns(row: Row) -> list[str]:
    """Of the figures of one row that cannot be read."""
    return [each for each in FIGURES if row.get(each) and figure(row, each) is None]
