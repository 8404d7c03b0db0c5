"""Constants are fitted on rows that are not reserved, and on nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.files import BadInput
from bench.fit.open_rows import open_rows

TABLE = "collectives_measured"


def _written(folder: Path, *splits: str) -> Path:
    lines = ["row_id,split", *(f"C{at},{split}" for at, split in enumerate(splits))]
    (folder / f"{TABLE}.csv").write_text("\n".join(lines))
    return folder


def test_reserved_rows_are_left_out(tmp_path: Path) -> None:
    found = open_rows(_written(tmp_path, "", "reserved", "open"), TABLE)
    assert [row["row_id"] for row in found] == ["C0", "C2"]


def test_a_table_of_reserved_rows_alone_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=f"has no row of {TABLE} that constants can be fitted on"):
        open_rows(_written(tmp_path, "reserved"), TABLE)
