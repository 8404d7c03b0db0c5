"""A server that speaks Prometheus' query API, honest and not."""

from __future__ import annotations

import asyncio
import json
import math
import re
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from aiohttp import web
from prometheus_client.parser import text_string_to_metric_families

from poolwise.cluster.clock import utc_now
from poolwise.cluster.prometheus import PODS_PER_QUERY, Prometheus
from poolwise.cluster.scraping import Reply, Target
from poolwise.environment import from_environment
from poolwise.errors import InvalidInput
from poolwise.plan.gateway import reading as gateway
from poolwise.plan.gateway.reading import PickerTold
from poolwise.plan.signals.adapters import Fault, read
from poolwise.plan.signals.sample import Sample
from poolwise.plan.steps.reading import ENGINE
from poolwise.plan.steps.sample import RunSample
from poolwise.settings import Settings
from tests.plan.signals import texts

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def _vector(*series: object) -> bytes:
    data = {"resultType": "vector", "result": series}
    return json.dumps({"status": "success", "data": data}).encode()


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
        if not query.startswith("timestamp("):
            result = [
                {"metric": {**labels, "__name__": name}, "value": [at, str(value)]}
                for name, labels, value in self._series()
                if _selects(query, {**labels, "__name__": name})
            ]
            return web.Response(body=_vector(*result), content_type="application/json")
        times: dict[str, Any] = {}
        for term in query.split(" or "):
            found = [
                labels
                for name, labels, _ in self._series()
                if _selects(term, {**labels, "__name__": name})
            ]
            if len({str(sorted(labels.items())) for labels in found}) < len(found):
                return refusal("vector cannot contain metrics with the same labelset")
            for labels in found:
                value = [at, str(at - self.age_seconds)]
                times.setdefault(str(sorted(labels.items())), {"metric": labels, "value": value})
        return web.Response(body=_vector(*times.values()), content_type="application/json")

    def _series(self) -> Any:
        for (namespace, pod), text in self.texts.items():
            for family in text_string_to_metric_families(text):
                for sample in family.samples:
                    for job in self.jobs:
                        added = {"namespace": namespace, "pod": pod, "job": job}
                        yield sample.name, {**sample.labels, **added}, sample.value


def refusal(error: str) -> web.Response:
    document = {"status": "error", "errorType": "execution", "error": error}
    return web.json_response(document, status=422)


def _selects(query: str, labels: dict[str, str]) -> bool:
    """As Prometheus matches: anchored patterns, or equal texts."""
    matchers = re.findall(r'(\w+)(=~?)"([^"]*)"', query)
    return all(
        re.fullmatch(value, labels.get(name, "")) if how == "=~" else labels.get(name) == value
        for name, how, value in matchers
    )


def looks(handler: Handler, *targets: Target, **settings: Any) -> list[Reply]:
    async def run() -> list[Reply]:
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
    assert re.match(r"Prometheus read it 3\d\d s ago", found.reason)  # a busy machine asks late


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


async def result_of_text(_: web.Request) -> web.StreamResponse:
    return web.json_response({"status": "success", "data": {"resultType": "vector", "result": "x"}})


async def overloaded(_: web.Request) -> web.StreamResponse:
    return refusal("query processing would load\ntoo many samples" + 1000 * "!")


async def error_of_status_200(_: web.Request) -> web.StreamResponse:
    return web.json_response({"status": "error", "error": "store down"})


async def silent(_: web.Request) -> web.StreamResponse:
    await asyncio.sleep(60)
    return web.Response()


