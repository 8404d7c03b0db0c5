from __future__ import annotations

import pytest

from bench.dates import date_of, span, span_of


@pytest.mark.parametrize(
    ("words", "reference", "date"),
    [
        ("2026-03-27", "", "2026-03-27"),
        ("2024-09", "", "2024-09"),
        ("2026", "", "2026"),
        ("v25.04.02", "a.md @tag v25.04.02", "2025-04"),
        ("26.06 Ne", "", "2026-06"),
        ("2023-11..2024 (repo state 2025-07-21)", "", "2023-11/2024"),
        ("2024-25", "", "2024/2025"),
        ("", "gemm.parquet @095f58a", "2026-08-21"),
        ("", "gemm.parquet @0000000", ""),
        ("soon", "", ""),
    ],
)
def test_a_row_has_the_date_that_its_source_states(words: str, reference: str, date: str) -> None:
    assert date_of({"source_date": words, "source_ref": reference}) == date


def test_a_span_is_from_the_oldest_to_the_newest() -> None:
    assert span(["2024-05", "2023-11/2024", "", "2024-12-01"]) == "2023-11/2024-12-01"
    assert span(["2024-05", "2024-05"]) == "2024-05"
    assert span([""]) == ""


def test_a_row_without_a_date_is_no_part_of_a_span() -> None:
    assert span_of([{"source_date": "2025-01"}, {"source_date": ""}]) == "2025-01"
