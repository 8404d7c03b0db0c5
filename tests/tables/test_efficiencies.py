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
    ],
)
def test_a_malformed_row_is_refused(old: str, new: str, sentence: str) -> None:
    with pytest.raises(TableError, match=sentence.replace("(", r"\(")):
        efficiencies.parse("mine.toml", ROW.replace(old, new))


def test_every_shipped_row_says_where_it_comes_from() -> None:
    rows = efficiencies.load()
    assert all(row.source for row in rows)
    assert all(row.count > 0 for row in rows if row.provenance != "specification")
