"""How soon ours is back after a step: one case, and the table of several."""

from pathlib import Path

import pytest

from bench.autoscale import steps
from bench.autoscale.steps import Case, Found


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "chat.csv"
    rows = [f"{second},{300 + 7 * second % 400},{150 + second % 100}" for second in range(200)]
    path.write_text("\n".join(["arrival_s,input_tokens,output_tokens", *rows]), encoding="utf-8")
    return tmp_path


def test_a_step_is_met_a_start_after_it_was_seen(data: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(steps, "BEFORE_SECONDS", 600.0)
    monkeypatch.setattr(steps, "AFTER_SECONDS", 400.0)
    small, large = (steps.recovered(Case(data, "chat", 1, after, seed=0)) for after in (1, 4))
    assert small.seconds_to_recover == 0.0
    assert large.seconds_to_recover is not None
    assert 60.0 <= large.seconds_to_recover <= 200.0
    assert large.average_replicas > small.average_replicas


def test_the_table_has_the_median_and_the_worst(data: Path):
    case = Case(data, "chat", 4, 8, 0)
    found = [Found(case, seconds, 6.0) for seconds in (75.0, 60.0, None)]
    assert steps.text(found).splitlines()[-1] == "| chat | 4 to 8 | 75 | never |"
    found = [Found(case, seconds, 6.0) for seconds in (75.0, 60.0, 90.0)]
    assert steps.text(found).splitlines()[-1] == "| chat | 4 to 8 | 75 | 90 |"
