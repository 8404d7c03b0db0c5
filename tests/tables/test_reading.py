from __future__ import annotations

import pytest

from poolwise.errors import TableError
from poolwise.tables.reading import Figure, Names, Row, Table, fold, parse_rows


class Part(Row):
    weight_grams: Figure
    makers: Names = ()


def parts(*lines: str) -> tuple[Part, ...]:
    return parse_rows("parts.csv", ["name,aliases,weight_grams,makers", *lines], Part)


def test_cells_become_figures_and_lists() -> None:
    (bolt,) = parts("Bolt,M6 bolt;m6,1.5e1,Acme; Ajax")
    assert (bolt.weight_grams, bolt.makers) == (15.0, ("Acme", "Ajax"))


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("Bolt,,,Acme", "line 2, weight_grams: Field required"),
        ("Bolt,,0,", "weight_grams: Input should be greater than 0"),
        ("Bolt,,-1,", "weight_grams: Input should be greater than 0"),
        ("Bolt,,inf,", "weight_grams: Input should be a finite number"),
        ("Bolt,,heavy,", "weight_grams: Input should be a valid number"),
        (",,1,", "line 2, name: Field required"),
        ("Bolt,,1", "more or fewer cells"),
        ("Bolt,,1,Acme,extra", "more or fewer cells"),
        ('Bolt,,1,"Acme', "unexpected end of data"),
    ],
    ids=str,
)
def test_a_bad_line_is_refused_with_its_place(line: str, sentence: str) -> None:
    with pytest.raises(TableError, match=sentence):
        parts(line)


def test_an_unknown_column_is_refused() -> None:
    with pytest.raises(TableError, match="colour: Extra inputs are not permitted"):
        parse_rows("parts.csv", ["name,weight_grams,colour", "Bolt,1,red"], Part)


def test_rows_are_found_in_any_case_and_by_alias() -> None:
    table = Table("parts.csv", parts("Hex Bolt,M6 bolt,1,"))
    assert [table.find(name) for name in ("hex-bolt", "HEX_BOLT", "m6 Bolt")] == [*table] * 3
    assert table.find("nut") is None


def test_a_name_of_two_rows_is_refused() -> None:
    with pytest.raises(TableError, match="'bolt' names both Bolt and Screw"):
        Table("parts.csv", parts("Bolt,,1,", "Screw,bolt,1,"))


@pytest.mark.parametrize("name", ["NVIDIA-H100-80GB-HBM3", "a b_c", "p5.48xlarge", "x/y"])
def test_folding_twice_changes_nothing(name: str) -> None:
    assert fold(fold(name)) == fold(name) == fold(name.upper())
