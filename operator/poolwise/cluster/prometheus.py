"""Looks at replicas through a Prometheus that an administrator named, instead of at each of them.

Every query names namespace and pods, so that a series of the same name elsewhere is never taken
for theirs. A sample that is too old is none: a Prometheus that has lost its targets still answers.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import aiohttp
import structlog

from poolwise.cluster import clock
from poolwise.cluster.connection import USER_AGENT
from poolwise.cluster.scraping import Reply, Target, bounded, reply_of, sentence
from poolwise.plan.gateway import reading as gateway
from poolwise.plan.signals.adapters import Fault, loads, own_labels, series_names
from poolwise.plan.signals.exposition import Nonsense
from poolwise.plan.signals.names import ADAPTERS
from poolwise.plan.signals.vector import UP, ScrapedText, texts
from poolwise.plan.steps.reading import ENGINE
from poolwise.plan.steps.sample import METRICS, RANK_LABELS, STEP_SECONDS
from poolwise.settings import Settings

_log = structlog.get_logger(__name__)

PODS_PER_QUERY = 50
"""Of 150 to 300 series each."""
LIMIT_BYTES = 2**25
"""Of one answer."""
_ERROR_BYTES = 65_536
"""Of an answer that refuses: a sentence of it is told on."""
_UNREADABLE = (aiohttp.ClientError, OSError, ValueError, LookupError, TypeError)


class Prometheus:
    """Asks one server for all replicas."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._session: aiohttp.ClientSession | None = None
        self._reader = ThreadPoolExecutor(1, "metrics")

    async def look(self, targets: Iterable[Target]) -> Mapping[Target, Reply]:
        """One look at each of them; never raises for what the server does."""
        groups = list(_groups(targets))
        found: dict[Target, Reply] = {}
        for looks in await asyncio.gather(*(self._look(group) for group in groups)):
            found.update(looks)
        return found

    async def close(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()
        self._reader.shutdown(wait=False, cancel_futures=True)

    async def _look(self, group: Sequence[Target]) -> Mapping[Target, Reply]:
        seconds = self._settings.request_timeout_seconds
        try:
            async with asyncio.timeout(seconds):
                return await self._asked(group)
        except TimeoutError:
            problem = f"no answer from Prometheus within {seconds:g} s"
        except _UNREADABLE as error:
            problem = f"Prometheus cannot be queried: {sentence(error)}"
        except Exception as error:  # what one server answers holds up no round of all services
            _log.exception("an answer of Prometheus breaks its reader", pods=len(group))
            problem = f"Prometheus cannot be queried: {type(error).__name__}: {sentence(error)}"
        return dict.fromkeys(group, Fault(problem))

    async def _asked(self, group: Sequence[Target]) -> Mapping[Target, Reply]:
        where = _selector(group)
        engine = group[0].engine
        every, always = _asked_for(engine)
        told = await self._query(f'{{__name__=~"{"|".join(every)}|{UP}",{where}}}')
        ages = await self._query(_ages(always, where))
        loop = asyncio.get_running_loop()
        now_seconds = clock.utc_now().timestamp()
        return await loop.run_in_executor(
            self._reader, _looks, group, told, ages, now_seconds, self._settings
        )

    async def _query(self, query: str) -> list[object]:
        url = f"{self._settings.prometheus_url.rstrip('/')}/api/v1/query"
        session, headers = self._opened(), self._headers()
        form = {"query": query}
        async with session.post(url, data=form, headers=headers, allow_redirects=False) as response:
            body, status = await bounded(response, LIMIT_BYTES), response.status
        if body is None:
            raise ValueError(f"its answer has more than {LIMIT_BYTES} bytes")
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._reader, _result, status, body)

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


def _groups(targets: Iterable[Target]) -> Iterator[list[Target]]:
    """Of one namespace and one engine, so many at a time."""
    alike: defaultdict[tuple[str, str], list[Target]] = defaultdict(list)
    for target in targets:
        alike[target.namespace, target.engine].append(target)
    for group in alike.values():
        for start in range(0, len(group), PODS_PER_QUERY):
            yield group[start : start + PODS_PER_QUERY]


def _asked_for(engine: str) -> tuple[list[str], list[str]]:
    """All series that an engine may tell, as patterns, and those that show when it was read."""
    if engine == gateway.ENGINE:
        return _with_parts(gateway.METRICS), list(gateway.ALWAYS)
    if engine != ENGINE:
        return _with_parts(sorted(series_names(ADAPTERS[engine]))), list(loads(engine))
    return _with_parts(METRICS), [*METRICS, f"{STEP_SECONDS}_count"]


def _with_parts(names: Iterable[str]) -> list[str]:
    return [f"{name}(_bucket|_sum|_count)?" for name in names]


def _ages(names: Iterable[str], where: str) -> str:
    """One query for each name: without it the series of two names are the same one, which
    Prometheus refuses."""
    return " or ".join(f'timestamp({{__name__="{name}",{where}}})' for name in names)


def _selector(group: Sequence[Target]) -> str:
    """Names of Kubernetes' objects hold no character that a pattern gives a meaning, but dots."""
    pods = "|".join(target.replica.replace(".", "[.]") for target in group)
    return f'namespace="{group[0].namespace}",pod=~"{pods}"'


def _looks(
    group: Sequence[Target],
    told: Sequence[object],
    ages: Sequence[object],
    now_seconds: float,
    settings: Settings,
) -> Mapping[Target, Reply]:
    found = texts(told, ages, _own_labels(group[0].engine))
    return {
        target: _look(target, found.get(target.replica), now_seconds, settings) for target in group
    }


def _own_labels(engine: str) -> Collection[str]:
    if engine == gateway.ENGINE:
        return gateway.LABELS
    return RANK_LABELS if engine == ENGINE else own_labels(engine)


def _look(
    target: Target, told: ScrapedText | Nonsense | None, now_seconds: float, settings: Settings
) -> Reply:
    if told is None:
        return Fault("Prometheus has no series of it")
    if isinstance(told, Nonsense):
        return Fault(f"Prometheus has metrics of it that cannot be read: {told}")
    off_seconds = now_seconds - told.at_seconds
    if abs(off_seconds) > settings.prometheus_max_age_seconds:
        return Fault(f"Prometheus read it {off_seconds:.0f} s ago, or its clock differs")
    return reply_of(told.text, target, told.at_seconds)


def _result(status: int, body: bytes) -> list[object]:
    """The series of an answer.

    :raises ValueError: for any other answer, with what it says of itself.
    """
    if status != 200:
        error = _told_error(body)
        raise ValueError(f"it answers HTTP {status}" + (f": {error}" if error else ""))
    document = _document(body)
    if isinstance(document, dict) and document.get("status") == "error":
        raise ValueError(f"it answers with an error: {_told_error(body)}")
    data = document.get("data") if isinstance(document, dict) else None
    if not isinstance(data, dict) or data.get("resultType") != "vector":
        raise ValueError("its answer is not an instant vector")
    result = data.get("result")
    if not isinstance(result, list):
        raise ValueError("its answer is not an instant vector")
    return result


def _told_error(body: bytes) -> str:
    """What Prometheus itself says is wrong; empty where somebody else answers."""
    try:
        document = _document(body) if len(body) <= _ERROR_BYTES else None
    except ValueError:
        return ""
    error = document.get("error") if isinstance(document, dict) else None
    return sentence(error) if error else ""


def _document(body: bytes) -> object:
    try:
        return json.loads(body)
    except RecursionError:
        raise ValueError("its answer is nested too deeply") from None
