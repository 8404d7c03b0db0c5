"""``python -m bench.model`` says what it cannot read, and scores the rest."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from bench.model.__main__ import main
from bench.model.regression import SAMPLE


@pytest.fixture
def scored(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """The document of a folder, and what was said beside it."""

    def run(folder: Path) -> tuple[dict[str, Any], str]:
        monkeypatch.setattr(sys, "argv", ["bench.model", "--data", str(folder), "--json"])
        assert main() == 0
        written = capsys.readouterr()
        return json.loads(written.out), written.err

    return run


def copied(folder: Path, table: str) -> None:
    shutil.copy(SAMPLE / f"{table}.csv", folder)


def test_a_mark_of_the_encoding_changes_no_score(tmp_path: Path, scored: Any) -> None:
    copied(tmp_path, "serve_measured")
    plain, _ = scored(tmp_path)
    path = tmp_path / "serve_measured.csv"
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    marked, said = scored(tmp_path)
    assert marked == plain
    assert said == ""
    assert "unreadable" not in plain


def test_a_table_that_cannot_be_read_is_told_and_stops_no_other(
    tmp_path: Path, scored: Any
) -> None:
    copied(tmp_path, "collectives_measured")
    broken = tmp_path / "serve_measured.csv.gz"
    broken.write_bytes(b"no archive")
    found, said = scored(tmp_path)
    assert found["scores"]["collectives"]["predicted"] > 0
    assert list(found["unreadable"]) == ["serve_measured"]
    assert said == found["unreadable"]["serve_measured"] + "\n"
    assert said.startswith(f"{broken}: ")


def test_a_table_without_a_row_is_told_and_is_no_error(tmp_path: Path, scored: Any) -> None:
    copied(tmp_path, "collectives_measured")
    (tmp_path / "serve_measured.csv").write_text("row_id,model,gpu\n")
    found, said = scored(tmp_path)
    assert list(found["scores"]) == ["collectives"]
    assert said == f"{tmp_path}: serve_measured has no row below its header\n"


@pytest.mark.parametrize("what", ["nowhere", "file", "empty", "broken"])
def test_nothing_to_score_is_an_error(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    what: str,
) -> None:
    folder = tmp_path / what
    if what == "file":
        folder.write_text("row_id\n")
    elif what != "nowhere":
        folder.mkdir()
    if what == "broken":
        (folder / "train_measured.csv.gz").write_bytes(b"no archive")
    monkeypatch.setattr(sys, "argv", ["bench.model", "--data", str(folder), "--json"])
    assert main() == 2
    written = capsys.readouterr()
    assert written.out == ""
    assert str(folder) in written.err.splitlines()[-1]
