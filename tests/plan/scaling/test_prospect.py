"""What a replica serves while others wait, from counts and the model's word."""

from __future__ import annotations

import pytest

from poolwise.plan.scaling.memory import Bin
from poolwise.plan.scaling.prospect import each_serves

USUAL = 2.0
SERVING = 3


def served(arrivals: float, waiting_before: float, waiting: float, seconds: float = 15.0) -> float:
    """By each of three replicas that bear 2 requests/s by the model."""
    bins = (Bin(0.0, seconds, 90.0, waiting=waiting_before), Bin(seconds, seconds, arrivals))
    return each_serves(bins, waiting, SERVING, USUAL)


def test_counts_that_began_with_a_queue_tell_what_a_replica_serves() -> None:
    assert served(1000.0, 1000.0, 2000.0 - 600.0, seconds=200.0) == pytest.approx(1.0, rel=0.02)


def test_how_few_came_without_a_queue_tells_nothing() -> None:
    assert served(4.0, 0.0, 3.0) == USUAL
    assert served(4.0, 5.9, 3.0) == USUAL


def test_few_counts_hardly_count_against_the_model() -> None:
    few = served(1.0, 7.0, 7.0, seconds=1.0)
    assert 0.5 * USUAL < few < USUAL
    assert few > served(15.0, 7.0, 7.0, seconds=15.0)


def test_no_replica_serves_more_than_it_bears() -> None:
    assert served(1000.0, 1000.0, 0.0) == USUAL


def test_with_nobody_serving_the_model_alone_tells() -> None:
    assert each_serves((Bin(0.0, 15.0, 9.0, waiting=50.0),) * 2, 50.0, 0, USUAL) == USUAL
    assert each_serves((), 50.0, SERVING, USUAL) == USUAL
