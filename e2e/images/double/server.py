"""The HTTP server, and the program ``vllm``."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, NoReturn

from aiohttp import web
from prometheus_client import generate_latest
from pydantic import ValidationError

from e2e.images.double import arguments, protocol
from e2e.images.double.arguments import Options
from e2e.images.double.batch import Batch
from e2e.images.double.engine import Engine, Runs
from e2e.images.double.group import Lost, Place, joined
from e2e.images.double.metrics import Metrics
from e2e.images.double.protocol import ChatRequest, CompletionRequest, Refused, Request

VERSION = "0.29.0"


class Server:
    """The handlers of one engine."""

    def __init__(self, options: Options, engine: Runs) -> None:
        self._options = options
        self._engine = engine
        self._numbers = itertools.count(1)

    def application(self) -> web.Application:
        """The routes that vLLM has and clients of the tests use."""
        app = web.Application()
        app.add_routes(
            [
                web.get("/health", self._health),
                web.get("/version", self._version),
                web.get("/metrics", self._metrics),
                web.get("/v1/models", self._models),
                web.post("/v1/completions", self._completions),
                web.post("/v1/chat/completions", self._chat),
            ]
        )
        app.cleanup_ctx.append(self._engine_runs)
        return app

    async def _engine_runs(self, _: web.Application) -> AsyncIterator[None]:
        task = asyncio.create_task(self._engine.run())
        yield
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    async def _health(self, _: web.Request) -> web.Response:
        return web.Response()

    async def _version(self, _: web.Request) -> web.Response:
        return web.json_response({"version": VERSION})

    async def _metrics(self, _: web.Request) -> web.Response:
        text = generate_latest(self._engine.registry)
        return web.Response(body=text, headers={"Content-Type": "text/plain; version=0.0.4"})

    async def _models(self, _: web.Request) -> web.Response:
        length = self._options.limits.max_model_len
        models = [
            {"id": name, "object": "model", "owned_by": "vllm", "max_model_len": length}
            for name in self._options.served_names
        ]
        return web.json_response({"object": "list", "data": models})

    async def _completions(self, request: web.Request) -> web.StreamResponse:
        return await self._serve(request, CompletionRequest)

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        return await self._serve(request, ChatRequest)

    async def _serve(
        self, request: web.Request, model: type[CompletionRequest] | type[ChatRequest]
    ) -> web.StreamResponse:
        try:
            asked = model.model_validate(await _json(request))
            self._check_model(asked.model)
            prompt = asked.prompt_tokens
            length = self._options.limits.max_model_len
            tokens, reason = protocol.answer_tokens(asked, prompt, length)
        except ValidationError as error:
            refused = Refused(400, str(error.errors(include_url=False, include_input=False)))
            return web.json_response(refused.body, status=400)
        except Refused as refused:
            return web.json_response(refused.body, status=refused.status)
        async with self._engine.request(prompt, tokens, reason) as numbers:
            answer = Answer(asked, self._header(asked), prompt, tokens, reason)
            if asked.stream:
                return await answer.stream(request, numbers)
            return await answer.whole(numbers)

    def _check_model(self, name: str) -> None:
        if name and name not in self._options.served_names:
            raise Refused(404, f"The model `{name}` does not exist.")

    def _header(self, asked: Request) -> dict[str, Any]:
        return {
            "id": f"cmpl-{next(self._numbers)}",
            "object": protocol.kind(asked),
            "created": 0,
            "model": asked.model or self._options.name,
        }


class Answer:
    """One answer, whole or as a stream of events."""

    def __init__(
        self, asked: Request, header: dict[str, Any], prompt: int, tokens: int, reason: str
    ) -> None:
        self._asked = asked
        self._header = header
        self._usage = protocol.usage(prompt, tokens)
        self._tokens = tokens
        self._reason = reason

    async def whole(self, tokens: AsyncIterator[Sequence[int]]) -> web.Response:
        """Once all tokens are there."""
        text = [number async for numbers in tokens for number in numbers]
        choice = protocol.choice(self._asked, text, self._reason)
        return web.json_response({**self._header, "choices": [choice], "usage": self._usage})

    async def stream(
        self, request: web.Request, tokens: AsyncIterator[Sequence[int]]
    ) -> web.StreamResponse:
        """The tokens as they come."""
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        async for numbers in tokens:
            reason = self._reason if numbers[-1] == self._tokens else None
            await self._event(response, [protocol.choice(self._asked, numbers, reason)])
        if self._asked.stream_options.include_usage:
            await self._event(response, [], usage=self._usage)
        await response.write(b"data: [DONE]\n\n")
        return response

    async def _event(self, response: web.StreamResponse, choices: list[Any], **more: Any) -> None:
        data = json.dumps({**self._header, "choices": choices, **more})
        await response.write(f"data: {data}\n\n".encode())


async def _json(request: web.Request) -> Any:
    try:
        return await request.json()
    except json.JSONDecodeError as error:
        raise Refused(400, f"the body is not JSON: {error}") from None


def build(options: Options) -> Server:
    """A server and its engine."""
    if options.model_costs:
        # Only here is Poolwise's own code needed.
        from e2e.images.double.modelled import modelled

        return Server(options, modelled(options.name, options.model_costs, options.limits))
    batch = Batch(options.limits, options.costs)
    metrics = Metrics(options.name, batch, show_old_names=options.show_old_names)
    return Server(options, Engine(batch, metrics))


async def serve(options: Options, stopped: asyncio.Event) -> None:
    """Serve until ``stopped``, where there is a group with it.

    Raises :class:`Lost` once a rank of the group is gone.
    """
    if options.place is None:
        return await _serve_alone(options, stopped)
    _say(f"rank {options.place.rank} of {options.place.nodes} meets at {options.place.host}")
    async with _unless(stopped, joined(options.place)) as lost:
        if lost is not None:
            await _serve_in_group(options, options.place, stopped, lost)


async def _serve_in_group(
    options: Options, place: Place, stopped: asyncio.Event, lost: asyncio.Event
) -> None:
    ended = asyncio.Event()
    tasks = [asyncio.create_task(each.wait()) for each in (stopped, lost)]
    for task in tasks:
        task.add_done_callback(lambda _: ended.set())
    if place.is_leader:
        await _serve_alone(options, ended)
    await ended.wait()
    for task in tasks:
        task.cancel()
    if lost.is_set() and not stopped.is_set():
        raise Lost("a rank of the group is gone")


@contextlib.asynccontextmanager
async def _unless(
    stopped: asyncio.Event, meeting: AbstractAsyncContextManager[asyncio.Event]
) -> AsyncIterator[asyncio.Event | None]:
    """The meeting, or None where the engine is stopped before it comes about."""
    async with contextlib.AsyncExitStack() as stack:
        meets = asyncio.create_task(stack.enter_async_context(meeting))
        stops = asyncio.create_task(stopped.wait())
        await asyncio.wait((meets, stops), return_when=asyncio.FIRST_COMPLETED)
        stops.cancel()
        if not meets.done():
            meets.cancel()
            await asyncio.gather(meets, return_exceptions=True)
            yield None
        else:
            yield meets.result()


async def _serve_alone(options: Options, stopped: asyncio.Event) -> None:
    """Load the model, so to speak; serve until ``stopped``; answer what is in flight."""
    _say(f"loading {options.model} for {options.start_seconds:g} s")
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(stopped.wait(), options.start_seconds)
        return
    runner = web.AppRunner(
        build(options).application(),
        handler_cancellation=True,  # a client that goes away aborts its request
        shutdown_timeout=options.shutdown_timeout_seconds,
        access_log=None,
    )
    await runner.setup()
    await web.TCPSite(runner, options.host, options.port).start()
    _say(f"{options.name} answers on port {options.port}")
    await stopped.wait()
    _say(f"ending within {options.shutdown_timeout_seconds:g} s")
    await runner.cleanup()


async def _until_signal(options: Options) -> None:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for each in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(each, stopped.set)
    await serve(options, stopped)


def main() -> NoReturn:
    """``vllm serve MODEL ...``."""
    try:
        options = arguments.read(sys.argv[1:], os.environ)
    except ValueError as error:
        sys.exit(f"vllm: {error}")
    try:
        asyncio.run(_until_signal(options))
    except Lost as lost:
        sys.exit(f"vllm: {lost}")
    sys.exit(0)


def _say(line: str) -> None:
    print(f"vllm: {line}", file=sys.stderr, flush=True)
