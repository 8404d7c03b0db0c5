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
from typing import Any

import aiohttp

from poolwise.cluster import clock
from poolwise.cluster.connection import USER_AGENT
from poolwise.cluster.scraping import Look, Target, look_of
from poolwise.plan.signals.adapters import Fault, loads, series_names
from poolwise.plan.steps.reading import ENGINE
from poolwise.plan.steps.sample import METRICS
from poolwise.settings import Settings

PODS_PER_QUERY = 50
"""Of 150 to 300 series each."""
LIMIT_BYTES = 2**25
"""Of one answer."""
_CHUNK_BYTES = 65_536
_TARGET_LABELS = {
    *("__name__", "namespace", "pod", "container", "endpoint", "instance", "job", "service"),
    *("prometheus", "node"),
}
"""What a Prometheus adds: without these, what two scrape jobs read of one pod is the same series,
which counts once."""

Series = Mapping[str, Any]


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
        except (aiohttp.ClientError, OSError, ValueError, LookupError, TypeError) as error:
            problem = f"Prometheus cannot be asked: {' '.join(str(error).split())[:200]}"
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
            if response.status != 200:
                raise ValueError(f"it answers HTTP {response.status}")
        loop = asyncio.get_running_loop()
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
    lines: defaultdict[str, list[str]] = defaultdict(list)
    for series in told:
        lines[series["metric"].get("pod", "")].append(_line(series))
    read_at = {each["metric"].get("pod", ""): float(each["value"][1]) for each in ages}
    found: dict[Target, Look] = {}
    for target in group:
        at_seconds = read_at.get(target.replica)
        if at_seconds is None:
            found[target] = Fault("Prometheus has no series of it")
        elif abs(now_seconds - at_seconds) > settings.prometheus_max_age_seconds:
            off = now_seconds - at_seconds
            found[target] = Fault(f"Prometheus read it {off:.0f} s ago, or its clock differs")
        else:
            text = "\n".join(lines[target.replica]) + "\n"
            found[target] = look_of(text, target, at_seconds)
    return found


def _line(series: Series) -> str:
    """As the pod itself would have told it."""
    labels = ",".join(
        f"{name}={json.dumps(value, ensure_ascii=False)}"
        for name, value in sorted(series["metric"].items())
        if name not in _TARGET_LABELS
    )
    return f"{series['metric']['__name__']}{{{labels}}} {series['value'][1]}"
