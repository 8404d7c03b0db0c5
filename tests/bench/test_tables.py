"""Tables as other hands write them are read as ours; a file that is none is told in a sentence."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from bench.columns import COLUMNS
from bench.files import BadInput
from bench.model.regression import SAMPLE
from bench.model.targets import TARGETS
from bench.tables import Row, number, rate, read, whole
from poolwise.tables import load

TABLES = [target.table for target in TARGETS]
by_table = pytest.mark.parametrize("table", TABLES)


def written(folder: Path, table: str, rows: Iterable[Row], columns: Sequence[str] = ()) -> Path:
    several = list(rows)
    path = folder / f"{table}.csv"
    with path.open("w", encoding="utf-8", newline="") as lines:
        into = csv.DictWriter(lines, columns or list(several[0]), extrasaction="ignore")
        into.writeheader()
        into.writerows(several)
    return path


@by_table
def test_a_mark_of_the_encoding_is_no_part_of_the_first_column(tmp_path: Path, table: str) -> None:
    plain = (SAMPLE / f"{table}.csv").read_bytes()
    (tmp_path / f"{table}.csv").write_bytes(b"\xef\xbb\xbf" + plain)
    assert read(tmp_path, table) == read(SAMPLE, table)
    (tmp_path / f"{table}.csv.gz").write_bytes(gzip.compress(b"\xef\xbb\xbf" + plain, mtime=0))
    assert read(tmp_path, table) == read(SAMPLE, table)


@by_table
def test_the_sample_has_all_columns(table: str) -> None:
    for row in read(SAMPLE, table):
        assert tuple(row) == COLUMNS[table]


@by_table
def test_columns_that_a_file_lacks_are_empty(tmp_path: Path, table: str) -> None:
    written(tmp_path, table, read(SAMPLE, table), ["row_id"])
    for row in read(tmp_path, table):
        assert tuple(row) == COLUMNS[table]
        assert row["row_id"]
        assert not any(cell for column, cell in row.items() if column != "row_id")


def test_short_and_long_rows_keep_the_cells_that_have_a_column(tmp_path: Path) -> None:
    (tmp_path / "kernels_measured.csv").write_text("row_id, GPU ,m\nK1\nK2,L4, 7 ,8,9\n")
    short, long = read(tmp_path, "kernels_measured")
    assert (short["row_id"], short["gpu"], short["m"]) == ("K1", "", "")
    assert (long["row_id"], long["gpu"], long["m"]) == ("K2", "L4", "7")


def test_bytes_that_are_no_text_spoil_their_cell_alone(tmp_path: Path) -> None:
    lines = b"row_id,gpu,m\nK\xff1,L4,1\nK2,L\xff4,2\nK3,L4,3\n"
    (tmp_path / "kernels_measured.csv").write_bytes(lines)
    first, second, third = read(tmp_path, "kernels_measured")
    assert first["row_id"] == "", "it may be the row of a fit whose identity nobody can read"
    assert second["gpu"] not in {row.name for row in load().accelerators}
    assert (third["row_id"], third["gpu"], third["m"]) == ("K3", "L4", "3")


@pytest.mark.parametrize(
    ("ending", "content"),
    [
        ("csv", b""),
        ("csv", b"a,b\n1,2\n"),
        pytest.param("csv", b"vendor,accelerator,source\nNVIDIA,H100,a page\n", id="accelerators"),
        ("csv", "row_id,gpu\n".encode("utf-16")),
        ("csv.gz", b""),
        ("csv.gz", b"no archive"),
        ("csv.gz", gzip.compress(b"row_id,gpu\n" * 999, mtime=0)[:40]),
    ],
)
def test_what_is_no_table_is_told_with_its_file(
    tmp_path: Path, ending: str, content: bytes
) -> None:
    path = tmp_path / f"serve_measured.{ending}"
    path.write_bytes(content)
    with pytest.raises(BadInput, match=f"^{path}: .+"):
        read(tmp_path, "serve_measured")


def test_names_have_the_spelling_of_the_shipped_tables(tmp_path: Path) -> None:
    known = next(row for row in load().accelerators if row.aliases)
    model = next(row for row in load().models if row.aliases)
    spelt = [
        (known.name.lower(), model.aliases[0].upper()),
        (known.aliases[0], f" {model.name} "),
        ("Future Chip", "Mystery-7B"),
        ("FUTURE-CHIP", "mystery 7b"),
        ("", ""),
    ]
    rows = [{"row_id": str(at), "gpu": gpu, "model": name} for at, (gpu, name) in enumerate(spelt)]
    written(tmp_path, "train_measured", rows)
    ours, strangers = (known.name, model.name), ("Future Chip", "Mystery-7B")
    found = [(row["gpu"], row["model"]) for row in read(tmp_path, "train_measured")]
    assert found == [ours, ours, strangers, strangers, ("", "")]


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("NVIDIA H100 80GB HBM3", "H100-SXM5-80GB"),
        ("nvidia-b200", "B200-SXM-180GB"),
        ("Tesla-T4", "T4"),
        ("AMD Instinct MI300X", "MI300X"),
        ("H100", "H100"),
        ("H100 SXM", "H100-SXM5-80GB"),
        ("A100-SXM4", "A100-SXM4"),
    ],
)
def test_an_accelerator_has_the_name_that_its_driver_or_label_means_alone(
    tmp_path: Path, name: str, known: str
) -> None:
    written(tmp_path, "kernels_measured", [{"row_id": "K1", "gpu": name}])
    assert read(tmp_path, "kernels_measured")[0]["gpu"] == known


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("RedHatAI/Llama-3.3-70B-Instruct-FP8-dynamic", "Llama-3.1-70B"),
        ("nvidia/DeepSeek-R1-NVFP4-v2", "DeepSeek-V3"),
        ("Qwen/Qwen3-32B-FP8", "Qwen3-32B"),
        ("neuralmagic/Meta-Llama-3.1-8B-Instruct-quantized.w8a8", "Llama-3.1-8B"),
        ("Mystery-7B-FP8", "Mystery-7B-FP8"),
    ],
)
def test_a_checkpoint_in_fewer_bits_has_the_name_of_its_model(
    tmp_path: Path, name: str, known: str
) -> None:
    written(tmp_path, "serve_measured", [{"row_id": "S1", "model": name}])
    assert read(tmp_path, "serve_measured")[0]["model"] == known


def test_fixed_words_are_read_in_small_letters(tmp_path: Path) -> None:
    rows = [{"row_id": "S1", "mode": "Online-AGG", "weight_precision": "FP8", "engine": "vLLM"}]
    written(tmp_path, "serve_measured", rows)
    row = read(tmp_path, "serve_measured")[0]
    assert (row["mode"], row["weight_precision"], row["engine"]) == ("online-agg", "fp8", "vllm")


@pytest.mark.parametrize(
    ("cell", "as_number", "as_whole", "as_rate"),
    [
        ("7", 7.0, 7, 7.0),
        ("inf", None, None, float("inf")),
        ("-inf", None, None, None),
        ("nan", None, None, None),
        ("-2", -2.0, None, None),
        ("512 max", None, None, None),
        ("", None, None, None),
    ],
)
def test_a_cell_is_a_finite_number_or_none_and_a_rate_may_be_all_at_once(
    cell: str, as_number: float | None, as_whole: int | None, as_rate: float | None
) -> None:
    row = {"cell": cell}
    assert (number(row, "cell"), whole(row, "cell"), rate(row, "cell")) == (
        as_number, as_whole, as_rate,
    )  # fmt: skip


@by_table
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_any_delimiter_quotes_and_ends_of_lines_are_read(
    tmp_path: Path, table: str, delimiter: str
) -> None:
    lines = io.StringIO(newline="")
    rows = read(SAMPLE, table)
    into = csv.DictWriter(lines, list(rows[0]), delimiter=delimiter, quoting=csv.QUOTE_ALL)
    into.writeheader()
    into.writerows(rows)
    assert "\r\n" in lines.getvalue()
    (tmp_path / f"{table}.csv.gz").write_text(lines.getvalue(), encoding="utf-8", newline="")
    assert read(tmp_path, table) == rows
