"""Other engines and targets, and targets inside a bucket."""

from pathlib import Path

import pytest

from bench.autoscale import between, others
from bench.autoscale.grid import Case
from bench.autoscale.scene import Routing
from tests.bench.autoscale_cases import with_steady_trace


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return with_steady_trace(tmp_path)


def test_each_circumstance_is_replayed_by_both(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(others, "CIRCUMSTANCES", others.CIRCUMSTANCES[:2])
    tight, inside = others.run(data, 1, {"steady": 2.0})
    assert (tight.circumstance, inside.circumstance) == ("1 s and 50 ms", "3 s and 60 ms")
    assert tight.ours.requests == tight.static.requests < inside.ours.requests
    assert tight.static.attainment >= tight.aim
    row = others.text([tight]).splitlines()[-1]
    assert row.startswith("| 1 s and 50 ms | steady | 99.00 | ")
    assert row.endswith(f"| {tight.static.replica_hours:.2f} |")


def test_each_is_of_its_own_engine_and_router(data: Path) -> None:
    scenes = [others.scene_of(data, each, "steady", 2.0) for each in others.CIRCUMSTANCES]
    assert len({each.engine.costs for each in scenes}) == 3
    assert sum(each.routing is Routing.SERVICE for each in scenes) == 1
    assert len({each.targets for each in scenes}) == 7


def test_late_ones_are_estimated_inside_buckets(data: Path) -> None:
    rows = between.run(data, 1, [Case("steady", 3.0)])
    assert rows
    for row in rows:
        straight, ours = map(float, row.strip("| ").split(" | ")[-2:])
        assert abs(ours - 1.0) < abs(straight - 1.0)
    assert between.text(rows).splitlines()[2:] == rows