@pytest.mark.parametrize(
    ("handler", "told"),
    [
        (refusing, "Prometheus cannot be queried: it answers HTTP 401"),
        (redirecting, "Prometheus cannot be queried: it answers HTTP 307"),
        (html, "Prometheus cannot be queried: "),
        (scalar, "Prometheus cannot be queried: its answer is not an instant vector"),
        (list_, "Prometheus cannot be queried: its answer is not an instant vector"),
        (result_of_text, "Prometheus cannot be queried: its answer is not an instant vector"),
        (
            overloaded,
            "Prometheus cannot be queried: it answers HTTP 422: query processing would load too"
            " many samples!!!",
        ),
        (error_of_status_200, "Prometheus cannot be queried: it answers with an error: store down"),
        (silent, "no answer from Prometheus within 0.5 s"),
    ],
)
def test_what_it_does_wrong_is_one_sentence(handler, told):
    [found] = looks(handler, CHAT, request_timeout_seconds=0.5 if handler is silent else 30)
    assert isinstance(found, Fault)
    assert found.reason.startswith(told)
    assert len(found.reason) < 300
    assert "\n" not in found.reason


def test_whatever_breaks_the_reader_holds_up_no_round(monkeypatch):
    def broken(*_: object) -> None:
        raise AttributeError("no such thing")

    monkeypatch.setattr("poolwise.cluster.prometheus.texts", broken)
    told = "Prometheus cannot be queried: AttributeError: no such thing"
    assert looks(Server().query, CHAT) == [Fault(told)]


@pytest.mark.parametrize("label", ["prometheus_replica", "replica", "cluster", "app", "any"])
def test_two_servers_that_scrape_one_pod_count_once(label):
    class Pair(Server):
        def _series(self) -> Any:
            for name, labels, value in super()._series():
                for which in "ab":
                    yield name, {**labels, label: which}, value

    [found] = looks(Pair().query, CHAT)
    assert isinstance(found, Sample)
    assert found == read(texts.VLLM_NEW, "vllm", "chat-0", found.at_seconds)


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


class Natives(Server):
    """Of two pods, the second of which tells first tokens as a native histogram."""

    def __init__(self, *buckets: tuple[int, str, str, str], count: str, total: str) -> None:
        super().__init__()
        told = "\n".join(
            line for line in texts.VLLM_NEW.splitlines() if "time_to_first_token" not in line
        )
        self.texts["search", "other-0"] = told + "\n"
        self.histogram = {"count": count, "sum": total, "buckets": buckets}

    async def query(self, request: web.Request) -> web.StreamResponse:
        answer = await super().query(request)
        assert isinstance(answer, web.Response) and isinstance(answer.body, bytes)
        document = json.loads(answer.body)
        if not self.queries[-1].startswith("timestamp("):
            labels = {"namespace": "search", "pod": "other-0", "job": "pods", "engine": "0"}
            series = {
                "metric": {"__name__": "vllm:time_to_first_token_seconds", **labels},
                "histogram": [utc_now().timestamp(), self.histogram],
            }
            document["data"]["result"].append(series)
        return web.json_response(document)


OTHER = Target("other", "other-0", "10.0.0.2", 8000, "vllm", "search")


def test_native_histograms_are_those_that_the_pod_told():
    """Schema 1: half powers of two."""
    native = Natives(
        (0, "0.5", "0.7071067811865475", "3"),
        (0, "1", "1.414213562373095", "6"),
        (3, "-2.938735877055719e-39", "2.938735877055719e-39", "1"),
        count="10",
        total="6.5",
    )
    both = looks(native.query, CHAT, OTHER)
    assert all(isinstance(each, Sample) for each in both)
    found = both[1]
    assert isinstance(found, Sample) and found.ttft_seconds is not None
    exposed = (
        'vllm:time_to_first_token_seconds{engine="0"} {count:10,sum:6.5,schema:1,'
        "zero_threshold:2.938735877055719e-39,zero_count:1,positive_spans:[-1:1,1:1],"
        "positive_deltas:[3,3]}\n"
    )
    direct = read(exposed, "vllm", "other-0", found.at_seconds)
    assert isinstance(direct, Sample)
    assert found.ttft_seconds == direct.ttft_seconds


def test_native_histograms_with_bounds_of_their_own_are_the_classic_ones_they_were():
    told = ((0, "0", "0.5", "4"), (0, "0.5", "1", "5"), (0, "2.5", "+Inf", "1"))
    [_, found] = looks(Natives(*told, count="10", total="9.5").query, CHAT, OTHER)
    assert isinstance(found, Sample) and found.ttft_seconds is not None
    assert found.ttft_seconds.upper_bounds == (0.5, 1.0, 2.5, math.inf)
    assert found.ttft_seconds.counts == (4.0, 9.0, 9.0, 10.0)
    assert found.ttft_seconds.total == 9.5


