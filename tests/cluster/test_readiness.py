"""/readyz tells one thing at a time, and the log tells each once."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest
from structlog.testing import capture_logs

from poolwise.cluster.pulse import Pulse
from poolwise.cluster.readiness import Readiness
from poolwise.cluster.resources import NODES, PODS, TRAINING_JOBS
from poolwise.errors import Forbidden, NotFound, Unauthorized, Unreachable
from poolwise.settings import Settings
from tests.fake_kube import FakeKube


@pytest.fixture
def readiness():
    readiness = Readiness()
    readiness.server = "https://10.0.0.1:443"
    readiness.filled()
    return readiness


def test_several_problems_are_told_one_after_the_other(readiness):
    readiness.refused("nodes", NODES, Forbidden('cannot list resource "nodes"'))
    readiness.refused("pods", PODS, Forbidden('cannot list resource "pods"'))
    assert '"nodes"' in readiness.problem
    readiness.answered("nodes")
    assert '"pods"' in readiness.problem
    readiness.answered("pods")
    assert readiness.problem is None


def test_a_server_that_is_away_goes_before_what_it_said_last(readiness):
    readiness.refused("nodes", NODES, Forbidden('cannot list resource "nodes"'))
    readiness.refused("pods", PODS, Unreachable("Connection refused"))
    assert readiness.problem.startswith("the API server https://10.0.0.1:443 does not answer")
    readiness.answered("pods")
    assert '"nodes"' in readiness.problem


def test_a_refusal_is_an_answer(readiness):
    readiness.refused("nodes", NODES, Unauthorized("list nodes: Unauthorized"))
    assert "does not accept our credentials" in readiness.problem
    readiness.refused("pods", PODS, Forbidden('cannot list resource "pods"'))
    assert '"pods"' in readiness.problem


def test_each_problem_is_logged_once_and_its_end_too(readiness):
    with capture_logs() as logs:
        for _ in range(3):
            readiness.refused("tj", TRAINING_JOBS, NotFound("404 page not found"))
        for _ in range(3):
            readiness.answered("tj")
    assert [each["event"] for each in logs] == ["not ready", "works again"]


class Guarded(FakeKube):
    """Answers with what ``errors`` holds for a kind, and remembers what it was asked for."""

    def __init__(self):
        super().__init__()
        self.errors = {}
        self.asked = []

    async def peek(self, resource, namespace=None):
        self.asked.append(resource)
        if resource in self.errors:
            raise self.errors[resource]


@pytest.fixture
def kube():
    return Guarded()


@pytest.fixture
def clock():
    return SimpleNamespace(seconds=0.0)


@pytest.fixture
def pulse(kube, readiness, clock):
    return Pulse(kube, readiness, Settings(), lambda: clock.seconds)


def check(pulse, resource):
    asyncio.run(pulse.check(resource, None))


def test_a_right_that_is_taken_away_is_noticed_and_its_return_too(kube, readiness, pulse):
    kube.errors[PODS] = Forbidden('cannot list resource "pods"')
    check(pulse, PODS)
    assert '"pods"' in readiness.problem
    del kube.errors[PODS]
    check(pulse, PODS)
    assert readiness.problem is None


def test_a_short_silence_is_a_restart_and_no_outage(kube, readiness, pulse, clock):
    kube.errors[NODES] = Unreachable("Connection refused")
    clock.seconds = 10
    check(pulse, NODES)
    assert readiness.problem is None
    clock.seconds = 20
    check(pulse, NODES)
    assert "does not answer: Connection refused" in str(readiness.problem)
    check(pulse, PODS)
    assert readiness.problem is None


def test_what_was_refused_is_asked_for_again_in_each_round(kube, readiness, pulse, at_each_rest):
    """The others have their turns; the one that hurts does not wait for its own."""
    kube.errors[PODS] = Forbidden('cannot list resource "pods"')
    check(pulse, PODS)
    kube.errors.clear()
    kube.asked.clear()

    def end(_):
        if len(kube.asked) > 3:
            raise asyncio.CancelledError

    at_each_rest(end)
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(pulse.run())
    assert PODS in kube.asked[:2]
    assert readiness.problem is None
