from __future__ import annotations

import pytest

from poolwise.errors import TableError
from poolwise.tables import efficiencies

ROW = """
[[training]]
term = "compute"
value = 0.6
count = 12
provenance = "fitted"
source = "a table"
date = "2024-05/2025-11-30"
spread = 0.1
"""


def test_a_table_is_named_by_its_phase() -> None:
    (row,) = efficiencies.parse("mine.toml", ROW)
    assert (row.phase, row.term, row.scope, row.format) == ("training", "compute", "*", "*")


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("0.6", "-0.6", "compute, value: Input should be greater than or equal to 0"),
        ('"fitted"', '"guessed"', "compute, provenance: Input should be 'measured'"),
        ("count", "rows", "compute, count: Field required"),
        ("[[training]]", "[[training", "mine.toml: Expected"),
        ('"a table"', '""', "compute, source: String should have at least 1 character"),
        ("date =", "day =", "compute, date: Field required"),
        ("2024-05/2025-11-30", "last spring", "compute, date: String should match pattern"),
        ("spread = 0.1\n", "", "compute, spread: Field required"),
        ("spread = 0.1", "spread = 0.0", "compute, : Value error, spread is 0, but 12 measured"),
    ],
)
def test_a_malformed_row_is_refused(old: str, new: str, sentence: str) -> None:
    with pytest.raises(TableError, match=sentence.replace("(", r"\(")):
        efficiencies.parse("mine.toml", ROW.replace(old, new))


def test_every_shipped_row_says_where_it_comes_from() -> None:
    rows = efficiencies.load()
    assert all(row.source for row in rows)
    assert all(row.count > 0 for row in rows if row.provenance != "specification")


EXACT = ("architecture_years", "newest_software_years", "free_memory_fraction")
"""Terms that are dates, or what an engine is defined by."""


def test_only_what_is_exact_by_definition_has_no_spread() -> None:
    exact = [row for row in efficiencies.load() if not row.spread]
    assert all(row.provenance == "specification" for row in exact)
    others = [row for row in exact if row.value not in (0.0, 1.0) and row.term not in EXACT]
    assert not others


SHARED = ("_ratio", "seconds", "products", "experts")
"""Ends of terms whose spread is that of predictions: many accelerators or formats share one."""


def test_spreads_are_of_each_constant_and_not_one_for_all() -> None:
    for phase in efficiencies.PHASES:
        fitted = [row for row in efficiencies.load() if row.phase == phase and row.count]
        spreads = [row.spread for row in fitted if not row.term.endswith(SHARED)]
        assert len(set(spreads)) > len(spreads) / 2
