"""How numbers read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poolwise.plan import wording


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (wording.gib(91.2 * 2**30), "91.2 GiB"),
        (wording.gib(50 * 2**20), "50 MiB"),
        (wording.money(36_412), "$36,412"),
        (wording.money(38.2), "$38.20"),
        (wording.money(0.0312), "$0.0312"),
        (wording.money(38.2, "CHF"), "38.20 CHF"),
        (wording.duration(0.35), "350 ms"),
        (wording.duration(0.00007), "70 µs"),
        (wording.duration(125.04), "125 s"),
        (wording.duration(1800), "30 min"),
        (wording.duration(83.2 * 3600), "83.2 h"),
        (wording.duration(40 * 86400), "40 d"),
        (wording.duration(700 * 86400), "700 d"),
        (wording.duration(1100 * 86400), "3.01 years"),
        (wording.duration(float("inf")), "for ever"),
        (wording.percent(0.74), "74 %"),
        (wording.percent(0.071), "7.1 %"),
        (wording.percent(0.0004), "0.04 %"),
        (wording.percent(0), "0.0 %"),
        (wording.change(-0.06), "-6.0 %"),
        (wording.quantity(67_100), "67.1k"),
        (wording.quantity(20e9), "20G"),
        (wording.quantity(12.5), "12.5"),
        (wording.money(0.0), "$0.00"),
        (wording.money(0.00006), "$0.0001"),
        (wording.money(0.00001), "less than $0.0001"),
        (wording.plural(1, "node"), "1 node"),
        (wording.apart(91.2, 44.0), ("91.2", "44.0")),
        (wording.apart(23.24, 23.18), ("23.24", "23.18")),
        (wording.apart(12_400.6, 23.2), ("12,400.6", "23.2")),
        (wording.apart(7.0, 7.0), ("7.000000", "7.000000")),
        (wording.plural(8, "node"), "8 nodes"),
        (wording.are_free(1), "1 is free"),
        (wording.are_free(1, 4), "1 of 4 is free"),
        (wording.are_free(0, 4), "0 of 4 are free"),
    ],
)
def test_reads_as(shown, expected):
    assert shown == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [(125.0374, 125.0), (67_123.4, 67_120.0), (0.000123456, 0.0001235), (64, 64), (0.0, 0.0)],
)
def test_four_significant_digits(value, expected):
    assert wording.significant(value) == expected


def test_an_integer_stays_one():
    assert isinstance(wording.significant(123_456), int)


@given(st.floats(min_value=-1e300, max_value=1e300))
def test_rounding_twice_changes_nothing(value):
    once = wording.significant(value)
    assert wording.significant(once) == once


@pytest.mark.parametrize(
    "text",
    ["a\nb", "a\x1b[31mb", "a\u202eb", "a\x00b"],
    ids=["newline", "ansi", "right-to-left", "nul"],
)
def test_foreign_text_is_one_harmless_line(text):
    assert not set(wording.sentence(text)) & set("\n\x1b\u202e\x00")


def test_foreign_text_is_bounded():
    assert len(wording.sentence("x" * 10_000)) == wording.SENTENCE_LIMIT
