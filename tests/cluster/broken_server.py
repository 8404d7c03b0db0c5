"""An API server of one kind, pods, whose first answers a test breaks."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager

from aiohttp import web

Answer = Callable[[], web.Response]
PODS = "/api/v1/pods"
VERBS = ["list", "watch", "get", "patch"]
KINDS = [
    {"name": name, "singularName": "", "kind": kind, "namespaced": True, "verbs": VERBS}
    for name, kind in (("pods", "Pod"), ("namespaces", "Namespace"))
]
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "late", "namespace": "a", "uid": "u", "resourceVersion": "5"},
}
EVENT = json.dumps({"type": "ADDED", "object": POD}, separators=(",", ":")).encode() + b"\n"


def error(code: int) -> bytes:
    """An error as a watch tells it."""
    status = {"kind": "Status", "code": code, "message": "no leader"}
    return json.dumps({"type": "ERROR", "object": status}, separators=(",", ":")).encode() + b"\n"


def page() -> web.Response:
    """What a proxy answers that wants a login."""
    return web.Response(text="<html>who are you?</html>", content_type="text/html")


def too_old() -> web.Response:
    """What a watch gets whose version the API server does not know any more."""
    status = {"kind": "Status", "code": 410, "message": "too old resource version: 1 (2)"}
    return web.json_response(status, status=410)


class BrokenServer:
    """Watches end with ``streams``, one after another, then work; lists are answered by ``lists``
    first. What makes a response is a whole answer. Watches that go on from one of the first
    ``expired`` lists are too old."""

    def __init__(
        self,
        streams: Iterable[bytes | Answer] = (),
        lists: Iterable[Answer] = (),
        expired: int = 0,
    ) -> None:
        self._streams, self._lists = list(streams), list(lists)
        self._expired = expired
        self.asked: Counter[str] = Counter()

    @asynccontextmanager
    async def served(self) -> AsyncIterator[str]:
        """The address while it runs."""
        application = web.Application()
        application.router.add_get("/{path:.*}", self._answer)
        runner = web.AppRunner(application, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        host, port = runner.addresses[0]
        try:
            yield f"http://{host}:{port}"
        finally:
            await runner.cleanup()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        known = {
            "/api": {"versions": ["v1"]},
            "/apis": {"groups": []},
            "/api/v1": {"groupVersion": "v1", "resources": KINDS},
        }
        if request.path in known:
            return web.json_response(known[request.path])
        if request.path != PODS:
            return web.json_response({"kind": "Status", "message": "not found"}, status=404)
        return await (self._watch(request) if "watch" in request.query else self._list())

    async def _list(self) -> web.StreamResponse:
        self.asked["list"] += 1
        if self._lists:
            return self._lists.pop(0)()
        items = {"kind": "PodList", "apiVersion": "v1", "items": []}
        return web.json_response(
            {**items, "metadata": {"resourceVersion": str(self.asked["list"])}}
        )

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        self.asked["watch"] += 1
        if int(request.query.get("resourceVersion", self._expired + 1)) <= self._expired:
            return too_old()
        last = self._streams.pop(0) if self._streams else None
        if callable(last):
            return last()
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        await response.write(EVENT if last is None else last)
        if last is None:
            await asyncio.sleep(30)
        return response
