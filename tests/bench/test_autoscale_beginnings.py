"""Short stretches of a trace, from several beginnings."""

from pathlib import Path

import numpy as np
import pytest

from bench.autoscale import beginnings
from bench.autoscale.beginnings import Stretch


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A request each second, and two from 600 s on."""
    draw = np.random.default_rng(0)
    arrivals = np.concatenate([np.arange(0.0, 600.0), np.arange(600.0, 2400.0, 0.5)])
    lengths = draw.integers(200, 400, len(arrivals))
    rows = (f"{at},{tokens},{tokens}" for at, tokens in zip(arrivals, lengths, strict=True))
    (tmp_path / "steady.csv").write_text("\n".join(["arrival_s,input_tokens,output_tokens", *rows]))
    return tmp_path


def test_stretches_of_one_trace_and_peak_make_a_row(data):
    found = [beginnings.replayed(data, Stretch("steady", 2.0, each)) for each in (700.0, 1360.0)]
    assert all(each.is_in_time for each in found)
    row = beginnings.text(found).splitlines()[-1]
    assert row.startswith("| steady | 2 | 2 of 2 | ")
    first, second = (each.cost for each in found)
    assert row.endswith(f"| {(first * second) ** 0.5:.2f} |")


def test_a_stretch_begins_where_it_is_said_to_and_lasts_17_minutes(data):
    early, late = (beginnings.replayed(data, Stretch("steady", 2.0, at)) for at in (0.0, 1360.0))
    # The same peak: where half of the time has half the rate fewer come.
    assert early.ours.requests < 0.9 * late.ours.requests
