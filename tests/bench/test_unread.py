"""Figures that are text are counted by column, and none of them is lost or stops the others."""

from __future__ import annotations

import csv
import json
import sys
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from bench.columns import COLUMNS, FIGURES
from bench.model.__main__ import main
from bench.model.regression import SAMPLE
from bench.model.targets import TARGETS
from bench.model.unread import unread
from bench.tables import Row, figure, read

TEXTS = ("n/a", "1,234", "12 ms", "~5", "inf", "-", "nan", "0", "-3", "1e-320", "1e308", "\u0665x")
TABLES = [target.table for target in TARGETS]


@pytest.mark.parametrize("cell", ["", *TEXTS])
def test_what_is_no_figure(cell: str) -> None:
    assert figure({"time_us": cell}, "time_us") is None


def test_figures_are_columns_of_the_tables() -> None:
    for table in TABLES:
        assert set(FIGURES) & set(COLUMNS[table])


def test_each_column_is_told_with_the_first_of_its_cells() -> None:
    rows = [{"time_us": cell, "latency_us": "-"} for cell in ("5", "~5", "", "n/a")]
    assert unread(rows) == {
        "latency_us is '-', must be a number above 0": 4,
        "time_us is '~5', must be a number above 0": 2,
    }


@pytest.mark.parametrize("table", TABLES)
def test_every_figure_that_is_text_is_counted(
    table: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows, texts, spoilt = read(SAMPLE, table), cycle(TEXTS), 0
    for row in rows[::2]:
        for column in FIGURES:
            if row.get(column):
                row[column] = next(texts)
                spoilt += 1
    _write(tmp_path / f"{table}.csv", rows)
    monkeypatch.setattr(sys, "argv", ["bench.model", "--data", str(tmp_path), "--json"])
    assert main() == 0
    found = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert sum(found["unread"].values()) == spoilt
    places = found["counted"]
    assert places.pop("rows") == len(rows) == sum(places.values())
    assert places["unread"] == len(rows[::2])
    _adds_up(found)


def test_sizes_beyond_reason_make_no_infinite_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    spoilt = {"size_bytes": "1e306", "time_us": "1e-11"}
    _write(
        tmp_path / "collectives_measured.csv",
        [row | spoilt for row in read(SAMPLE, "collectives_measured")],
    )
    monkeypatch.setattr(sys, "argv", ["bench.model", "--data", str(tmp_path), "--json"])
    assert main() == 0
    found = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert found["scores"]["collectives"]["predicted"] == 0
    assert found["unpredicted"]["no finite prediction"] > 0
    _adds_up(found)


def _adds_up(found: dict[str, Any]) -> None:
    """Eligible figures are predicted, or counted with a reason."""
    scores = found["scores"].values()
    missed = sum(each["eligible"] - each["predicted"] for each in scores)
    assert missed == sum(found["unpredicted"].values())


def _write(path: Path, rows: list[Row]) -> None:
    with path.open("w", encoding="utf-8", newline="") as lines:
        into = csv.DictWriter(lines, list(rows[0]))
        into.writeheader()
        into.writerows(rows)
