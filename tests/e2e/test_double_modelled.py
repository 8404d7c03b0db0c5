"""The double that follows the serving model: what it does in real time, the simulator says too."""

from __future__ import annotations

import asyncio
import random

import numpy as np
import pytest
from aiohttp.test_utils import TestClient, TestServer

from e2e.images.double.arguments import read
from e2e.images.double.modelled import Modelled, as_json, from_json
from e2e.images.double.server import build
from poolwise.plan.signals.adapters import read as sample_of
from poolwise.plan.signals.sample import Sample
from poolwise.sim.serving.costs import Curve, EngineLimits, IterationCosts
from poolwise.sim.serving.fleet import Fleet
from poolwise.sim.serving.requests import Requests
from poolwise.sim.serving.router import LeastOutstanding

COSTS = IterationCosts(
    tokens=Curve((0.0, 64.0, 512.0), (0.0005, 0.0006, 0.002)),
    sequences=Curve.line(0.0, 0.00001),
    key_seconds=1e-9,
    prompt_key_seconds=1e-10,
    request_seconds=0.001,
)
LIMITS = EngineLimits(max_num_seqs=4, max_batched_tokens=128, kv_blocks=40)
LENGTHS = [(random.Random(n).randint(1, 200), random.Random(-n).randint(1, 60)) for n in range(40)]
WORDS = ("serve", "m", "--max-num-seqs=4", "--max-num-batched-tokens=128", "--max-model-len=500")
ENVIRONMENT = {"DOUBLE_KV_TOKENS": "640", "DOUBLE_MODEL_COSTS": as_json(COSTS)}


async def _asked(engine: Modelled, prompt: int, answer: int, after_seconds: float) -> list[int]:
    await asyncio.sleep(after_seconds)
    async with engine.request(prompt, answer) as tokens:
        return [number async for numbers in tokens for number in numbers]


async def _served() -> Modelled:
    engine = Modelled("m", COSTS, LIMITS, 500)
    running = asyncio.create_task(engine.run())
    asked = [_asked(engine, *lengths, n * 0.002) for n, lengths in enumerate(LENGTHS)]
    answers = await asyncio.gather(*asked)
    assert answers == [list(range(1, answer + 1)) for _, answer in LENGTHS]
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    return engine


def test_every_request_takes_what_the_simulator_says_of_its_arrival() -> None:
    """Whatever the machine does in between: arrivals are as they were, the rest follows."""
    log = asyncio.run(_served())._log
    requests = Requests.of(np.array(log.arrivals), np.array(log.inputs), np.array(log.outputs))
    fleet = Fleet(requests, COSTS, LIMITS, LeastOutstanding())
    fleet.request(1, 0.0)
    fleet.finish()
    expected = fleet.answers()
    assert log.first_tokens == pytest.approx(expected.first_token_seconds.tolist(), abs=1e-6)
    assert log.finished == pytest.approx(expected.finished_seconds.tolist(), abs=1e-6)
    assert log.preemptions == expected.preemptions.tolist()


def test_costs_survive_the_environment() -> None:
    assert from_json(as_json(COSTS)) == COSTS
    with pytest.raises(ValueError, match="DOUBLE_MODEL_COSTS: KeyError"):
        from_json("{}")
    with pytest.raises(ValueError, match="DOUBLE_MODEL_COSTS"):
        from_json("not JSON")


async def _streamed() -> tuple[list[bytes], str]:
    application = build(read(WORDS, ENVIRONMENT)).application()
    async with TestClient(TestServer(application)) as client:
        body = {"prompt": "a b c", "max_tokens": 9, "stream": True}
        response = await client.post("/v1/completions", json=body)
        lines = [line async for line in response.content if line.startswith(b"data: {")]
        return lines, await (await client.get("/metrics")).text()


def test_a_stream_has_the_first_token_and_then_the_rest() -> None:
    lines, metrics = asyncio.run(_streamed())
    assert [line.count(b" w") for line in lines] == [1, 8]
    told = sample_of(metrics, "vllm", "m-0", 0.0)
    assert isinstance(told, Sample), told
    assert (told.finished_requests, told.prompt_tokens, told.generated_tokens) == (1, 3, 9)
    assert (told.running, told.waiting, told.kv_cache_usage) == (0, 0, 0)
    assert told.ttft_seconds is not None and told.ttft_seconds.total
    for histogram in (told.inter_token_seconds, told.answer_lengths_tokens):
        assert histogram is not None
        assert histogram.upper_bounds[-1] == float("inf")
