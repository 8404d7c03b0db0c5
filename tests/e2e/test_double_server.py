"""The inference double as a server: its interface and its metrics."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer
from prometheus_client.parser import text_string_to_metric_families

from e2e.images.double.arguments import read
from e2e.images.double.metrics import (
    INTER_TOKEN_SECONDS,
    ITERATION_TOKENS,
    TIME_TO_FIRST_TOKEN_SECONDS,
    one_two_five,
)
from e2e.images.double.server import build

FAST = {
    "DOUBLE_BASE_SECONDS": "0.001",
    "DOUBLE_SEQUENCE_SECONDS": "0",
    "DOUBLE_PREFILL_TOKEN_SECONDS": "0",
}

VLLM_METRICS = {
    "cache_config_info",
    "e2e_request_latency_seconds",
    "generation_tokens",
    "inter_token_latency_seconds",
    "iteration_tokens_total",
    "kv_cache_usage_perc",
    "num_preemptions",
    "num_requests_running",
    "num_requests_waiting",
    "num_requests_waiting_by_reason",
    "prefix_cache_hits",
    "prefix_cache_queries",
    "prompt_tokens",
    "prompt_tokens_by_source",
    "prompt_tokens_cached",
    "request_decode_time_seconds",
    "request_generation_tokens",
    "request_inference_time_seconds",
    "request_max_num_generation_tokens",
    "request_params_max_tokens",
    "request_params_n",
    "request_prefill_kv_computed_tokens",
    "request_prefill_time_seconds",
    "request_prompt_tokens",
    "request_queue_time_seconds",
    "request_success",
    "request_time_per_output_token_seconds",
    "time_to_first_token_seconds",
}
"""What a vLLM of 2026 shows for a text model, without speculative decoding, LoRA and the like."""

Client = TestClient[Any, Any]


@contextlib.asynccontextmanager
async def served(*words: str, **environment: str) -> AsyncIterator[Client]:
    """A client of a server in this event loop."""
    options = read(["serve", "m", "--served-model-name=assistant", *words], FAST | environment)
    async with TestClient(TestServer(build(options).application())) as client:
        yield client


def against(
    *words: str, **environment: str
) -> Callable[[Callable[[Client], Awaitable[None]]], None]:
    """Run a test's body with a client; ``words`` and ``environment`` are the engine's."""

    def execute(body: Callable[[Client], Awaitable[None]]) -> None:
        async def serve() -> None:
            async with served(*words, **environment) as client:
                await body(client)

        asyncio.run(serve())

    return execute


async def samples(client: Client) -> dict[str, float]:
    """Every sample of /metrics, labels of the engine left out."""
    text = await (await client.get("/metrics")).text()
    constant = {"model_name", "engine"}
    return {
        "|".join([each.name, *(v for k, v in each.labels.items() if k not in constant)]): each.value
        for family in text_string_to_metric_families(text)
        for each in family.samples
    }


async def ask(client: Client, **body: Any) -> Any:
    path = "/v1/chat/completions" if "messages" in body else "/v1/completions"
    response = await client.post(path, json=body)
    return response.status, await response.json()


async def until(client: Client, holds: Callable[[dict[str, float]], bool]) -> dict[str, float]:
    """The first samples for which something holds."""
    while not holds(seen := await samples(client)):
        await asyncio.sleep(0.005)
    return seen


def test_metrics_are_those_of_vllm() -> None:
    @against()
    async def _(client: Client) -> None:
        text = await (await client.get("/metrics")).text()
        families = {each.name for each in text_string_to_metric_families(text)}
        families = {name for name in families if not name.endswith("_created")}
        assert {name.removeprefix("vllm:") for name in families} == VLLM_METRICS
        assert 'vllm:num_requests_running{engine="0",model_name="assistant"} 0.0' in text
        assert "vllm:prompt_tokens_total{" in text
        assert "vllm:num_preemptions_total{" in text
        assert 'finished_reason="length"' in text


def test_names_of_old_releases_are_shown_when_asked_for() -> None:
    @against("--show-hidden-metrics-for-version=0.9")
    async def _(client: Client) -> None:
        assert "vllm:gpu_cache_usage_perc" in await samples(client)


def test_buckets_are_those_of_vllm() -> None:
    @against("--max-model-len=1000")
    async def _(client: Client) -> None:
        names = await samples(client)
        for name, edges in {
            "time_to_first_token_seconds": TIME_TO_FIRST_TOKEN_SECONDS,
            "inter_token_latency_seconds": INTER_TOKEN_SECONDS,
            "iteration_tokens_total": ITERATION_TOKENS,
            "request_prompt_tokens": (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0),
        }.items():
            found = re.findall(rf"vllm:{name}_bucket\|([\d.]+)", "\n".join(names))
            assert tuple(map(float, found)) == edges


def test_one_two_five_ends_at_its_limit() -> None:
    assert one_two_five(10) == (1.0, 2.0, 5.0, 10.0)
    assert one_two_five(499)[-1] == 200.0


def test_tokens_are_conserved_in_the_counters() -> None:
    @against("--max-num-seqs=4", "--max-num-batched-tokens=64")
    async def _(client: Client) -> None:
        asked = [(10 * number, number) for number in range(1, 13)]
        bodies = [{"prompt": [0] * prompt, "max_tokens": tokens} for prompt, tokens in asked]
        answers = await asyncio.gather(*(ask(client, **body) for body in bodies))
        assert {status for status, _ in answers} == {200}
        assert [a["usage"]["completion_tokens"] for _, a in answers] == [t for _, t in asked]
        seen = await samples(client)
        assert seen["vllm:prompt_tokens_total"] == sum(prompt for prompt, _ in asked)
        assert seen["vllm:generation_tokens_total"] == sum(tokens for _, tokens in asked)
        assert seen["vllm:request_success_total|length"] == 12
        assert seen["vllm:time_to_first_token_seconds_count"] == 12
        assert seen["vllm:e2e_request_latency_seconds_count"] == 12
        assert seen["vllm:inter_token_latency_seconds_count"] == sum(t - 1 for _, t in asked)
        assert seen["vllm:request_prompt_tokens_sum"] == seen["vllm:prompt_tokens_total"]
        assert seen["vllm:num_requests_running"] == seen["vllm:num_requests_waiting"] == 0
        assert seen["vllm:kv_cache_usage_perc"] == 0


def test_requests_above_the_seats_are_seen_waiting() -> None:
    @against("--max-num-seqs=2")
    async def _(client: Client) -> None:
        body = {"prompt": "a b c", "max_tokens": 8000}
        asked = [asyncio.create_task(ask(client, **body)) for _ in range(5)]
        numbers = ("vllm:num_requests_running", "vllm:num_requests_waiting")
        seen = await until(client, lambda each: [each[name] for name in numbers] == [2, 3])
        assert seen["vllm:num_requests_waiting_by_reason|capacity"] == 3
        assert seen["vllm:kv_cache_usage_perc"] > 0
        for task in asked:
            task.cancel()
        await asyncio.gather(*asked, return_exceptions=True)


def test_a_client_that_goes_away_aborts_its_request() -> None:
    async def body() -> None:
        options = read(["serve", "m", "--max-num-seqs=1"], FAST)
        server = TestServer(build(options).application(), handler_cancellation=True)
        async with TestClient(server) as client:
            gone = asyncio.create_task(ask(client, prompt="a", max_tokens=8000))
            await until(client, lambda each: each["vllm:num_requests_running"] == 1)
            gone.cancel()
            await asyncio.gather(gone, return_exceptions=True)
            seen = await until(client, lambda each: each["vllm:num_requests_running"] == 0)
            assert seen["vllm:request_success_total|abort"] == 1
            assert (await ask(client, prompt="a", max_tokens=2))[0] == 200

    asyncio.run(body())


def test_completions_and_chats_are_answered() -> None:
    @against()
    async def _(client: Client) -> None:
        status, answer = await ask(client, prompt="a b c", max_tokens=3, model="assistant")
        assert status == 200
        assert answer["choices"][0]["text"].split() == ["w1", "w2", "w3"]
        assert answer["usage"] == {"prompt_tokens": 3, "completion_tokens": 3, "total_tokens": 6}
        turns = [{"role": "user", "content": "how are you"}]
        status, answer = await ask(client, messages=turns, max_completion_tokens=2)
        assert answer["choices"][0]["message"] == {"role": "assistant", "content": " w1 w2"}
        assert answer["choices"][0]["finish_reason"] == "length"
        _, answer = await ask(client, messages=turns)
        assert answer["choices"][0]["finish_reason"] == "stop"
        models = await (await client.get("/v1/models")).json()
        assert [model["id"] for model in models["data"]] == ["assistant"]
        assert (await client.get("/health")).status == 200


def test_a_stream_has_one_event_for_each_token() -> None:
    @against()
    async def _(client: Client) -> None:
        body = {"prompt": "a", "max_tokens": 4, "stream": True}
        body["stream_options"] = {"include_usage": True}
        response = await client.post("/v1/completions", json=body)
        lines = (await response.text()).strip().split("\n\n")
        assert lines[-1] == "data: [DONE]"
        events = [json.loads(line.removeprefix("data: ")) for line in lines[:-1]]
        assert [e["choices"][0]["text"] for e in events[:-1]] == [" w1", " w2", " w3", " w4"]
        reasons = [event["choices"][0]["finish_reason"] for event in events[:-1]]
        assert reasons == [None, None, None, "length"]
        assert events[-1]["usage"]["completion_tokens"] == 4


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ({"prompt": "a", "model": "other"}, 404, "The model `other` does not exist."),
        ({"prompt": "a", "max_tokens": 9000}, 400, "maximum context length is 8192 tokens"),
        ({"prompt": "a", "max_tokens": 0}, 400, "greater than or equal to 1"),
        ({"max_tokens": 1}, 400, "Field required"),
        ({"messages": []}, 400, "at least 1 item"),
    ],
)
def test_bad_requests_are_refused_as_vllm_does(
    body: dict[str, Any], status: int, message: str
) -> None:
    @against()
    async def _(client: Client) -> None:
        found, answer = await ask(client, **body)
        assert (found, answer["error"]["code"]) == (status, status)
        assert message in answer["error"]["message"]


def test_a_body_that_is_not_json_is_refused() -> None:
    @against()
    async def _(client: Client) -> None:
        response = await client.post("/v1/completions", data="{")
        assert response.status == 400
        assert "not JSON" in (await response.json())["error"]["message"]
