"""Answers that cannot be read, of a real server: each is tried again, and told in a line of log."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import time
from collections.abc import Coroutine
from functools import partial
from typing import Any

import aiohttp
import kopf
import pytest
from aiohttp import web
from kubernetes.aio.client import ApiClient, Configuration

from poolwise.cluster import freshness, patience, streams
from poolwise.cluster.cache import Cache
from poolwise.cluster.following import Follower, Silent
from poolwise.cluster.freshness import Freshness
from poolwise.cluster.kube import ApiKube
from poolwise.cluster.listing import prune
from poolwise.cluster.metrics import Metrics
from poolwise.cluster.patience import Patience
from poolwise.cluster.readiness import Readiness
from poolwise.cluster.resources import PODS
from poolwise.errors import Unavailable
from poolwise.settings import Settings
from tests.cluster.broken_server import EVENT, BrokenServer, error, page, too_old

DATE = "Wed, 21 Oct 2026 07:28:00 GMT"
HALF = EVENT[: len(EVENT) // 2]
PATIENCE_SECONDS = 20.0

STREAMS = [
    pytest.param(HALF, "it ended inside a line", id="half-a-line"),
    pytest.param(b"upstream \xff went away\n", "a line is no event", id="words-of-a-proxy"),
    pytest.param(error(500), "500 no leader", id="an-error"),
    pytest.param(b'{"type":"ERROR"}\n', "an error without a code", id="half-an-error"),
    pytest.param(b'{"type":"ERROR","object":7}\n', "an error without a code", id="no-status"),
    pytest.param(error(410), "", id="too-old"),
    pytest.param(b"", "", id="empty"),
    pytest.param(page, "the answer is text/html", id="a-page"),
    pytest.param(too_old, "", id="too-old-from-the-start"),
]


@pytest.fixture(autouse=True)
def hasty(monkeypatch):
    monkeypatch.setattr(streams, "_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr("poolwise.cluster.following._PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(Patience, "__iter__", lambda self: itertools.repeat(0.01))


async def until(came: asyncio.Event, *tasks: asyncio.Task[None]) -> None:
    """Wait for it; a task that ends first raises what it ended by."""
    waiting = asyncio.create_task(came.wait())
    done, _ = await asyncio.wait(
        {waiting, *tasks}, timeout=PATIENCE_SECONDS, return_when=asyncio.FIRST_COMPLETED
    )
    for task in done:
        task.result()
    waiting.cancel()
    assert came.is_set()


class Kopf:
    """kopf, watching pods as the operator has it do so."""

    def __init__(self) -> None:
        self.readiness = Readiness()
        self.readiness.filled()
        self.came = asyncio.Event()

    async def watch(self, url: str) -> None:
        watches = Freshness(time.monotonic, self.readiness)
        watches.require([(PODS, None)])
        handlers = kopf.OperatorRegistry()

        @kopf.on.login(registry=handlers, id="login")
        async def log_in(**_):
            session = aiohttp.ClientSession(middlewares=[watches.middleware])
            return kopf.AiohttpSession(server=url, aiohttp_session=session)

        @kopf.on.event("", "v1", "pods", registry=handlers, id="pods")
        async def event(event, **_):
            self.came.set()

        settings = kopf.OperatorSettings()
        settings.posting.enabled, settings.scanning.disabled = False, True
        settings.networking.error_backoffs = Patience()
        operator = asyncio.create_task(
            kopf.operator(
                registry=handlers,
                settings=settings,
                standalone=True,
                clusterwide=True,
            )
        )
        try:
            await until(self.came, operator)
        finally:
            operator.cancel()
            await asyncio.gather(operator, return_exceptions=True)


async def asked_no_more_often(
    server: BrokenServer, work: Coroutine[Any, Any, Any], what: str, count: int
) -> None:
    """Have ``work`` ask that often, and see that it then rests."""
    task = asyncio.create_task(work)
    async with asyncio.timeout(PATIENCE_SECONDS):
        while server.asked[what] < count:
            await asyncio.sleep(0.01)
    await asyncio.sleep(0.5)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert server.asked[what] == count


async def watched(server: BrokenServer) -> Kopf:
    watching = Kopf()
    async with server.served() as url:
        await watching.watch(url)
    return watching


def kopf_watches(server: BrokenServer) -> Kopf:
    return asyncio.run(watched(server))


@pytest.mark.parametrize(("stream", "told"), STREAMS)
def test_what_cannot_be_read_ends_neither_kopf_nor_its_watch(log, stream, told):
    server = BrokenServer(streams=(stream,))
    watching = kopf_watches(server)
    assert server.asked["watch"] == 2
    assert told in log.getvalue()
    assert watching.readiness.problem is None


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (page, "the answer is text/html"),
        (lambda: web.json_response({"message": "too old"}, status=410), "410 too old"),
        (lambda: web.json_response({"message": "what token?"}, status=400), "400 what token?"),
        (lambda: web.json_response({}, status=429, headers={"Retry-After": DATE}), "429 "),
        (lambda: web.json_response({}, status=429, headers={"Retry-After": "0"}), ""),
        (lambda: web.Response(text='{"items": [', content_type="application/json"), "no end"),
        (lambda: web.json_response({}, status=503), ""),
    ],
    ids=["a-page", "too-old", "no-token", "a-date", "too-many", "half-a-list", "not-ready"],
)
def test_nor_does_a_list_that_cannot(log, answer, told):
    server = BrokenServer(lists=(answer,))
    kopf_watches(server)
    assert server.asked == {"list": 2, "watch": 1}
    assert told in log.getvalue()


def test_a_watch_that_is_too_old_is_listed_anew(log):
    """Not asked for again and again from the same version, until /healthz ends the process."""
    server = BrokenServer(expired=3)
    watching = kopf_watches(server)
    assert server.asked == {"list": 4, "watch": 4}
    assert "listed anew" in log.getvalue()
    assert watching.readiness.problem is None


@pytest.mark.parametrize(
    "server",
    [BrokenServer(expired=1000), BrokenServer(streams=[error(410)] * 1000)],
    ids=["by-status", "in-its-stream"],
)
def test_one_that_is_always_too_old_is_listed_less_and_less_often(log, monkeypatch, server):
    monkeypatch.setattr(Patience, "__iter__", lambda self: iter((0.1, 0.2, 0.4, 60)))
    asyncio.run(asked_no_more_often(server, watched(server), "list", 5))


@pytest.mark.parametrize("days", ["86400", "9" * 400, DATE, "\u00b2"])
def test_no_server_has_a_watch_of_kopf_wait_for_days(log, monkeypatch, days):
    def busy():
        return web.json_response({}, status=429, headers={"Retry-After": days})

    monkeypatch.setattr(patience, "RETRY_AFTER_LIMIT_SECONDS", 0.05)
    monkeypatch.setattr(freshness, "RETRY_AFTER_LIMIT_SECONDS", 0.05)
    server = BrokenServer(streams=[busy], lists=[busy])
    kopf_watches(server)
    assert server.asked == {"list": 2, "watch": 2}


@contextlib.asynccontextmanager
async def client(server: BrokenServer):
    async with server.served() as url:
        configuration = Configuration(host=url)
        kube = ApiKube(ApiClient(configuration), Settings(), Metrics().requests)
        try:
            yield kube
        finally:
            await kube.close()


class Seen(Silent):
    """Says when the first event came."""

    def __init__(self, cache: Cache) -> None:
        super().__init__(cache)
        self.came = asyncio.Event()

    def see(self, resource, change, document):
        super().see(resource, change, document)
        self.came.set()


@pytest.mark.parametrize(
    "stream", [each.values[0] for each in STREAMS], ids=[each.id for each in STREAMS]
)
def test_a_watch_of_our_own_goes_on_as_well(log, stream):
    server, cache = BrokenServer(streams=(stream,)), Cache()

    async def play():
        seen = Seen(cache)
        async with client(server) as kube:
            following = Follower(kube, cache, lambda: seen, PODS, None)
            task = asyncio.create_task(following.run())
            await until(seen.came, task)
            task.cancel()

    asyncio.run(play())
    assert server.asked["watch"] == 2
    assert [pod["metadata"]["name"] for pod in cache.stores[PODS]] == ["late"]
    is_silent = stream in (b"", error(410), too_old)
    assert is_silent or "a watch broke" in log.getvalue()


@pytest.mark.parametrize("text", ["<html>", '{"kind":', "[]", '{"error": "log in"}'])
def test_an_answer_that_is_none_is_tried_again_later(log, text):
    """Whoever asks again and again (lists, the Lease, the pulse) must not end by it."""
    answer = partial(web.Response, text=text, content_type="application/json")

    async def play():
        async with client(BrokenServer(lists=(answer,))) as kube:
            with pytest.raises(Unavailable, match=r"the answer is no (JSON|object)"):
                await kube.peek(PODS)

    asyncio.run(play())


def test_a_list_that_is_too_old_from_its_beginning_is_not_asked_for_without_a_rest(log):
    def too_old():
        return web.json_response({"code": 410}, status=410)

    async def play():
        server = BrokenServer(lists=[too_old] * 100)
        async with client(server) as kube:
            with pytest.raises(Unavailable, match="list"):
                async for _ in kube.pages(PODS):
                    pass
        return server.asked["list"]

    assert asyncio.run(play()) == 1


async def followed(server):
    async with client(server) as kube:
        following = Follower(kube, Cache(), lambda: Silent(Cache()), PODS, None)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(following.run(), PATIENCE_SECONDS)


@pytest.mark.parametrize("answer", [error(410), too_old], ids=["in-its-stream", "by-status"])
def test_a_watch_of_our_own_that_is_always_too_old_is_opened_less_and_less_often(
    log, monkeypatch, answer
):
    monkeypatch.setattr(Patience, "__iter__", lambda self: iter((0.05, 0.1, 60)))
    server = BrokenServer(streams=[answer] * 1000)
    asyncio.run(asked_no_more_often(server, followed(server), "watch", 4))


def test_a_watch_of_kopf_waits_as_long_as_the_server_asks(log, rests):
    asyncio.run(streams.broken("/api/v1/pods", "429 busy", 30.0))
    assert rests == [30.0]


def test_a_watch_of_our_own_waits_as_long_as_the_server_asks(log):
    def busy():
        return web.json_response({"code": 429}, status=429, headers={"Retry-After": "60"})

    server = BrokenServer(streams=[busy])
    asyncio.run(asked_no_more_often(server, followed(server), "watch", 1))


def test_nor_does_a_list_for_ghosts():
    answer = partial(web.Response, text="<html>", content_type="application/json")

    async def play():
        async with client(BrokenServer(lists=(answer,))) as kube:
            with pytest.raises(Unavailable):
                await prune(Cache(), kube, PODS, None)

    asyncio.run(play())
