"""Loads that follow a curve: as many requests come as it says, and both are replayed."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from bench.autoscale import courses, drawn
from bench.autoscale.courses import COURSES, PEAK_REPLICAS, SECONDS


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "chat.csv"
    rows = [f"{second},{300 + 7 * second % 400},{150 + second % 100}" for second in range(200)]
    path.write_text("\n".join(["arrival_s,input_tokens,output_tokens", *rows]), encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("course", COURSES)
def test_as_many_come_as_the_course_says(data: Path, course: str):
    scene = courses.scene(data, "chat", course, seed=0)
    at_peak = PEAK_REPLICAS * drawn.per_second(scene)
    arrivals = scene.trace.requests.arrival_seconds
    assert (np.diff(arrivals) >= 0.0).all()
    edges = np.linspace(0.0, SECONDS, 16)
    came, _ = np.histogram(arrivals, edges)
    inside = np.linspace(0.0, SECONDS, 15001)
    share = COURSES[course](inside)
    expected = [share[(low <= inside) & (inside < high)].mean() for low, high in pairwise(edges)]
    assert came == pytest.approx(np.array(expected) * at_peak * SECONDS / 15.0, rel=0.06)
    assert share.max() <= 1.0 + 1e-9


def test_a_course_is_replayed_under_all(data: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(courses, "PEAK_REPLICAS", 2.0)
    monkeypatch.setattr(courses, "SECONDS", 1500.0)
    monkeypatch.setattr(courses, "SEEDS", (3,))
    found = courses.replayed(data, "chat", "level")
    assert found.ours[0].attainment > 0.95
    assert len(found.rivals) == len(courses.RIVALS)
    row = courses.text([found]).splitlines()[-1]
    assert row.startswith("| chat | level | ") and f"{found.rivals[0].replica_hours:.2f} |" in row
