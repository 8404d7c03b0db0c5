"""A wall clock that is set back is noticed, and one that is set forward is none of our business."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from poolwise.cluster import clock
from poolwise.cluster.clock import SetBack, utc_now
from poolwise.cluster.connection import Connection
from poolwise.handlers import operator
from poolwise.handlers.operator import Operator
from poolwise.plan.observed import Decisions
from poolwise.settings import Settings

NOON = utc_now()


@pytest.mark.parametrize(
    ("steps", "seconds"),
    [
        ([(5, 5), (5, 5)], 0),
        ([(5, 5), (-7200, 5)], 7205),
        ([(-30, 5), (-30, 5)], 70),
        ([(7200, 5), (5, 5)], 0),
        ([(7200, 5), (-7195, 5)], 7200),
    ],
    ids=["runs", "back", "back-in-steps", "forward", "forward-and-back"],
)
def test_by_how_much_it_was_set_back(steps, seconds):
    wall, steady = [NOON], [100.0]
    set_back = SetBack(lambda: wall[0], lambda: steady[0])
    for by_wall, by_steady in steps:
        wall[0] += timedelta(seconds=by_wall)
        steady[0] += by_steady
        set_back.seconds()
    assert set_back.seconds() == pytest.approx(seconds)


@pytest.mark.parametrize(("seconds", "ends"), [(-7200, True), (-20, False), (7200, False)])
def test_a_process_ends_when_its_clock_is_set_back_by_much(monkeypatch, seconds, ends):
    """It would scale no service until it is as late again; the next process goes on at once."""
    monkeypatch.setattr(operator, "_GAUGE_SECONDS", 0.01)
    wall = [timedelta()]
    monkeypatch.setattr(clock, "utc_now", lambda: utc_now() + wall[0])
    settings = Settings(metrics_listen="", liveness_listen="")
    process = Operator(Connection(settings), settings, lambda observed: Decisions((), {}))

    async def play():
        measuring = asyncio.create_task(process._measure())
        await asyncio.sleep(0.05)
        wall[0] = timedelta(seconds=seconds)
        await asyncio.sleep(0.1)
        measuring.cancel()

    asyncio.run(play())
    assert process.stop_flag.is_set() == ends
    assert ("set back by 7200 s" in str(process.failure)) == ends
