"""A process goes by a clock that nobody sets, and ends when the machine's was set."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from poolwise.cluster import clock
from poolwise.cluster.connection import Connection
from poolwise.handlers import operator
from poolwise.handlers.operator import Operator
from poolwise.plan.observed import Decisions
from poolwise.settings import Settings


@pytest.fixture
def set_clock(monkeypatch):
    """Sets the machine's clock, by so many seconds in all."""
    ahead = [timedelta()]

    class Wall(datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime.now(tz) + ahead[0]

    def set_by(seconds):
        ahead[0] = timedelta(seconds=seconds)

    monkeypatch.setattr(clock, "datetime", Wall)
    return set_by


@pytest.mark.parametrize("seconds", [-86400, -3600, 3600, 86400])
def test_time_goes_on_as_before_when_the_clock_is_set(set_clock, seconds):
    before = clock.utc_now()
    set_clock(seconds)
    assert timedelta() <= clock.utc_now() - before < timedelta(minutes=10)
    assert clock.set_by_seconds() == pytest.approx(seconds, abs=5.0)


def test_it_is_the_time_of_the_machine_while_nobody_sets_it():
    assert clock.utc_now().tzinfo is UTC
    assert clock.set_by_seconds() == pytest.approx(0.0, abs=5.0)


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (-7200, "this machine's clock was set back by 7200 s"),
        (7200, "this machine's clock was set forward by 7200 s"),
        (-2, None),
        (2, None),
    ],
)
def test_a_process_ends_when_the_clock_is_set_by_much(monkeypatch, set_clock, seconds, told):
    """The next one goes on by the right time at once."""
    monkeypatch.setattr(operator, "_GAUGE_SECONDS", 0.01)
    settings = Settings(metrics_listen="", liveness_listen="")
    process = Operator(Connection(settings), settings, lambda observed: Decisions((), {}))

    async def play():
        measuring = asyncio.create_task(process._measure())
        await asyncio.sleep(0.05)
        assert process.failure is None
        set_clock(seconds)
        await asyncio.sleep(0.1)
        measuring.cancel()

    asyncio.run(play())
    assert process.stop_flag.is_set() == (told is not None)
    assert (process.failure and str(process.failure)) == told
