"""Programs of bench/ that are pointed at data which they cannot use end with one sentence."""

from __future__ import annotations

import gzip
import importlib
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import bench
from bench.autoscale import grid, page, splitwise
from bench.autoscale.rows import Rows
from bench.columns import COLUMNS
from bench.model.regression import SAMPLE

ROOT = Path(bench.__file__).parent
TABLES = {name: ",".join(columns) for name, columns in COLUMNS.items()}
TRACES = {case.trace for case, _ in grid.everything()}
PLACEMENT = {"bench.placement.__main__", "bench.placement.page"}
"""They go on to the other files, which takes minutes (tests/bench/test_placement_files.py)."""


def _is_program(source: str) -> bool:
    return "DEFAULT_FOLDER" in source or "= arguments(" in source


PROGRAMS = sorted(
    ".".join(("bench", *path.relative_to(ROOT).with_suffix("").parts))
    for path in ROOT.rglob("*.py")
    if '__name__ == "__main__"' in (source := path.read_text()) and _is_program(source)
)


@pytest.fixture
def ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[[str, Path], tuple[int, str]]:
    """Status and sentence of a program on a folder; nothing is written outside of it."""

    def run(program: str, folder: Path) -> tuple[int, str]:
        words = [program, "--data", str(folder)]
        if program.startswith("bench.autoscale") and program.endswith(("page", "borrowed")):
            words += ["--results", str(tmp_path / "results.jsonl")]
        if program.endswith("aiconfigurator"):
            words += ["--out", str(tmp_path / "rival.csv")]
        monkeypatch.setattr(sys, "argv", words)
        status = importlib.import_module(program).main()
        return status, capsys.readouterr().err

    return run


def _one_sentence(said: str) -> bool:
    return said.count("\n") == 1 and not re.search("Traceback|Error", said)


def test_all_programs_are_tried() -> None:
    assert {"bench.model.__main__", "bench.fit.kernels", "bench.autoscale.hours"} <= set(PROGRAMS)


@pytest.mark.parametrize("program", PROGRAMS)
def test_what_is_no_folder(
    program: str, tmp_path: Path, ended: Callable[[str, Path], tuple[int, str]]
) -> None:
    (tmp_path / "file").write_text("row_id\n")
    for place in ("file", "nowhere"):
        status, said = ended(program, tmp_path / place)
        assert status == 2
        assert _one_sentence(said)
        assert said == f"{tmp_path / place}: is not a folder\n" or program.endswith("borrowed")


@pytest.mark.parametrize("program", [each for each in PROGRAMS if each not in PLACEMENT])
def test_a_folder_of_nothing(
    program: str, tmp_path: Path, ended: Callable[[str, Path], tuple[int, str]]
) -> None:
    status, said = ended(program, tmp_path)
    assert status == 2
    assert _one_sentence(said)
    assert str(tmp_path) in said


@pytest.mark.parametrize("program", [each for each in PROGRAMS if each not in PLACEMENT])
def test_files_that_are_torn(
    program: str, tmp_path: Path, ended: Callable[[str, Path], tuple[int, str]]
) -> None:
    columns = TABLES | dict.fromkeys(TRACES, "arrival_s,input_tokens,output_tokens")
    for name in (*columns, splitwise.TABLE, "alibaba2026", "gavel_colocation", "sia_step_times"):
        header = columns.get(name, "a,b")
        lines = "\n".join([header, *(",".join(map(str, range(row))) for row in range(200))])
        torn = gzip.compress(lines.encode())[:-40]
        (tmp_path / f"{name}.csv.gz").write_bytes(torn)
    status, said = ended(program, tmp_path)
    assert status == 2
    assert str(tmp_path) in said.splitlines()[-1]
    assert "Traceback" not in said


@pytest.mark.parametrize("program", [each for each in PROGRAMS if ".fit." in each])
def test_tables_without_a_row_to_fit_on(
    program: str, tmp_path: Path, ended: Callable[[str, Path], tuple[int, str]]
) -> None:
    for name, header in TABLES.items():
        (tmp_path / f"{name}.csv").write_text(f"{header}\n")
    status, said = ended(program, tmp_path)
    assert status == 2
    assert _one_sentence(said)
    assert "that constants can be fitted on" in said


@pytest.mark.parametrize("program", ["bench.fit.residuals", "bench.fit.training"])
def test_tables_of_one_row_are_fitted_on(
    program: str, tmp_path: Path, ended: Callable[[str, Path], tuple[int, str]]
) -> None:
    """All runs of one fold, of one figure and of one kind of model."""
    for name in TABLES:
        header, row, *_ = (SAMPLE / f"{name}.csv").read_text().splitlines()
        (tmp_path / f"{name}.csv").write_text(f"{header}\n{row}\n")
    assert ended(program, tmp_path) == (0, "")


def test_kept_rows_are_not_forgotten_for_traces_that_are_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = Rows(tmp_path / "results.rows.jsonl")
    rows.found("steps", "ours", lambda: "kept")
    files = ["--data", str(tmp_path), "--results", str(tmp_path / "results.jsonl")]
    monkeypatch.setattr(sys, "argv", ["page", *files, "--again", "ours"])
    assert page.main() == 2
    assert rows.found("steps", "ours", lambda: "anew") == "kept"


def test_a_page_of_no_row_is_not_written(
    tmp_path: Path, ended: Callable[[str, Path], tuple[int, str]]
) -> None:
    for name, header in TABLES.items():
        (tmp_path / f"{name}.csv").write_text(f"{header}\n")
    assert ended("bench.model.page", tmp_path) == (2, f"{tmp_path}: its tables have no row\n")


def test_memory_of_runs_without_a_peak_is_told_of_their_fit_alone(
    tmp_path: Path,
    ended: Callable[[str, Path], tuple[int, str]],
) -> None:
    (tmp_path / "train_measured.csv").write_text(f"{TABLES['train_measured']}\n")
    assert ended("bench.memory", tmp_path) == (0, "")
