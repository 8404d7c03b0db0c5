"""The inference double as a program: how it ends, and what ``load`` sees of it."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import pytest

from e2e.controlplane import ports
from e2e.images.double.modelled import as_json
from e2e.images.load.client import run
from e2e.images.load.plan import Lengths, Plan
from poolwise.sim.serving.costs import Curve, IterationCosts

VLLM = Path(__file__).parents[2] / "e2e" / "images" / "bin" / "vllm"


COSTS = IterationCosts(Curve.line(0.01, 0.0), Curve.line(0.0, 0.0), 0.0, 0.0)


@pytest.fixture
def program(request: pytest.FixtureRequest) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The program, answering, and its address; a parameter is its environment."""
    (port,) = ports.free(1)
    command = [sys.executable, "-IB", str(VLLM), "serve", "m", f"--port={port}"]
    command += ["--host=127.0.0.1", "--shutdown-timeout=60"]
    environment = os.environ | getattr(request, "param", {})
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
    try:
        assert process.stderr is not None
        while "answers on port" not in (line := process.stderr.readline()):
            assert line, "it ended"
        yield process, f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize(
    "program",
    [{}, {"DOUBLE_MODEL_COSTS": as_json(COSTS)}],
    ids=["formula", "serving model"],
    indirect=True,
)
def test_sigterm_lets_requests_in_flight_end(program: tuple[subprocess.Popen[str], str]) -> None:
    process, url = program

    async def ask_and_stop() -> str:
        async with aiohttp.ClientSession(url) as session:
            body = {"prompt": "a", "max_tokens": 40, "stream": True}
            async with session.post("/v1/completions", json=body) as response:
                first = await response.content.readline()
                process.send_signal(signal.SIGTERM)
                return (first + await response.read()).decode()

    answer = asyncio.run(ask_and_stop())
    assert answer.count(" w") == 40
    assert answer.rstrip().endswith("data: [DONE]")
    assert process.wait(60) == 0


def test_load_counts_what_the_engine_counts(program: tuple[subprocess.Popen[str], str]) -> None:
    _, url = program
    plan = Plan(40.0, 1.0, Lengths(20, 60), Lengths(4, 8), seed=3)
    report = asyncio.run(run(url, plan, "", 60.0))
    planned = list(plan.requests())
    assert report["errors"] == {}
    assert report["answered"] == len(planned)
    assert report["inputTokens"] == sum(each.input_tokens for each in planned)
    assert report["outputTokens"] == sum(each.output_tokens for each in planned)
    assert 0 < report["ttftSeconds"]["p50"] <= report["e2eSeconds"]["p50"]
