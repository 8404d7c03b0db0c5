"""What one pass leaves to the next."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from poolwise.plan.cluster import decide
from poolwise.plan.standing import Standing
from poolwise.settings import Settings
from tests.plan.cluster_given import NOW, h100, job, observed
from tests.plan.machines import CALIBRATION, TABLES


@pytest.mark.parametrize(
    ("last", "is_due"),
    [
        pytest.param(None, True, id="never-before"),
        pytest.param(1000.0, True, id="just-a-period-ago"),
        pytest.param(1000.5, False, id="lately"),
    ],
)
def test_the_optimiser_has_its_say_once_in_a_period(last, is_due):
    assert Standing(optimised=last).is_due(1060.0, 60.0) is is_due


def test_passes_in_between_leave_it_as_it_was():
    settings = Settings(optimise_seconds=60.0)
    seen = observed(h100(1), *(job(name, 8) for name in ("first", "second")))
    moments = []
    for seconds in (0, 59, 61, 100, 121):
        now = NOW + timedelta(seconds=seconds)
        found = decide(seen, TABLES, settings, CALIBRATION, now)
        moments.append((found.standing.optimised or 0.0) - NOW.timestamp())
        seen = replace(seen, standing=found.standing)
    assert moments == [0, 0, 61, 61, 121]
