"""Other times between looks: each is replayed with its own."""

from pathlib import Path

import pytest

from bench.autoscale import looks
from bench.autoscale.grid import Case
from tests.bench.autoscale_cases import with_steady_trace


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return with_steady_trace(tmp_path)


def test_each_time_between_looks_is_replayed(data: Path) -> None:
    (found,) = looks.run(data, 1, [Case("steady", 3.0)])
    assert found.aim == pytest.approx(0.99)
    assert len(found.outcomes) == len(looks.SECONDS)
    assert len({each.attainment for each in found.outcomes}) > 1  # who looks later answers later
    row = looks.text([found]).splitlines()[-1]
    assert row.startswith("| steady | 99.00 | ")
    assert row.endswith(f"@ {found.outcomes[-1].replica_hours:.2f} |")
