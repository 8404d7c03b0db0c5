"""The law of prompts behind a router against the simulator."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bench.autoscale.met_prompts import Met, compared, summary
from bench.autoscale.scene import Routing

NAME, REQUESTS = "documents", 5000


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder with a trace of log-normal lengths, one request each second."""
    draw = np.random.default_rng(1)
    prompts, answers = draw.lognormal(7.0, 0.8, REQUESTS), draw.lognormal(4.0, 0.8, REQUESTS)
    rows = (
        f"{at},{prompt:.0f},{answer:.0f}"
        for at, (prompt, answer) in enumerate(zip(prompts + 1.0, answers + 1.0, strict=True))
    )
    text = "\n".join(["arrival_s,input_tokens,output_tokens", *rows])
    (tmp_path / f"{NAME}.csv").write_text(text)
    return tmp_path


def _found(data: Path, routing: Routing) -> list[Met]:
    return list(compared(data, 600.0, (NAME,), (4, 10), (0.35, 0.65), routing))


def test_behind_a_router_first_tokens_take_as_long_as_the_law_tells(data: Path) -> None:
    found = _found(data, Routing.LEAST_OUTSTANDING)
    assert [(each.replicas, round(each.busy, 1)) for each in found] == [
        (4, 0.4), (10, 0.4), (4, 0.7), (10, 0.7),
    ]  # fmt: skip
    for each in found:
        assert abs(each.error) < 0.15
        assert abs(each.bias) < 0.15
        assert each.error_by_chance > abs(each.error) + 0.1


def test_behind_a_plain_service_they_take_as_long_as_by_chance(data: Path) -> None:
    for each in _found(data, Routing.SERVICE):
        assert each.told_seconds == each.by_chance_seconds
        assert abs(each.error) < 0.3


def test_a_line_tells_of_each_trace(data: Path) -> None:
    (line,) = summary(_found(data, Routing.LEAST_OUTSTANDING))
    assert line.startswith(f"prompts of {NAME} behind least-outstanding, 4 fleets: ")
