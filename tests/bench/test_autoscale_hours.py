"""Hours beside those of the grid: each begins where it is said to."""

from pathlib import Path

import numpy as np
import pytest

from bench.autoscale import hours
from bench.autoscale.hours import Hour


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Nothing but a request each minute, until from 1 h on there are two each second."""
    draw = np.random.default_rng(0)
    arrivals = np.concatenate([np.arange(0.0, 3600.0, 60.0), 3600.0 + 0.5 * np.arange(7200)])
    lengths = draw.integers(200, 400, len(arrivals))
    rows = (f"{at},{tokens},{tokens}" for at, tokens in zip(arrivals, lengths, strict=True))
    text = "\n".join(["arrival_s,input_tokens,output_tokens", *rows])
    (tmp_path / "steady.csv").write_text(text)
    return tmp_path


def test_an_hour_is_replayed_from_where_it_begins(data):
    found = hours.replayed(data, Hour("steady", 1.0, 2.0))
    assert len(found.ours) == len(hours.SEEDS)
    assert min(each.requests for each in (*found.ours, found.static)) > 6000
    assert found.aim == pytest.approx(0.99)
    assert min(each.attainment for each in found.ours) > 0.95
    row = hours.text([found]).splitlines()[-1]
    assert row.startswith("| steady | 1 | 2 | 99.00 | ")
    assert f"{found.static.replica_hours:.2f} |" in row
