"""Quantities as the API server stores them (its own examples, quantity_test.go)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poolwise.api.quantity import parse_quantity
from poolwise.plan.children.quantity import canonical, cores, size


@pytest.mark.parametrize(
    ("written", "stored"),
    [
        ("0", "0"),
        ("0n", "0"),
        ("1", "1"),
        ("1.5", "1500m"),
        ("1000m", "1"),
        ("2500m", "2500m"),
        ("1000000", "1M"),
        ("1500000", "1500k"),
        ("1024", "1024"),
        ("1Ki", "1Ki"),
        ("1024Ki", "1Mi"),
        ("1.5Gi", "1536Mi"),
        ("0.5Ki", "512"),
        ("8e3", "8e3"),
        ("12e2", "1200"),
        ("100G", "100G"),
        ("0.1n", "1n"),
    ],
)
def test_stored_form(written, stored):
    assert canonical(written) == stored


@given(
    st.decimals(min_value=0, max_value=10**6, places=3),
    st.sampled_from(["", "m", "k", "M", "Ki", "Mi", "Gi"]),
)
def test_value_stays_and_twice_is_once(number, suffix):
    once = canonical(f"{number:f}{suffix}")
    assert canonical(once) == once
    difference = parse_quantity(once) - parse_quantity(f"{number:f}{suffix}")
    assert 0 <= difference < 1


def test_cores_and_sizes():
    assert (cores(7.5), cores(2), cores(0.1)) == ("7500m", "2", "100m")
    assert (size(3 * 2**30), size(2**20 + 1)) == ("3Gi", "1048577")
