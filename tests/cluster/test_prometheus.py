"""A server that speaks Prometheus' query API, honest and not."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from aiohttp import web
from prometheus_client.parser import text_string_to_metric_families

from poolwise.cluster.clock import utc_now
from poolwise.cluster.prometheus import PODS_PER_QUERY, Prometheus
from poolwise.cluster.scraping import Look, Target
from poolwise.environment import from_environment
from poolwise.errors import InvalidInput
from poolwise.plan.signals.adapters import Fault, read
from poolwise.plan.signals.sample import Sample
from poolwise.plan.steps.reading import ENGINE
from poolwise.plan.steps.sample import RunSample
from poolwise.settings import Settings
from tests.plan.signals import texts

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
CHAT = Target("uid", "chat-0", "10.0.0.1", 8000, "vllm", "search")


class Server:
    """Holds what it scraped of pods, as ``(namespace, pod) -> text``."""

    def __init__(self, *, age_seconds: float = 0.0, jobs: tuple[str, ...] = ("pods",)) -> None:
        self.texts = {("search", "chat-0"): texts.VLLM_NEW}
        self.age_seconds = age_seconds
        self.jobs = jobs
        self.queries: list[str] = []

    async def query(self, request: web.Request) -> web.StreamResponse:
        query = str((await request.post())["query"])
        self.queries.append(query)
        at = utc_now().timestamp()
        times = query.startswith("timestamp(")
        result = [
            {
                "metric": {**labels, **({} if times else {"__name__": name})},
                "value": [at, str(at - self.age_seconds if times else value)],
            }
            for name, labels, value in self._series()
            if _selects(query, {**labels, "__name__": name})
        ]
        document = {"status": "success", "data": {"resultType": "vector", "result": result}}
        return web.json_response(document)

    def _series(self) -> Any:
        for (namespace, pod), text in self.texts.items():
            for family in text_string_to_metric_families(text):
                for sample in family.samples:
                    for job in self.jobs:
                        added = {"namespace": namespace, "pod": pod, "job": job}
                        yield sample.name, {**sample.labels, **added}, sample.value


def _selects(query: str, labels: dict[str, str]) -> bool:
    """As Prometheus matches: anchored patterns, or equal texts."""
    matchers = re.findall(r'(\w+)(=~?)"([^"]*)"', query)
    return all(
        re.fullmatch(value, labels.get(name, "")) if how == "=~" else labels.get(name) == value
        for name, how, value in matchers
    )


def looks(handler: Handler, *targets: Target, **settings: Any) -> list[Look]:
    async def run() -> list[Look]:
        application = web.Application()
        application.router.add_post("/api/v1/query", handler)
        runner = web.AppRunner(application, handle_signals=False, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        url = f"http://127.0.0.1:{runner.addresses[0][1]}/"
        source = Prometheus(Settings(prometheus_url=url, **settings))
        try:
            found = await source.look(targets)
        finally:
            await source.close()
            await runner.cleanup()
        return [found[target] for target in targets]

    return asyncio.run(run())


def test_it_tells_what_the_pod_would_have_told():
    [found] = looks(Server().query, CHAT)
    assert isinstance(found, Sample)
    assert found == read(texts.VLLM_NEW, "vllm", "chat-0", found.at_seconds)


def test_two_jobs_that_scrape_one_pod_count_once():
    [found] = looks(Server(jobs=("pods", "services")).query, CHAT)
    assert isinstance(found, Sample)
    assert found.running == 3


def test_pods_of_the_same_name_elsewhere_are_not_asked_for():
    server = Server()
    server.texts = {("elsewhere", "chat-0"): texts.VLLM_NEW}
    assert looks(server.query, CHAT) == [Fault("Prometheus has no series of it")]


def test_many_pods_are_asked_for_in_few_queries():
    server = Server()
    several = [
        Target(f"u{n}", f"chat-{n}", "", 8000, "vllm", "search") for n in range(2 * PODS_PER_QUERY)
    ]
    found = looks(server.query, *several)
    assert len(server.queries) == 4
    assert sum(isinstance(each, Sample) for each in found) == 1


def test_what_it_read_long_ago_is_none():
    [found] = looks(Server(age_seconds=300).query, CHAT)
    assert isinstance(found, Fault)
    assert found.reason.startswith("Prometheus read it 300 s ago")


async def refusing(_: web.Request) -> web.StreamResponse:
    return web.Response(status=401, text="who are you")


async def redirecting(_: web.Request) -> web.StreamResponse:
    return web.Response(status=307, headers={"Location": "http://169.254.169.254/"})


async def html(_: web.Request) -> web.StreamResponse:
    return web.Response(text="<html>")


async def scalar(_: web.Request) -> web.StreamResponse:
    return web.json_response({"status": "success", "data": {"resultType": "scalar"}})


async def list_(_: web.Request) -> web.StreamResponse:
    return web.json_response([])


async def silent(_: web.Request) -> web.StreamResponse:
    await asyncio.sleep(5)
    return web.Response()


@pytest.mark.parametrize(
    ("handler", "told"),
    [
        (refusing, "Prometheus cannot be asked: it answers HTTP 401"),
        (redirecting, "Prometheus cannot be asked: it answers HTTP 307"),
        (html, "Prometheus cannot be asked: "),
        (scalar, "Prometheus cannot be asked: it answers no instant vector"),
        (list_, "Prometheus cannot be asked: "),
        (silent, "Prometheus gives no answer within 0.5 s"),
    ],
)
def test_what_it_does_wrong_is_one_sentence(handler, told):
    [found] = looks(handler, CHAT, request_timeout_seconds=0.5 if handler is silent else 30)
    assert isinstance(found, Fault)
    assert found.reason.startswith(told)


def test_the_token_is_as_it_is_on_its_file_now(tmp_path):
    token = tmp_path / "token"
    token.write_text("secret\n")
    source = Prometheus(Settings(prometheus_url="https://p", prometheus_token_file=str(token)))
    assert source._headers() == {"Authorization": "Bearer secret"}
    token.write_text("renewed\n")
    assert source._headers() == {"Authorization": "Bearer renewed"}


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"PROMETHEUS_URL": "prometheus:9090"}, "must begin with http"),
        (
            {"PROMETHEUS_URL": "http://p", "PROMETHEUS_TOKEN_FILE": "/t"},
            "needs a prometheus_url of https://",
        ),
    ],
)
def test_settings_that_cannot_be_meant_are_refused(given, told):
    with pytest.raises(InvalidInput, match=told):
        from_environment({f"POOLWISE_{name}": value for name, value in given.items()})


def test_it_tells_of_runs_as_rank_0_would():
    run = Target("uid", "run-0", "10.0.0.2", 9090, ENGINE, "search")
    server = Server()
    server.texts["search", "run-0"] = (
        "training_steps_total 12\ntraining_step_seconds_sum 6\ntraining_step_seconds_count 12\n"
    )
    chat, told = looks(server.query, CHAT, run)
    assert isinstance(chat, Sample)
    assert isinstance(told, RunSample)
    assert (told.steps, told.timed_steps, told.timed_seconds) == (12.0, 12.0, 6.0)
    del server.texts["search", "run-0"]
    (gone,) = looks(server.query, run)
    assert gone == Fault("Prometheus has no series of it")
