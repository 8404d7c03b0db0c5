"""Answers that cannot be read, of a real server: each is tried again, and told in a line of log."""

from __future__ import annotations

import asyncio
import contextlib
import time
from functools import partial

import aiohttp
import kopf
import pytest
from aiohttp import web
from kubernetes.aio.client import ApiClient, Configuration

from poolwise.cluster import streams
from poolwise.cluster.cache import Cache
from poolwise.cluster.following import Follower, Silent
from poolwise.cluster.freshness import Freshness
from poolwise.cluster.kube import ApiKube
from poolwise.cluster.listing import Patience, prune
from poolwise.cluster.metrics import Metrics
from poolwise.cluster.readiness import Readiness
from poolwise.cluster.resources import PODS
from poolwise.errors import Unavailable
from poolwise.settings import Settings
from tests.cluster.broken_server import EVENT, BrokenServer, error, page

DATE = "Wed, 21 Oct 2026 07:28:00 GMT"
HALF = EVENT[: len(EVENT) // 2]
PATIENCE_SECONDS = 20.0

STREAMS = [
    pytest.param(HALF, "it ended inside a line", id="half-a-line"),
    pytest.param(b"upstream went away\n", "a line is no event", id="words-of-a-proxy"),
    pytest.param(error(500), "500 no leader", id="an-error"),
    pytest.param(b'{"type":"ERROR"}\n', "an error without a code", id="half-an-error"),
    pytest.param(b'{"type":"ERROR","object":7}\n', "an error without a code", id="no-status"),
    pytest.param(error(410), "", id="too-old"),
    pytest.param(b"", "", id="empty"),
    pytest.param(page, "the answer is text/html", id="a-page"),
]


@pytest.fixture(autouse=True)
def hasty(monkeypatch):
    monkeypatch.setattr(streams, "_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr("poolwise.cluster.following._PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(Patience, "__iter__", lambda self: iter([0.01] * 100))


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
        freshness = Freshness(time.monotonic, self.readiness)
        freshness.require([(PODS, None)])
        handlers = kopf.OperatorRegistry()

        @kopf.on.login(registry=handlers, id="login")
        async def log_in(**_):
            session = aiohttp.ClientSession(middlewares=[freshness.middleware])
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


def kopf_watches(server: BrokenServer) -> Kopf:
    async def play() -> Kopf:
        watching = Kopf()
        async with server.served() as url:
            await watching.watch(url)
        return watching

    return asyncio.run(play())


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
    is_silent = stream in (b"", error(410))
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


async def followed(server, watches):
    """Until it has asked for so many; how long that took, in seconds."""
    async with client(server) as kube:
        following = Follower(kube, Cache(), lambda: Silent(Cache()), PODS, None)
        started = time.monotonic()
        task = asyncio.create_task(following.run())
        async with asyncio.timeout(PATIENCE_SECONDS):
            while server.asked["watch"] < watches and not task.done():
                await asyncio.sleep(0.001)
        seconds = time.monotonic() - started
        await asyncio.sleep(0.2)  # in which it may ask too often
        assert not task.done()
        task.cancel()
        return seconds


def test_a_watch_that_is_too_old_again_and_again_is_opened_now_and_then(log, monkeypatch):
    monkeypatch.setattr("poolwise.cluster.following._PAUSE_SECONDS", 0.1)
    server = BrokenServer(streams=[error(410)] * 1000)
    assert asyncio.run(followed(server, 4)) > 2 * 0.1  # three rests, some a little shorter


def test_a_watch_waits_as_long_as_the_server_asks(log):
    def busy():
        return web.json_response({"code": 429}, status=429, headers={"Retry-After": "60"})

    server = BrokenServer(streams=[busy])
    asyncio.run(followed(server, 1))
    assert server.asked["watch"] == 1


def test_nor_does_a_list_for_ghosts(log):
    answer = partial(web.Response, text="<html>", content_type="application/json")

    async def play():
        async with client(BrokenServer(lists=(answer,))) as kube:
            assert await prune(Cache(), kube, PODS, None) == []

    asyncio.run(play())
    assert "tried again later" in log.getvalue()
