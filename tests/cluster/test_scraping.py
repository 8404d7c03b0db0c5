"""Real servers on loopback addresses, honest and lying, as pods of a cluster would be."""

from __future__ import annotations

import asyncio
import gzip
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace

import pytest
from aiohttp import web

from poolwise.cluster import scraping
from poolwise.cluster.scraping import Reply, Scraper, Target, reply_of, sentence, url_of
from poolwise.plan.gateway import reading as gateway
from poolwise.plan.gateway.reading import PickerTold
from poolwise.plan.signals.adapters import Fault
from poolwise.plan.signals.sample import Sample
from poolwise.plan.steps.reading import ENGINE
from poolwise.plan.steps.sample import RunSample
from poolwise.settings import Settings
from tests.plan.signals import texts

PATIENT = Settings(scrape_timeout_seconds=30, scrape_limit_bytes=2**16)
"""Whoever answers is waited for, however busy the machine is."""
HASTY = PATIENT.model_copy(update={"scrape_timeout_seconds": 0.5})
"""For whoever never does."""
BOMB = gzip.compress(b"# zeros\n" * 1_000_000)
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


async def honest(_: web.Request) -> web.StreamResponse:
    return web.Response(text=texts.VLLM_NEW)


async def training(_: web.Request) -> web.StreamResponse:
    return web.Response(text="training_steps_total 7\npython_info 1\n")


async def flow_control(_: web.Request) -> web.StreamResponse:
    name = "llm_d_epp_flow_control"
    labels = 'fairness_id="default",inference_pool="chat",priority="0"'
    return web.Response(
        text=f"{name}_dispatch_cycle_duration_seconds_count 9\n{name}_queue_size{{{labels}}} 4\n"
    )


async def html(_: web.Request) -> web.StreamResponse:
    return web.Response(text="<!doctype html><p>hello", content_type="text/html")


async def refusing(_: web.Request) -> web.StreamResponse:
    return web.Response(status=401)


async def redirecting(_: web.Request) -> web.StreamResponse:
    return web.Response(status=302, headers={"Location": "http://169.254.169.254/latest"})


async def silent(_: web.Request) -> web.StreamResponse:
    await asyncio.sleep(60)
    return web.Response()


