"""Looks at the metrics of replicas: many at once, each bounded in time and size.

Addresses come from the API server's pods alone, never from anything that a user wrote; redirects
are not followed, since they would let a pod send the operator anywhere. A replica that lies or
hangs costs its own look, and nobody else's.
"""

from __future__ import annotations

import asyncio
import ipaddress
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import aiohttp
import structlog
from yarl import URL

from poolwise.cluster import clock
from poolwise.cluster.connection import USER_AGENT
from poolwise.cluster.turns import Turns
from poolwise.plan.gateway import reading as gateway
from poolwise.plan.gateway.reading import PickerTold
from poolwise.plan.observed import Object
from poolwise.plan.reading import mapping
from poolwise.plan.signals.adapters import Fault, read
from poolwise.plan.signals.sample import Sample
from poolwise.plan.steps import reading as steps
from poolwise.plan.steps.sample import RunSample
from poolwise.settings import Settings

_log = structlog.get_logger(__name__)

PATH = "/metrics"
LOGIN_STATUSES = frozenset({401, 403})
"""Of HTTP: who are you, and not for you."""
_CHUNK_BYTES = 65_536
_HEADERS = {
    "Accept": "text/plain;version=0.0.4;q=1,*/*;q=0.1",
    "Accept-Encoding": "identity",  # what is compressed has no size until it is not
    "User-Agent": USER_AGENT,
}


@dataclass(frozen=True, slots=True)
class Target:
    """Where one replica tells its metrics."""

    uid: str
    """Of the pod: another pod of the same name is another replica."""
    replica: str
    """Name of the pod."""
    address: str
    """IP address as the API server has it."""
    port: int
    engine: str
    namespace: str = ""

    @staticmethod
    def of(pod: Object, port: int, engine: str, namespace: str) -> Target | None:
        """A pod as a target; None while it has no address."""
        metadata, address = pod["metadata"], mapping(pod, "status").get("podIP")
        if not address:
            return None
        return Target(metadata["uid"], metadata["name"], address, port, engine, namespace)


Reply = Sample | RunSample | PickerTold | Fault
"""What one target told, or why that cannot be had."""
Source = Callable[[Iterable[Target]], Awaitable[Mapping[Target, Reply]]]
"""What tells the newest sample of each target, or why there is none."""


class Scraper:
    """Asks the replicas themselves."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._session: aiohttp.ClientSession | None = None
        self._turns = Turns(settings.scrape_connections)
        self._readings = Turns(1)
        self._reader = ThreadPoolExecutor(1, "metrics")  # beside the loop, and beside the planner

    async def look(self, targets: Iterable[Target]) -> Mapping[Target, Reply]:
        """One look at each of them; never raises for what one of them does, and shares connections
        and the reader of what is answered alike with other calls that are under way."""
        session, call = self._opened(), object()
        wanted = list(targets)
        looks = await asyncio.gather(*(self._look(session, target, call) for target in wanted))
        return dict(zip(wanted, looks, strict=True))

    async def close(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()
        self._reader.shutdown(wait=False, cancel_futures=True)

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=self._settings.scrape_connections),
                cookie_jar=aiohttp.DummyCookieJar(),
                headers=_HEADERS,
            )
        return self._session

    async def _look(self, session: aiohttp.ClientSession, target: Target, call: object) -> Reply:
        async with self._turns.turn(call):  # until it is read: no more answers than that wait
            body = await self._answered(session, target)
            if isinstance(body, Fault):
                return body
            at_seconds = clock.utc_now().timestamp()
            async with self._readings.turn(call):
                return await self._parsed(body, target, at_seconds)

    async def _answered(self, session: aiohttp.ClientSession, target: Target) -> bytes | Fault:
        seconds = self._settings.scrape_timeout_seconds
        try:
            async with asyncio.timeout(seconds):
                return await self._asked(session, target)
        except TimeoutError:
            return Fault(f"no answer within {seconds:g} s")
        except (aiohttp.ClientError, OSError, ValueError) as error:
            return Fault(f"cannot be scraped: {_why(error, target)}")

    async def _asked(self, session: aiohttp.ClientSession, target: Target) -> bytes | Fault:
        async with session.get(url_of(target), allow_redirects=False) as response:
            if response.status != 200:
                problem = f"answers HTTP {response.status} instead of metrics"
                return Fault(problem, asks_for_login=response.status in LOGIN_STATUSES)
            if response.headers.get("Content-Encoding", "identity") != "identity":
                return Fault("answers compressed, though asked not to")
            limit_bytes = self._settings.scrape_limit_bytes
            body = await bounded(response, limit_bytes)
            return Fault(f"answers more than {limit_bytes} bytes") if body is None else body

    async def _parsed(self, body: bytes, target: Target, at_seconds: float) -> Reply:
        text = body.decode("utf-8", errors="replace")
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._reader, reply_of, text, target, at_seconds)
        except Exception as error:  # ours to mend: nobody else's look ends with it
            _log.exception("the metrics of one replica could not be read", replica=target.replica)
            return Fault(f"its metrics cannot be read: {sentence(error)}")


async def bounded(response: aiohttp.ClientResponse, limit_bytes: int) -> bytes | None:
    """The body of an answer; None where it is larger, and the rest is never read."""
    body = bytearray()
    async for chunk in response.content.iter_chunked(_CHUNK_BYTES):
        body += chunk
        if len(body) > limit_bytes:
            response.close()
            return None
    return bytes(body)


def reply_of(text: str, target: Target, at_seconds: float) -> Reply:
    """What the target's text tells: of a run's rank 0, of a gateway's endpoint picker, or of a
    replica of its engine."""
    if target.engine == steps.ENGINE:
        return steps.read(text, target.replica, at_seconds)
    if target.engine == gateway.ENGINE:
        return gateway.read(text, target.replica, at_seconds)
    if target.engine == gateway.QUEUE_ALONE:
        return gateway.read_queue(text, target.replica, at_seconds)
    return read(text, target.engine, target.replica, at_seconds)


def url_of(target: Target) -> URL:
    """Of the replica's metrics.

    :raises ValueError: for an address that is none, or that no pod can have.
    """
    address = ipaddress.ip_address(target.address)
    if address.is_link_local or address.is_multicast or address.is_unspecified:
        raise ValueError(f"{address} is not the address of a pod")
    return URL.build(scheme="http", host=str(address), port=target.port, path=PATH)


def _why(error: Exception, target: Target) -> str:
    """What went wrong between us and a replica, without the words of the library that asked."""
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "it closes the connection without an answer"
    if isinstance(error, aiohttp.ClientPayloadError):
        return "its answer ends too early"
    if isinstance(error, aiohttp.ClientResponseError):
        told = error.message.partition(": b'")[0].strip().partition("\n")[0]
        return f"its answer is not valid HTTP: {told.rstrip(':')}"
    if isinstance(error, OSError) and error.errno:
        return f"{target.address} port {target.port}: {os.strerror(error.errno)}"
    return sentence(error)


def sentence(error: object) -> str:
    """What went wrong, on one line and not too long."""
    return " ".join(str(error).split())[:200] or type(error).__name__
