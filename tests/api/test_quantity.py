"""Quantities and durations as numbers, against the values that Kubernetes documents."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

import pytest

from poolwise.api.quantity import format_duration, parse_duration, parse_quantity


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("450G", 450 * 10**9),
        ("32Ki", 32 * 1024),
        ("1.5Gi", 3 * 2**29),
        ("100m", Decimal("0.1")),
        ("2u", Decimal("0.000002")),
        ("12e6", 12_000_000),
        ("12E6", 12_000_000),
        ("1E", 10**18),
        ("1Ei", 2**60),
        (".5", Decimal("0.5")),
        ("5.", 5),
        ("-3k", -3000),
        (40000, 40000),
        ("007", 7),
    ],
)
def test_a_quantity_is_a_number(text: str | int, number: int | Decimal) -> None:
    assert parse_quantity(text) == number


@pytest.mark.parametrize(
    "text", ["", "1 G", "G", "1gi", "1Kib", "NaN", "Inf", "0x10", "1e", "1_000", "١٢", "1e٢"]
)
def test_anything_else_is_none(text: str) -> None:
    with pytest.raises(ValueError, match="not a quantity such as"):
        parse_quantity(text)


@pytest.mark.parametrize("parse", [parse_quantity, parse_duration])
def test_what_is_repeated_of_a_long_value_is_bounded(
    parse: Callable[[str], object],
) -> None:
    with pytest.raises(ValueError, match="is not a") as found:
        parse("9" * 5000 + "x")
    assert len(str(found.value)) < 200


def test_a_quantity_keeps_all_its_digits() -> None:
    assert parse_quantity("9007199254740993") == 9007199254740993  # 2^53 + 1 is no float


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("500ms", 0.5), ("1h30m", 5400.0), ("1.5h", 5400.0), ("250us", 0.00025), ("10ns", 1e-8)],
)
def test_a_duration_is_seconds(text: str, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "5", "-5s", "P1D", "1d", "30m1h", "1h ", "1e9h", "9999999h"])
def test_other_texts_are_no_durations(text: str) -> None:
    with pytest.raises(ValueError, match="not a duration such as"):
        parse_duration(text)


@pytest.mark.parametrize("seconds", [1.0, 1800.0, 3600.0, 90.0, 0.25, 0.005, 86400.0])
def test_a_duration_is_written_as_it_would_be_read(seconds: float) -> None:
    assert parse_duration(format_duration(seconds)) == seconds
