"""Other times between looks: each is replayed with its own."""

from pathlib import Path

import numpy as np
import pytest

from bench.autoscale import looks
from bench.autoscale.grid import Case


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Ten minutes of a request each second, and ten of four."""
    arrivals = np.concatenate([np.arange(0.0, 600.0), 600.0 + 0.25 * np.arange(2400)])
    rows = (f"{at},300,300" for at in arrivals)
    text = "\n".join(["arrival_s,input_tokens,output_tokens", *rows])
    (tmp_path / "steady.csv").write_text(text)
    return tmp_path


def test_each_time_between_looks_is_replayed(data: Path) -> None:
    (found,) = looks.run(data, 1, [Case("steady", 3.0)])
    assert found.aim == pytest.approx(0.99)
    assert len(found.outcomes) == len(looks.SECONDS)
    assert len({each.attainment for each in found.outcomes}) > 1  # who looks later answers later
    row = looks.text([found]).splitlines()[-1]
    assert row.startswith("| steady | 99.00 | ")
    assert row.endswith(f"@ {found.outcomes[-1].replica_hours:.2f} |")
