"""When rows were measured, as far as their sources say: ISO dates, or ``OLDEST/NEWEST``.

A release (``v25.04.02``, ``26.06 NeMo``) is of its month. A row without a date was measured before
the snapshot that it was read from, and has the date of that. A row that has neither is left out of
the span of those that have.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache

from bench.tables import Row

SNAPSHOTS: Mapping[str, str] = {"095f58a": "2026-08-21"}
"""Commits of sources whose rows have no date: aiconfigurator's tables of kernels, and some runs of
its silicon sample."""
MONTHS = 12
BETWEEN = "/"


def date_of(row: Row) -> str:
    """Of one row; empty where nothing is known."""
    return _date(row.get("source_date", ""), row.get("source_ref", ""))


def span(dates: Iterable[str]) -> str:
    """From the oldest to the newest; one date if they are the same, empty if there is none."""
    known = {end for date in set(dates) for end in date.split(BETWEEN) if end}
    return BETWEEN.join(dict.fromkeys((min(known), max(known)))) if known else ""


def span_of(rows: Iterable[Row]) -> str:
    """Of the dates of these rows."""
    return span(map(date_of, rows))


@cache
def _date(words: str, reference: str) -> str:
    release = re.match(r"v?(\d\d)\.(\d\d)\b", words)
    if release:
        return f"20{release[1]}-{release[2]}"
    ends = re.match(r"(20\d\d(?:-\d\d){0,2})(?:\.\.(20\d\d(?:-\d\d){0,2}))?", words)
    if ends:
        return span(_valid(each) for each in ends.groups() if each)
    snapshot = re.search(r"@(\w+)", reference)
    return SNAPSHOTS.get(snapshot[1], "") if snapshot else ""


def _valid(date: str) -> str:
    """``2024-25`` is two years."""
    year, *rest = date.split("-")
    if rest and int(rest[0]) > MONTHS:
        return span((year, f"{year[:2]}{rest[0]}"))
    return date
