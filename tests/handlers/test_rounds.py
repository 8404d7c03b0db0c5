"""Rounds begin at equal distances, whatever each takes, and none that fails is the last."""

from __future__ import annotations

import asyncio

import pytest

from poolwise.handlers.rounds import LEAST_REST_SECONDS, rounds


class Enough(BaseException):
    """No more rounds are looked at."""


class Clock:
    """Seconds that pass only when somebody works or sleeps."""

    def __init__(self) -> None:
        self.seconds = 0.0

    async def sleep(self, seconds: float) -> None:
        self.seconds += seconds


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr("poolwise.handlers.rounds.asyncio.sleep", clock.sleep)
    monkeypatch.setattr("poolwise.handlers.rounds.time.monotonic", lambda: clock.seconds)
    return clock


@pytest.mark.parametrize(
    ("takes_seconds", "apart_seconds"),
    [
        pytest.param(4.0, 10.0, id="shorter-than-the-interval"),
        pytest.param(25.0, 25.0 + LEAST_REST_SECONDS, id="longer"),
    ],
)
@pytest.mark.parametrize("error", [None, ValueError("no")], ids=["works", "fails"])
def test_rounds_go_on_at_equal_distances(clock, takes_seconds, apart_seconds, error):
    began: list[float] = []

    async def step() -> None:
        began.append(clock.seconds)
        if len(began) == 3:
            raise Enough
        clock.seconds += takes_seconds
        if error:
            raise error

    with pytest.raises(Enough):
        asyncio.run(rounds(step, 10.0, "looks"))
    assert began == [0.0, apart_seconds, 2 * apart_seconds]
