"""What repeated measurements say of the noise, and of what any model could reach."""

from __future__ import annotations

import math

import pytest

from bench.model.dominance import Cases
from bench.model.experiments import Pair
from bench.model.outcome import Outcome
from bench.model.repeats import ceiling, spreads
from bench.tables import Row
from poolwise.model.prediction import Interval

CELLS: Row = {"gpu": "H100-SXM5-80GB", "model": "m", "engine": "vllm", "mode": "online-agg"}
BANDWIDTH: Cases = {"None": 0.0, "MemoryBandwidth": math.log(1.43)}


def measured(*seconds: float, **cells: str) -> list[Outcome]:
    found = Interval(1.0, 1.0, 1.0)
    return [Outcome("tpot", CELLS | cells, each, True, found) for each in seconds]


def test_repeats_are_of_one_job_on_one_accelerator() -> None:
    several = [*measured(1.0, 1.1), *measured(3.0, 3.3, 3.6, isl="128"), *measured(9.0, isl="64")]
    assert spreads(several, "tpot") == pytest.approx([0.1, 0.2])


def test_a_copy_is_no_repeat() -> None:
    assert spreads(measured(1.0, 1.0), "tpot") == []


def test_what_mixes_recipes_is_no_repeat() -> None:
    assert spreads(measured(1.0, 1.5, model="DeepSeek-V3", engine="sglang"), "tpot") == []


def pair(speedup: float, noise: float) -> Pair:
    return Pair((), math.log(speedup), 0.0, math.log1p(noise), BANDWIDTH)


def test_a_second_measurement_is_mostly_right() -> None:
    decided, right = ceiling([pair(at, 0.05) for at in (1.0, 1.1, 1.2, 1.3, 1.4)])
    assert 0.5 < decided < 0.95
    assert right is not None
    assert 0.9 < right < 1.0


def test_noise_leaves_nothing_decided() -> None:
    assert ceiling([pair(1.2, 1.0)]) == (0.0, None)