def test_what_cannot_be_read_of_one_pod_says_nothing_of_the_others():
    native = Natives((0, "0.5", "much", "4"), count="4", total="2")
    good, bad = looks(native.query, CHAT, OTHER)
    assert isinstance(good, Sample)
    assert isinstance(bad, Fault)
    assert bad.reason.startswith("Prometheus has metrics of it that cannot be read: vllm:")
    assert "'much'" in bad.reason


class Relabelled(Server):
    """One pod that two jobs scrape, of which one adds labels of the pod."""

    def _series(self) -> Any:
        for name, labels, value in super()._series():
            yield name, labels, value
            yield name, {**labels, "job": "monitor", "app": "chat", "pod_template_hash": "x"}, value


class Mirrored(Server):
    """Two servers behind one query."""

    def _series(self) -> Any:
        for name, labels, value in super()._series():
            for replica in ("a", "b"):
                yield name, {**labels, "prometheus_replica": replica}, value


@pytest.mark.parametrize("server", [Relabelled, Mirrored])
def test_a_pod_that_is_scraped_twice_counts_once(server: type[Server]):
    [found] = looks(server().query, CHAT)
    assert isinstance(found, Sample)
    direct = read(texts.VLLM_NEW, "vllm", "chat-0", found.at_seconds)
    assert isinstance(direct, Sample)
    assert (found.running, found.ttft_seconds) == (direct.running, direct.ttft_seconds)


@pytest.mark.parametrize(
    ("status", "body", "told"),
    [
        (200, b"[" * 200_000, "its answer is nested too deeply"),
        (200, _vector({"metric": "x", "value": [0, "1"]}), "Prometheus has no series of it"),
        (200, _vector("x"), "Prometheus has no series of it"),
        (422, b"[" * 20_000, "it answers HTTP 422"),
        (422, b'{"status":"error","error":"too many samples"}', "HTTP 422: too many samples"),
        (502, b"<html>", "it answers HTTP 502"),
    ],
)
def test_whatever_it_answers_is_a_fault_and_its_own_words_are_told(
    status: int, body: bytes, told: str
):
    async def answer(_: web.Request) -> web.StreamResponse:
        return web.Response(status=status, body=body, content_type="application/json")

    [found] = looks(answer, CHAT)
    assert isinstance(found, Fault) and told in found.reason


def test_an_endpoint_picker_that_wants_a_login_is_read_through_it():
    server = Server(jobs=("pods", "services"))
    flow = 'fairness_id="default",inference_pool="chat",priority="0"'
    server.texts = {
        ("search", "epp-0"): "# TYPE llm_d_epp_flow_control_queue_size gauge\n"
        f"llm_d_epp_flow_control_queue_size{{{flow}}} 3\n"
        "# TYPE llm_d_epp_flow_control_pool_saturation gauge\n"
        'llm_d_epp_flow_control_pool_saturation{inference_pool="chat",stage="effective"} 1\n'
        + texts.family(
            "llm_d_epp_flow_control_request_queue_duration_seconds",
            {"0.5": 10, "+Inf": 12},
            9.0,
            f'{flow},outcome="Dispatched"',
        )
    }
    picker = Target("uid", "epp-0", "10.0.0.2", 9090, gateway.ENGINE, "search")
    [found] = looks(server.query, picker)
    assert isinstance(found, PickerTold)
    assert (found.runs_flow_control, dict(found.queues)) == (True, {"chat": 3.0})
    assert found.measured is not None and found.measured.queue_seconds is not None
    assert found.measured.queue_seconds.counts == (10.0, 12.0)
    idle = server.texts["search", "epp-0"].split("\n", 2)[2]
    server.texts = {("search", "epp-0"): idle}
    [found] = looks(server.query, picker)
    assert isinstance(found, PickerTold)
    assert (found.runs_flow_control, dict(found.queues)) == (True, {})