async def endless(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    while True:
        await response.write(b"# comment\n" * 1000)


async def dripping(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    while True:
        await response.write(b"#")
        await asyncio.sleep(0.05)


async def compressed(_: web.Request) -> web.StreamResponse:
    return web.Response(body=BOMB, headers={"Content-Encoding": "gzip"})


@asynccontextmanager
async def serving(handler: Handler, address: str = "127.0.0.1") -> AsyncIterator[Target]:
    application = web.Application()
    application.router.add_get("/metrics", handler)
    runner = web.AppRunner(application, handle_signals=False, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, address, 0)
    await site.start()
    port = runner.addresses[0][1]
    try:
        yield Target(f"uid-{port}", f"pod-{port}", address, port, "vllm")
    finally:
        await runner.cleanup()


def settings_for(handler: Handler) -> Settings:
    return HASTY if handler in (silent, dripping) else PATIENT


async def looks_at(targets: list[Target], settings: Settings = PATIENT) -> Mapping[Target, Reply]:
    scraper = Scraper(settings)
    try:
        return await scraper.look(targets)
    finally:
        await scraper.close()


def look_at(handler: Handler) -> Reply:
    async def run() -> Reply:
        async with serving(handler) as target:
            return (await looks_at([target], settings_for(handler)))[target]

    return asyncio.run(run())


def test_what_a_replica_tells_is_a_sample_with_its_name_and_our_time():
    found = look_at(honest)
    assert isinstance(found, Sample)
    assert found.replica.startswith("pod-")
    assert found.running == 3
    assert found.at_seconds > 1.7e9


@pytest.mark.parametrize(
    ("handler", "told"),
    [
        (html, "answers '<!doctype html>"),
        (refusing, "answers HTTP 401 instead of metrics"),
        (redirecting, "answers HTTP 302 instead of metrics"),
        (silent, "no answer within 0.5 s"),
        (dripping, "no answer within 0.5 s"),
        (endless, "answers more than 65536 bytes"),
        (compressed, "answers compressed, though asked not to"),
    ],
)
def test_what_lies_or_hangs_is_one_sentence(handler, told):
    found = look_at(handler)
    assert isinstance(found, Fault)
    assert found.reason.startswith(told)
    assert found.asks_for_login == (handler is refusing)


def test_a_service_whose_replicas_all_hang_costs_another_one_timeout_at_most():
    """Four may be asked at once. Once those have hung for the whole time, the other has its turn
    before the rest."""

    async def run() -> int:
        asked = 0

        async def hangs(request: web.Request) -> web.StreamResponse:
            nonlocal asked
            asked += 1
            return await silent(request)

        settings = HASTY.model_copy(update={"scrape_connections": 4, "scrape_timeout_seconds": 2})
        async with serving(hangs) as bad, serving(honest) as good:
            scraper = Scraper(settings)
            hanging = [replace(bad, uid=str(number)) for number in range(40)]
            async with asyncio.TaskGroup() as tasks:
                others = tasks.create_task(scraper.look(hanging))
                while asked < 4:
                    await asyncio.sleep(0.01)
                found = await scraper.look([good])
                before = asked
                others.cancel()
            await scraper.close()
            assert isinstance(found[good], Sample)
            return before

    assert asyncio.run(run()) <= 2 * 4


def test_a_service_whose_replicas_take_long_to_read_costs_another_a_few_of_them(monkeypatch):
    """One text is read at a time. Those of a call wait for each other, and not in front of others;
    and what waits holds its connection, so that memory is bounded."""
    read: list[str] = []

    def slowly(text: str, target: Target, at_seconds: float) -> Reply:
        time.sleep(0.01)
        read.append(target.replica)
        return reply_of(text, target, at_seconds)

    async def run() -> int:
        asked = 0

        async def counted(request: web.Request) -> web.StreamResponse:
            nonlocal asked
            asked += 1
            assert asked - len(read) <= 4
            return await honest(request)

        settings = PATIENT.model_copy(update={"scrape_connections": 4})
        async with serving(counted) as many, serving(honest) as few:
            scraper = Scraper(settings)
            long = [replace(many, uid=str(number)) for number in range(200)]
            async with asyncio.TaskGroup() as tasks:
                others = tasks.create_task(scraper.look(long))
                while len(read) < 8:
                    await asyncio.sleep(0.01)
                before = len(read)
                assert isinstance((await scraper.look([few]))[few], Sample)
                between = read.index(few.replica) - before
                looks = await others
            await scraper.close()
            assert all(isinstance(look, Sample) for look in looks.values())
            return between

    monkeypatch.setattr(scraping, "reply_of", slowly)
    assert asyncio.run(run()) <= 40


def test_one_that_the_reader_fails_on_costs_its_own_look(monkeypatch):
    def fails_on_one(text: str, target: Target, at_seconds: float) -> Reply:
        if target.uid == "bad":
            raise OverflowError("int too large to convert to float")
        return reply_of(text, target, at_seconds)

    async def run() -> Mapping[Target, Reply]:
        async with serving(honest) as good:
            return await looks_at([replace(good, uid="bad"), good])

    monkeypatch.setattr(scraping, "reply_of", fails_on_one)
    bad, good = asyncio.run(run()).values()
    assert bad == Fault("its metrics cannot be read: int too large to convert to float")
    assert isinstance(good, Sample)


def test_an_error_without_a_word_is_told_by_its_name():
    assert sentence(ConnectionResetError()) == "ConnectionResetError"


def test_nobody_there_is_one_sentence():
    [found] = asyncio.run(looks_at([Target("u", "p", "127.0.0.1", 1, "vllm")])).values()
    assert found == Fault("cannot be scraped: 127.0.0.1 port 1: Connection refused")


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (b"", "it closes the connection without an answer"),
        (b"\x16\x03\x01 hello\r\n\r\n", "its answer is not valid HTTP: Bad status line"),
        (
            b"HTTP/1.1 200 OK\r\nX: " + b"a" * 20_000 + b"\r\n\r\n",
            "its answer is not valid HTTP: Got more than 8190 bytes when reading",
        ),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nvllm", "its answer ends too early"),
    ],
)
def test_what_speaks_no_http_is_one_sentence_without_the_words_of_a_library(answer, told):
    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()
        writer.close()

    async def run() -> Reply:
        async with await asyncio.start_server(speak, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            [found] = (await looks_at([Target("u", "p", "127.0.0.1", port, "vllm")])).values()
            return found

    assert asyncio.run(run()) == Fault(f"cannot be scraped: {told}")


@pytest.mark.parametrize("address", ["169.254.169.254", "224.0.0.1", "0.0.0.0", "example.org", ""])
def test_addresses_that_no_pod_has_are_not_asked(address):
    with pytest.raises(ValueError, match="address"):
        url_of(Target("u", "p", address, 80, "vllm"))


def test_ipv6_addresses_are_asked():
    assert str(url_of(Target("u", "p", "fd00::7", 8000, "vllm"))) == "http://[fd00::7]:8000/metrics"


def test_honest_ones_are_read_beside_many_that_hang():
    """Hundreds that hang cost their own looks: with turns for all, one timeout altogether."""

    async def run() -> Mapping[Target, Reply]:
        async with AsyncExitStack() as stack:
            hanging = await stack.enter_async_context(serving(silent))
            several = [
                Target(f"hangs-{n}", f"hangs-{n}", hanging.address, hanging.port, "vllm")
                for n in range(200)
            ]
            good = [
                await stack.enter_async_context(serving(honest, f"127.0.0.{n}"))
                for n in range(1, 4)
            ]
            settings = Settings(scrape_timeout_seconds=6, scrape_connections=256)
            return await looks_at([*several, *good], settings)

    found = asyncio.run(run())
    good = [look for look in found.values() if isinstance(look, Sample)]
    assert len(found) == 203
    assert len(good) == 3


def test_a_dead_replica_leaves_the_scraper_usable():
    async def run() -> list[Reply]:
        scraper = Scraper(PATIENT)
        async with serving(honest) as target:
            nobody = Target("u", "p", "127.0.0.1", 1, "vllm")
            looks = [(await scraper.look([nobody]))[nobody]]
            looks += [(await scraper.look([target]))[target] for _ in range(2)]
        await scraper.close()
        return looks

    first, second, third = asyncio.run(run())
    assert isinstance(first, Fault)
    assert isinstance(second, Sample)
    assert isinstance(third, Sample)


@pytest.mark.parametrize(
    ("handler", "told"),
    [(training, None), (html, "not Prometheus' text format"), (endless, "more than 65536 bytes")],
)
def test_rank_0_of_a_run_is_read_by_the_same_rules(handler, told):
    async def run() -> Reply:
        async with serving(handler) as at:
            target = replace(at, engine=ENGINE)
            return (await looks_at([target], settings_for(handler)))[target]

    look = asyncio.run(run())
    if told is None:
        assert isinstance(look, RunSample)
        assert (look.steps, look.samples) == (7.0, None)
    else:
        assert isinstance(look, Fault) and told in look.reason


@pytest.mark.parametrize(
    ("handler", "told"),
    [
        (flow_control, None),
        (html, "not Prometheus' text format"),
        (endless, "more than 65536 bytes"),
        (refusing, "HTTP 401"),
        (redirecting, "HTTP 302"),
        (silent, "no answer within 0.5 s"),
    ],
)
@pytest.mark.parametrize("engine", [gateway.ENGINE, gateway.QUEUE_ALONE])
def test_an_endpoint_picker_is_read_by_the_same_rules(handler, told, engine):
    async def run() -> Reply:
        async with serving(handler) as at:
            target = replace(at, engine=engine)
            return (await looks_at([target], settings_for(handler)))[target]

    look = asyncio.run(run())
    if told is None:
        assert isinstance(look, PickerTold)
        assert (look.runs_flow_control, dict(look.queues)) == (True, {"chat": 4.0})
    else:
        assert isinstance(look, Fault) and told in look.reason


def test_nobody_is_shown_a_token():
    """An InferencePool may name any pods of its namespace: whoever makes one would get it."""
    shown: list[dict[str, str]] = []

    async def curious(request: web.Request) -> web.StreamResponse:
        shown.append(dict(request.headers))
        return web.Response(status=401, headers={"WWW-Authenticate": "Bearer"})

    async def run() -> None:
        async with serving(curious) as at:
            await looks_at([replace(at, engine=gateway.ENGINE)])

    asyncio.run(run())
    (headers,) = shown
    assert not {"Authorization", "Cookie", "Proxy-Authorization"} & headers.keys()
