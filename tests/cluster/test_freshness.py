"""A watch is as old as its last byte."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace

import aiohttp
import pytest
from aiohttp import web
from yarl import URL

from poolwise.cluster.freshness import Freshness, KindIsGone
from poolwise.cluster.readiness import Readiness
from poolwise.cluster.resources import PODS as POD_KIND

PODS = "/api/v1/pods"
FORBIDDEN = 'pods is forbidden: User "x" cannot watch resource "pods"'


@pytest.fixture
def clock():
    return SimpleNamespace(seconds=0.0)


@pytest.fixture
def readiness():
    readiness = Readiness()
    readiness.filled()
    return readiness


@pytest.fixture
def freshness(clock, readiness):
    freshness = Freshness(lambda: clock.seconds, readiness)
    freshness.require([(POD_KIND, None)])
    return freshness


def response(received_bytes=0):
    return SimpleNamespace(content=SimpleNamespace(total_bytes=received_bytes))


def test_a_watch_that_never_opens_grows_old(freshness, clock):
    clock.seconds = 200
    assert freshness.ages_seconds() == {PODS: 200}


def test_bytes_make_it_young_again(freshness, clock):
    stream = response()
    freshness.opened(PODS, stream)
    clock.seconds = 60
    assert freshness.ages_seconds()[PODS] == 60
    stream.content.total_bytes = 120
    assert freshness.ages_seconds()[PODS] == 0
    clock.seconds = 100
    assert freshness.ages_seconds()[PODS] == 40


def test_opening_again_counts_as_news(freshness, clock):
    freshness.opened(PODS, response(500))
    clock.seconds = 90
    freshness.opened(PODS, response())
    assert freshness.ages_seconds()[PODS] == 0


def test_of_several_namespaces_the_oldest_counts(freshness, clock):
    freshness.require([(POD_KIND, "a"), (POD_KIND, "b")])
    clock.seconds = 90
    freshness.opened("/api/v1/namespaces/b/pods", response())
    assert freshness.oldest_seconds() == {"pods": 90}


def ask(freshness, path, status, body, query="?watch=true"):
    """What a session with the middleware gets from a server that answers so."""

    async def answer(request):
        return web.Response(status=status, text=body, content_type="application/json")

    async def scenario():
        application = web.Application()
        application.router.add_get(path, answer)
        runner = web.AppRunner(application)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        host, port = runner.addresses[0]
        try:
            async with aiohttp.ClientSession(middlewares=[freshness.middleware]) as session:
                url = f"http://{host}:{port}{path}{query}"
                async with session.get(url) as response:
                    return response.status, await response.text()
        finally:
            await runner.cleanup()

    return asyncio.run(scenario())


def refusal(message):
    return json.dumps({"kind": "Status", "message": message})


@pytest.mark.parametrize("prefix", ["", "/k8s/clusters/c-1"], ids=["direct", "behind-a-prefix"])
def test_an_answer_is_news(freshness, clock, prefix):
    clock.seconds = 90
    assert ask(freshness, prefix + PODS, 200, "{}") == (200, "{}")
    assert freshness.ages_seconds() == {PODS: 0}


def test_a_list_is_told_of_once_and_also_where_it_is_empty(freshness):
    """All objects of a kind may have gone between two lists: kopf hands on no event then."""
    assert freshness.listed() == set()
    ask(freshness, PODS, 200, '{"items": []}', query="?watch=true")
    assert freshness.listed() == set()
    ask(freshness, PODS, 200, '{"items": []}', query="")
    assert freshness.listed() == {POD_KIND}
    assert freshness.listed() == set()


def test_other_watches_are_nobodys_business(freshness, clock):
    clock.seconds = 90
    ask(freshness, "/api/v1/secrets", 200, "{}")
    assert freshness.ages_seconds() == {PODS: 90}


def test_a_refusal_is_told_is_no_silence_and_reaches_kopf(freshness, clock, readiness):
    clock.seconds = 300
    status, body = ask(freshness, PODS, 403, refusal(FORBIDDEN))
    assert (status, json.loads(body)["message"]) == (403, FORBIDDEN)
    assert FORBIDDEN in readiness.problem
    assert freshness.ages_seconds() == {PODS: 0}
    ask(freshness, PODS, 200, "{}")
    assert readiness.problem is None


def test_a_kind_that_is_gone_looks_like_a_broken_connection_to_kopf(freshness, readiness):
    with pytest.raises(KindIsGone):
        ask(freshness, PODS, 404, "404 page not found")
    assert "does not know pods" in readiness.problem


def test_an_answer_that_kopf_never_sees_is_closed(freshness):
    """Nobody else would give its connection back, and kopf asks again and again."""
    answers: list[object] = []

    async def handler(request):
        answers.append(SimpleNamespace(status=404, reason="", json=_no_json, close=close))
        return answers[-1]

    def close():
        answers.append("closed")

    request = SimpleNamespace(url=URL(f"http://server{PODS}?watch=true"))
    with pytest.raises(KindIsGone):
        asyncio.run(freshness.middleware(request, handler))
    assert answers[1:] == ["closed"]


async def _no_json():
    raise ValueError


@pytest.mark.parametrize("query", ["?watch=true", ""], ids=["watch", "list"])
def test_a_server_that_fails_is_for_kopf_to_ask_again(freshness, readiness, query):
    assert ask(freshness, PODS, 503, "overloaded", query) == (503, "overloaded")
    assert readiness.problem is None


def test_a_session_that_is_closed_under_way_is_told_as_kopf_knows_it(freshness):
    """So it is when we are told to end while nothing comes back; kopf ends at any other error."""

    async def end(request, handler):
        await request.session.close()
        return await handler(request)

    async def ask() -> None:
        session = aiohttp.ClientSession(middlewares=[end, freshness.middleware])
        await session.get("http://127.0.0.1:1/")

    with pytest.raises(RuntimeError, match="Session is closed"):
        asyncio.run(ask())
