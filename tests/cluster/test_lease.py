"""Leader election on the one fake API server, with a clock of our own for each candidate."""

from __future__ import annotations

import asyncio
import contextlib
import json
from datetime import UTC, datetime, timedelta

import pytest

from poolwise.cluster.lease import Lease
from poolwise.cluster.readiness import Readiness
from poolwise.cluster.resources import LEASES
from poolwise.errors import Forbidden, Unavailable
from poolwise.settings import Settings
from tests.fake_kube import FakeKube

SETTINGS = Settings(lease_namespace="poolwise-system")


class Clock:
    """Monotonic seconds and a wall clock that may be wrong."""

    def __init__(self, skew: timedelta = timedelta()) -> None:
        self.seconds = 0.0
        self.skew = skew

    def move(self, seconds: float) -> None:
        self.seconds += seconds

    def monotonic(self) -> float:
        return self.seconds

    def now(self) -> datetime:
        return datetime(2026, 11, 21, tzinfo=UTC) + timedelta(seconds=self.seconds) + self.skew


@pytest.fixture
def clock(at_each_rest):
    """Sleeping moves the clock, so that a quarter of a minute takes no time."""
    clock = Clock()
    at_each_rest(clock.move)
    return clock


@pytest.fixture
def kube():
    return FakeKube()


@pytest.fixture
def readiness():
    readiness = Readiness()
    readiness.filled()
    return readiness


def lease(kube, clock, identity="a", skew=timedelta(), readiness=None) -> Lease:
    return Lease(
        kube,
        SETTINGS,
        identity,
        clock.monotonic,
        lambda: clock.now() + skew,
        readiness or Readiness(),
    )


def record(kube):
    return kube.objects[LEASES, "poolwise-system", "poolwise"]["spec"]


def test_the_first_one_leads_at_once(kube, clock):
    first = lease(kube, clock)
    asyncio.run(first.acquire())
    assert first.is_held
    assert clock.seconds == 0
    assert record(kube)["holderIdentity"] == "a"
    assert record(kube)["leaseTransitions"] == 0


def test_a_crashed_leader_is_replaced_within_twenty_seconds(kube, clock):
    asyncio.run(lease(kube, clock).acquire())
    second = lease(kube, clock, "b")
    asyncio.run(second.acquire())
    assert second.is_held
    assert 15 <= clock.seconds < 20
    assert record(kube)["leaseTransitions"] == 1


def test_a_standby_asks_at_the_moment_at_which_the_lease_runs_out(kube, clock):
    asyncio.run(lease(kube, clock).acquire())
    asyncio.run(lease(kube, clock, "b").acquire())
    assert clock.seconds == SETTINGS.lease_seconds


@pytest.mark.parametrize("minutes", [-60, 60], ids=["behind", "ahead"])
def test_a_wrong_wall_clock_neither_hastens_nor_delays_it(kube, clock, minutes):
    asyncio.run(lease(kube, clock, skew=timedelta(minutes=minutes)).acquire())
    second = lease(kube, clock, "b")
    asyncio.run(second.acquire())
    assert 15 <= clock.seconds < 20


def test_a_living_leader_keeps_the_lease(kube, clock):
    first, second = lease(kube, clock), lease(kube, clock, "b")

    async def scenario():
        await first.acquire()
        for _ in range(30):
            assert not await second._try()
            clock.seconds += 2
            assert await first._try()

    asyncio.run(scenario())
    assert first.is_held
    assert not second.is_held


def test_a_released_lease_is_free_at_once(kube, clock):
    first, second = lease(kube, clock), lease(kube, clock, "b")

    async def scenario():
        await first.acquire()
        await first.release()
        await second.acquire()

    asyncio.run(scenario())
    assert not first.is_held
    assert second.is_held
    assert clock.seconds == 0


def test_a_standby_that_ends_leaves_the_lease_to_its_holder(kube, clock):
    first, second = lease(kube, clock), lease(kube, clock, "b")

    async def scenario():
        await first.acquire()
        assert not await second._try()
        await second.release()

    asyncio.run(scenario())
    assert record(kube)["holderIdentity"] == "a"


def test_a_lease_is_released_after_a_renewal_whose_answer_was_not_waited_for(kube, clock):
    """Who is told to end hangs up on the renewal that is under way; the API server has made it."""
    first, second = lease(kube, clock), lease(kube, clock, "b")

    def hang_up(write):
        raise asyncio.CancelledError

    async def scenario():
        await first.acquire()
        clock.seconds += 2
        kube.after_write = hang_up
        with contextlib.suppress(asyncio.CancelledError):
            await first._try()
        kube.after_write = lambda write: None
        await first.release()
        await second.acquire()

    asyncio.run(scenario())
    assert clock.seconds == 2


def test_who_leads_meanwhile_is_not_released(kube, clock):
    first, second = lease(kube, clock), lease(kube, clock, "b")

    async def scenario():
        await first.acquire()
        await second._try()
        clock.seconds += 20
        assert await second._try()
        await first.release()

    asyncio.run(scenario())
    assert record(kube)["holderIdentity"] == "b"


def test_a_leader_that_cannot_renew_stops_before_another_may_start(kube, clock):
    first = lease(kube, clock)

    def refuse(write: str) -> None:
        raise Unavailable("no answer")

    async def scenario():
        await first.acquire()
        kube.before_write = refuse
        await first.hold()

    asyncio.run(scenario())
    assert not first.is_held
    assert SETTINGS.lease_renew_seconds <= clock.seconds < SETTINGS.lease_seconds


