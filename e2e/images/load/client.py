"""Sends the requests of a plan, and the program ``load``."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import AsyncIterator, Sequence
from typing import Any, NoReturn

import aiohttp

from e2e.images.load.plan import Lengths, Plan, Planned
from e2e.images.load.report import Felt, summarize

CONNECT_SECONDS = 10.0


async def run(url: str, plan: Plan, model: str, timeout_seconds: float) -> dict[str, Any]:
    """Send everything, wait for every answer, and report."""
    loop = asyncio.get_running_loop()
    limits = aiohttp.ClientTimeout(total=timeout_seconds, connect=CONNECT_SECONDS)
    connections = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(url, timeout=limits, connector=connections) as session:
        started = loop.time()
        async with asyncio.TaskGroup() as group:
            sent = [
                group.create_task(_send(session, planned, started + planned.at_seconds, model))
                for planned in plan.requests()
            ]
        return summarize([task.result() for task in sent], loop.time() - started)


async def _send(session: aiohttp.ClientSession, planned: Planned, at: float, model: str) -> Felt:
    loop = asyncio.get_running_loop()
    await asyncio.sleep(max(0.0, at - loop.time()))
    felt, sent = Felt(planned.input_tokens), loop.time()
    try:
        async for _ in _tokens(session, planned, model):
            felt.token_seconds.append(loop.time() - sent)
        if not felt.token_seconds:
            felt.error = "answered without a token"
    except (aiohttp.ClientError, TimeoutError) as error:
        felt.error = _brief(error)
    felt.end_seconds = loop.time() - sent
    return felt


def _brief(error: Exception) -> str:
    """One of few texts, so that errors can be counted."""
    if isinstance(error, aiohttp.ClientResponseError):
        return f"status {error.status}"
    return type(error).__name__


async def _tokens(
    session: aiohttp.ClientSession, planned: Planned, model: str
) -> AsyncIterator[None]:
    body = {
        "model": model,
        "prompt": list(range(planned.input_tokens)),
        "max_tokens": planned.output_tokens,
        "stream": True,
        "ignore_eos": True,  # a real engine would end some answers early
    }
    async with session.post("/v1/completions", json=body) as response:
        response.raise_for_status()
        async for line in response.content:
            if line.startswith(b"data: {") and json.loads(line[6:])["choices"]:
                yield


def plan_and_target(words: Sequence[str] | None = None) -> tuple[Plan, argparse.Namespace]:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="load", description="Ask an engine; print JSON.")
    parser.add_argument("--url", required=True, help="of the engine, as http://assistant.chat")
    parser.add_argument("--model", default="", help="(default: the one that the engine serves)")
    parser.add_argument("--rate", type=_positive, required=True, help="requests a second")
    parser.add_argument("--duration", type=_positive, required=True, help="seconds")
    parser.add_argument("--input-tokens", type=_lengths, default="128", metavar="N|MEDIAN,P95")
    parser.add_argument("--output-tokens", type=_lengths, default="64", metavar="N|MEDIAN,P95")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--timeout", type=_positive, default=300.0, help="seconds, of one request")
    given = parser.parse_args(words)
    lengths = (given.input_tokens, given.output_tokens)
    return Plan(given.rate, given.duration, *lengths, given.seed), given


def _positive(text: str) -> float:
    value = float(text)
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text}: must be more than 0")
    return value


def _lengths(text: str) -> Lengths:
    try:
        return Lengths.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def main() -> NoReturn:
    """Exit 0 when every request was answered, 1 otherwise."""
    plan, given = plan_and_target()
    report = asyncio.run(run(given.url, plan, given.model, given.timeout))
    print(json.dumps(report), flush=True)
    sys.exit(1 if report["errors"] else 0)
