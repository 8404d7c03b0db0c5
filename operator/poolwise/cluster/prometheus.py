"""Looks at replicas through a Prometheus that an administrator named, instead of at each of them.

Every query names namespace and pods, so that a series of the same name elsewhere is never taken
for theirs. A sample that is too old is none: a Prometheus that has lost its targets still answers.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import aiohttp

from poolwise.cluster import clock
from poolwise.cluster.connection import USER_AGENT
from poolwise.cluster.prometheus_series import Pod, Series, pods_of, text_of
from poolwise.cluster.scraping import Look, Target, look_of, sentence
from poolwise.plan.signals.adapters import Fault, loads, series_names
from poolwise.plan.steps.reading import ENGINE
from poolwise.plan.steps.sample import METRICS
from poolwise.settings import Settings

PODS_PER_QUERY = 50
"""Of 150 to 300 series each."""
LIMIT_BYTES = 2**25
"""Of one answer."""
_CHUNK_BYTES = 65_536
_SERVER_ERRORS = (
    *(aiohttp.ClientError, OSError, ValueError, LookupError, TypeError, AttributeError),
    RecursionError,
)
"""What comes of answers, however they lie."""


class Prometheus:
    """Asks one server for all replicas."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._session: aiohttp.ClientSession | None = None
        self._reader = ThreadPoolExecutor(1, "metrics")

    async def look(self, targets: Iterable[Target]) -> Mapping[Target, Look]:
        """One look at each of them; never raises for what the server does."""
        groups = list(_groups(targets))
        found: dict[Target, Look] = {}
        for looks in await asyncio.gather(*(self._look(group) for group in groups)):
            found.update(looks)
        return found

    async def close(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()
        self._reader.shutdown(wait=False, cancel_futures=True)

    async def _look(self, group: Sequence[Target]) -> Mapping[Target, Look]:
        seconds = self._settings.request_timeout_seconds
        try:
            async with asyncio.timeout(seconds):
                return await self._asked(group)
        except TimeoutError:
            problem = f"Prometheus gives no answer within {seconds:g} s"
        except _SERVER_ERRORS as error:
            problem = f"Prometheus cannot be asked: {sentence(error)}"
        return dict.fromkeys(group, Fault(problem))

    async def _asked(self, group: Sequence[Target]) -> Mapping[Target, Look]:
        where = _selector(group)
        engine = group[0].engine
        names, always = _asked_for(engine)
        told = await self._query(f'{{__name__=~"{names}",{where}}}')
        ages = await self._query(f'timestamp({{__name__=~"{always}",{where}}})')
        loop = asyncio.get_running_loop()
        now_seconds = clock.utc_now().timestamp()
        return await loop.run_in_executor(
            self._reader, _looks, group, told, ages, now_seconds, self._settings
        )

    async def _query(self, query: str) -> list[Series]:
        url = f"{self._settings.prometheus_url.rstrip('/')}/api/v1/query"
        session, headers = self._opened(), self._headers()
        form = {"query": query}
        async with session.post(url, data=form, headers=headers, allow_redirects=False) as response:
            body = await _bounded(response)
        loop = asyncio.get_running_loop()
        if response.status != 200:
            why = await loop.run_in_executor(self._reader, _reason, body)
            raise ValueError(f"it answers HTTP {response.status}{why}")
        document = await loop.run_in_executor(self._reader, json.loads, body)
        if document["status"] != "success" or document["data"]["resultType"] != "vector":
            raise ValueError("it answers no instant vector")
        result: list[Series] = document["data"]["result"]
        return result

    def _headers(self) -> dict[str, str]:
        """The token is read each time: it is renewed on its file."""
        path = self._settings.prometheus_token_file
        if not path:
            return {}
        return {"Authorization": f"Bearer {Path(path).read_text(encoding='utf-8').strip()}"}

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            ca_file = self._settings.prometheus_ca_file
            context = ssl.create_default_context(cafile=ca_file or None)
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(ssl=context, limit=8),
                cookie_jar=aiohttp.DummyCookieJar(),
                headers={"User-Agent": USER_AGENT},
            )
        return self._session


async def _bounded(response: aiohttp.ClientResponse) -> bytes:
    body = bytearray()
    async for chunk in response.content.iter_chunked(_CHUNK_BYTES):
        body += chunk
        if len(body) > LIMIT_BYTES:
            raise ValueError(f"it answers more than {LIMIT_BYTES} bytes")
    return bytes(body)


def _reason(body: bytes) -> str:
    """What the server itself says of an error, as the end of a sentence."""
    try:
        told = json.loads(body).get("error")
    except _SERVER_ERRORS:
        return ""
    return f": {sentence(told)}" if told else ""


def _groups(targets: Iterable[Target]) -> Iterator[list[Target]]:
    """Of one namespace and one engine, so many at a time."""
    alike: defaultdict[tuple[str, str], list[Target]] = defaultdict(list)
    for target in targets:
        alike[target.namespace, target.engine].append(target)
    for group in alike.values():
        for start in range(0, len(group), PODS_PER_QUERY):
            yield group[start : start + PODS_PER_QUERY]


def _asked_for(engine: str) -> tuple[str, str]:
    """Patterns of all series that an engine may tell, and of those that show when it was read."""
    all_names = METRICS if engine == ENGINE else sorted(series_names(engine))
    every = [f"{name}(_bucket|_sum|_count)?" for name in all_names]
    return "|".join(every), "|".join(every if engine == ENGINE else loads(engine))


def _selector(group: Sequence[Target]) -> str:
    """Names of Kubernetes' objects hold no character that a pattern gives a meaning, but dots."""
    pods = "|".join(target.replica.replace(".", "[.]") for target in group)
    return f'namespace="{group[0].namespace}",pod=~"{pods}"'


def _looks(
    group: Sequence[Target],
    told: Sequence[Series],
    ages: Sequence[Series],
    now_seconds: float,
    settings: Settings,
) -> Mapping[Target, Look]:
    pods = pods_of(told, ages)
    return {
        target: _look(pods.get(target.replica), target, now_seconds, settings) for target in group
    }


def _look(pod: Pod | None, target: Target, now_seconds: float, settings: Settings) -> Look:
    """What cannot be read of one pod says nothing of the others."""
    if pod is None:
        return Fault("Prometheus has no series of it")
    off = now_seconds - pod.read_at_seconds
    if not abs(off) <= settings.prometheus_max_age_seconds:
        return Fault(f"Prometheus read it {off:.0f} s ago, or its clock differs")
    try:
        return look_of(text_of(pod), target, pod.read_at_seconds)
    except _SERVER_ERRORS as error:
        return Fault(f"Prometheus tells of it what cannot be read: {sentence(error)}")