def test_one_request_that_hangs_does_not_cost_the_lease(kube, clock, monkeypatch):
    """A connection that a firewall forgot is given up in time for another."""
    first, answer, limits = lease(kube, clock), kube.get, []
    timeout = asyncio.timeout

    def limited(seconds):
        limits.append(seconds)
        return timeout(None)

    async def hangs(*arguments):
        monkeypatch.setattr(kube, "get", answers)
        clock.seconds += limits[-1]
        raise TimeoutError

    async def answers(*arguments):
        if clock.seconds > 3 * SETTINGS.lease_renew_seconds:
            raise Unavailable("no answer")
        return await answer(*arguments)

    async def scenario():
        await first.acquire()
        monkeypatch.setattr("poolwise.cluster.lease.asyncio.timeout", limited)
        monkeypatch.setattr(kube, "get", hangs)
        await first.hold()

    asyncio.run(scenario())
    assert clock.seconds > 3 * SETTINGS.lease_renew_seconds


def test_a_stalled_leader_may_not_write_even_before_it_notices(kube, clock):
    first = lease(kube, clock)
    asyncio.run(first.acquire())
    clock.seconds += SETTINGS.lease_renew_seconds
    assert not first.is_held


def test_a_renewal_that_came_late_is_told_once(kube, clock, log):
    first = lease(kube, clock)

    async def scenario():
        await first.acquire()
        for pause_seconds in (2.0, SETTINGS.lease_renew_seconds + 1.0, 2.0):
            clock.seconds += pause_seconds
            assert await first._try()

    asyncio.run(scenario())
    assert first.is_held
    [line] = map(json.loads, log.getvalue().splitlines())
    assert (line["level"], line["after_seconds"]) == ("warning", 11.0)


def test_a_write_ends_before_another_may_lead(kube, clock):
    first = lease(kube, clock)
    assert first.seconds_left == 0
    asyncio.run(first.acquire())
    assert first.seconds_left == SETTINGS.lease_seconds
    clock.seconds += 9
    assert first.seconds_left == SETTINGS.lease_seconds - 9
    clock.seconds += 1  # what begins now would have little time, and the process is about to end
    assert first.seconds_left == 0


def test_nobody_is_told_of_less_than_the_leader_goes_by(kube, clock):
    settings = SETTINGS.model_copy(update={"lease_seconds": 3.4, "lease_renew_seconds": 3.2})
    first = Lease(kube, settings, "a", clock.monotonic, clock.now, Readiness())
    asyncio.run(first.acquire())
    second = lease(kube, clock, "b")
    asyncio.run(second.acquire())
    assert second.is_held
    assert first.seconds_left == 0
    assert clock.seconds >= 3.4


def test_a_leader_that_was_replaced_notices(kube, clock):
    first, second = lease(kube, clock), lease(kube, clock, "b")

    async def scenario():
        await first.acquire()
        clock.seconds += 20
        await second._try()
        clock.seconds += 15
        await second._try()
        assert not await first._try()

    asyncio.run(scenario())
    assert not first.is_held


def test_of_two_that_start_together_one_leads(kube, clock):
    candidates = [lease(kube, clock, name) for name in "ab"]

    async def scenario():
        with contextlib.suppress(TimeoutError):
            await asyncio.gather(*(each._try() for each in candidates))

    asyncio.run(scenario())
    assert [each.is_held for each in candidates].count(True) == 1


def test_an_outage_is_told_once_and_anew_when_it_is_another(kube, clock, log):
    answers = ["busy", "busy", "no answer", "", "no answer"]

    def answer(write: str) -> None:
        if problem := answers.pop(0):
            raise Unavailable(problem)

    kube.before_write = answer
    first = lease(kube, clock)

    async def scenario():
        while answers:
            await first._try()

    asyncio.run(scenario())
    told = [json.loads(line)["error"] for line in log.getvalue().splitlines()]
    assert told == [repr(Unavailable(each)) for each in ("busy", "no answer", "no answer")]


def test_a_missing_right_is_waited_for_and_told(kube, clock, readiness):
    attempts = []

    def refuse_twice(write: str) -> None:
        attempts.append(readiness.problem)
        if len(attempts) <= 2:
            raise Forbidden('cannot create resource "leases"')

    kube.before_write = refuse_twice
    first = lease(kube, clock, readiness=readiness)
    asyncio.run(first.acquire())
    assert first.is_held
    assert attempts[0] is None
    assert 'cannot create resource "leases"' in attempts[1]
    assert readiness.problem is None


def test_the_lease_goes_with_its_owner_and_one_from_before_is_given_it(kube, clock):
    owner = {"apiVersion": "v1", "kind": "ServiceAccount", "name": "poolwise", "uid": "1"}
    asyncio.run(lease(kube, clock).acquire())
    assert "ownerReferences" not in stored(kube)["metadata"]
    clock.seconds += 60
    heir = lease(kube, clock, "b")
    heir.owner_references = [owner]
    asyncio.run(heir.acquire())
    assert stored(kube)["metadata"]["ownerReferences"] == [owner]


def test_a_lease_that_loses_its_spec_is_free(kube, clock):
    first, second = lease(kube, clock), lease(kube, clock, "b")

    async def scenario():
        await first.acquire()
        assert not await second._try()
        del stored(kube)["spec"]
        assert await second._try()

    asyncio.run(scenario())
    assert record(kube)["holderIdentity"] == "b"


def stored(kube):
    return kube.objects[LEASES, "poolwise-system", "poolwise"]
