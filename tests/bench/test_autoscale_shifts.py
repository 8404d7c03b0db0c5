"""Requests that become others: as many come before the change as after it."""

import numpy as np
import pytest

from bench.autoscale import shifts
from bench.autoscale.shifts import CHANGE_SECONDS, SECONDS, SHIFTS


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shifts, "SECONDS", 1200.0)
    monkeypatch.setattr(shifts, "CHANGE_SECONDS", 600.0)
    monkeypatch.setattr(shifts, "HEAVIER_REPLICAS", 2.0)
    monkeypatch.setattr(shifts, "SEEDS", (3,))


@pytest.mark.parametrize("shift", list(SHIFTS)[-1:])
def test_lengths_change_and_the_rate_does_not(shift: str):
    scene, needed = shifts.scene(shift, seed=0)
    requests = scene.trace.requests
    later = requests.arrival_seconds >= CHANGE_SECONDS
    assert later.mean() == pytest.approx(1.0 - CHANGE_SECONDS / SECONDS, abs=0.02)
    assert max(needed) == pytest.approx(shifts.HEAVIER_REPLICAS)
    for kind, seen in zip(SHIFTS[shift], (~later, later), strict=True):
        assert requests.input_tokens[seen].mean() == pytest.approx(kind[0], rel=0.05)
        assert requests.output_tokens[seen].mean() == pytest.approx(kind[1], rel=0.05)
    assert np.diff(requests.arrival_seconds).min() >= 0.0


@pytest.mark.usefixtures("short")
def test_a_change_is_a_row():
    found = shifts.replayed("prompts 1500 to 3000")
    *_, row = shifts.text([found]).splitlines()
    assert row.startswith("| prompts 1500 to 3000 | ")
    assert 0.5 < found.ours[0].attainment <= 1.0
    assert found.best_static.attainment > 0.97
