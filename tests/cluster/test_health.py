"""/healthz and /readyz answer from the first moment on, and ask nobody."""

from __future__ import annotations

import asyncio
import socket
from types import SimpleNamespace

import aiohttp
import pytest
from aiohttp import web

from e2e.controlplane import ports
from e2e.controlplane.ports import LOOPBACK
from poolwise.cluster.freshness import Freshness
from poolwise.cluster.health import HealthServer
from poolwise.cluster.readiness import Readiness
from poolwise.cluster.resources import PODS
from poolwise.errors import InvalidInput, Unauthorized, Unavailable, Unreachable, Untrusted

STALE_SECONDS = 180


@pytest.fixture
def clock():
    return SimpleNamespace(seconds=0.0)


@pytest.fixture
def readiness():
    return Readiness()


@pytest.fixture
def freshness(clock, readiness):
    return Freshness(lambda: clock.seconds, readiness)


@pytest.fixture
def ask(freshness, readiness):
    """The status and the text of a path."""

    async def read(path):
        [port] = ports.free(1)
        listen = f"{LOOPBACK}:{port}"
        server = HealthServer(listen, freshness, readiness, STALE_SECONDS)
        await server.start()
        try:
            async with (
                aiohttp.ClientSession() as session,
                session.get(f"http://{listen}{path}") as answer,
            ):
                return answer.status, await answer.text()
        finally:
            await server.close()

    return lambda path: asyncio.run(read(path))


def test_a_process_that_starts_lives_and_is_not_ready(ask):
    assert ask("/healthz") == (200, '{"watches": 0.0}')
    assert ask("/readyz") == (503, "starting: the cluster has not been read yet\n")


def test_a_process_that_waits_lives_and_says_for_what_in_one_line(ask, readiness):
    readiness.blocked("nodes", 'cannot list resource "nodes"\nat the cluster scope')
    assert ask("/healthz")[0] == 200
    assert ask("/readyz") == (503, 'cannot list resource "nodes" at the cluster scope\n')


def test_a_process_that_knows_the_cluster_is_ready(ask, readiness):
    readiness.filled()
    assert ask("/readyz") == (200, "ok\n")


def test_a_watch_that_hangs_is_a_matter_of_life(ask, freshness, clock):
    freshness.require([(PODS, None)])
    clock.seconds = STALE_SECONDS
    assert ask("/healthz") == (200, '{"watches": 180.0}')
    clock.seconds = STALE_SECONDS + 1
    assert ask("/healthz") == (500, "watches that receive nothing: /api/v1/pods\n")


@pytest.mark.parametrize("error", [Unreachable("Connection refused"), Unavailable("503")])
def test_an_api_server_that_does_not_answer_is_none_however_long(
    ask, freshness, readiness, clock, error
):
    """Nor is each watch, for as long as it may take to be opened again."""
    freshness.require([(PODS, None)])
    clock.seconds = 20
    readiness.refused("pods", PODS, error)
    clock.seconds = 10 * STALE_SECONDS
    assert ask("/healthz")[0] == 200
    readiness.answered("pods")
    clock.seconds += STALE_SECONDS
    assert ask("/healthz")[0] == 200
    clock.seconds += 1
    assert ask("/healthz") == (500, "watches that receive nothing: /api/v1/pods\n")


@pytest.mark.parametrize("error", [Unauthorized("401"), Untrusted("self-signed")])
def test_what_a_new_process_reads_anew_is_one(ask, freshness, readiness, clock, error):
    """Credentials, and the authorities that are trusted."""
    freshness.require([(PODS, None)])
    readiness.refused("pods", PODS, error)
    clock.seconds = STALE_SECONDS + 1
    assert ask("/healthz")[0] == 500


def test_without_an_address_nothing_is_served(freshness, readiness, monkeypatch):
    def listens(*_):
        raise AssertionError("somebody listens")

    monkeypatch.setattr(web, "TCPSite", listens)
    server = HealthServer("", freshness, readiness, STALE_SECONDS)
    asyncio.run(server.start())
    asyncio.run(server.close())


def test_an_address_in_use_is_named_with_its_variable(freshness, readiness):
    with socket.socket() as taken:
        taken.bind((LOOPBACK, 0))
        taken.listen()
        listen = f"{LOOPBACK}:{taken.getsockname()[1]}"
        server = HealthServer(listen, freshness, readiness, STALE_SECONDS)
        with pytest.raises(InvalidInput, match="address already in use") as caught:
            asyncio.run(server.start())
    assert str(caught.value).startswith("environment variable POOLWISE_LIVENESS_LISTEN: ")
    assert listen in str(caught.value)
