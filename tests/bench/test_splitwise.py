"""Corrections of batches that were measured: each is judged by what it has not seen."""

from __future__ import annotations

import pytest

from bench.autoscale.splitwise import Timed, corrected, factor, factor_and_floor


def _batch(simulated_seconds: float, measured_seconds: float, pool: str = "a pool") -> Timed:
    return Timed(pool, "prompt", "1 x 512", measured_seconds, simulated_seconds)


def test_a_batch_teaches_nothing_of_itself() -> None:
    """The one odd batch is as wrong as if it had not been there, and spoils its neighbours."""
    of = [_batch(1.0, 2.0), _batch(1.0, 2.0), _batch(1.0, 2.0), _batch(1.0, 8.0)]
    found = list(corrected(of, factor))
    assert [each.simulated_seconds for each in found] == [5.0, 5.0, 2.0, 2.0]
    assert sorted(each.measured_seconds for each in found) == [2.0, 2.0, 2.0, 8.0]


def test_pools_are_corrected_apart() -> None:
    of = [_batch(1.0, ratio, pool) for pool, ratio in (("a", 2.0), ("b", 3.0)) for _ in range(2)]
    assert [each.error for each in corrected(of, factor)] == [0.0] * 4


def test_a_host_that_launches_slowly_is_a_floor() -> None:
    law = factor_and_floor([_batch(0.01, 0.05), _batch(0.02, 0.05), _batch(0.5, 0.6)])
    assert law(0.001) == pytest.approx(0.05)
    assert law(1.0) == pytest.approx(1.2)
