"""Rivals for what ours costs: they cost no more, and the nearest are told."""

from pathlib import Path

import pytest

from bench.autoscale import equal_cost
from bench.autoscale.grid import Case
from bench.autoscale.policies.laws import LAWS
from tests.bench.autoscale_cases import with_steady_trace

STEADY = Case("steady", 3.0)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return with_steady_trace(tmp_path)


def test_a_rival_is_in_time_as_often_as_it_can_for_so_much(data: Path) -> None:
    name = "hpa_running"
    dear, cheap = (equal_cost.tuned(data, STEADY, hours, name) for hours in (1.4, 1.2))
    assert dear is not None
    assert cheap is not None
    assert cheap.outcome.replica_hours <= 1.2
    assert 1.2 < dear.outcome.replica_hours <= 1.4
    assert cheap.outcome.attainment < dear.outcome.attainment
    assert float(cheap.setting["target"]) > float(dear.setting["target"])  # requests per replica


def test_who_costs_more_whatever_is_tried_is_left_out(data: Path) -> None:
    assert equal_cost.tuned(data, STEADY, 0.01, "hpa_running") is None


def test_the_nearest_rivals_are_told(data: Path) -> None:
    (found,) = equal_cost.run(data, 1, [STEADY])
    assert {each.name for each in found.rivals} <= set(LAWS)
    most = found.ours.replica_hours * equal_cost.AS_DEAR
    assert all(each.outcome.replica_hours <= most for each in found.rivals)
    *_, first, second = equal_cost.text([found]).splitlines()
    best = sorted(found.rivals, key=lambda each: -each.outcome.attainment)
    assert f"| {best[0].name} | " in first
    assert f"| {best[1].name} | " in second
    whole = equal_cost.Found(STEADY, found.ours, ())
    assert "| all cost more |" in equal_cost.text([whole])
