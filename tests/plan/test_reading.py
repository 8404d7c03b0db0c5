"""What people and other programs write into objects reads as absent where it cannot be used."""

import pytest

from poolwise.plan.reading import moment_of, number


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("9999-12-31T23:59:59Z", id="nothing can be added to it"),
        pytest.param("9999-12-31T23:59:59-14:00", id="another year in UTC"),
        pytest.param("0001-01-01T00:00:00+14:00", id="before all calendars in UTC"),
        pytest.param("2026-11-21T00:00:00", id="no zone"),
        pytest.param(7, id="no text"),
    ],
)
def test_a_moment_that_nobody_can_reckon_with_is_none(text):
    assert moment_of(text) is None
    assert moment_of("2026-11-21T00:00:00Z") is not None


BEYOND_A_FLOAT = pytest.param(10**400, id="beyond a float")


@pytest.mark.parametrize(
    "value", [1e308, -1e308, float("inf"), float("nan"), BEYOND_A_FLOAT, True, "1"]
)
def test_a_figure_that_nobody_can_reckon_with_is_none(value):
    assert number({"seconds": value}, "seconds") is None
    assert number({"seconds": 1e21}, "seconds") == 1e21
