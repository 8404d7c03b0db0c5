"""The fake API server as a cluster has it: watches that lag, errors, and APIs that come and go."""

from __future__ import annotations

import asyncio
import copy
import math
from collections import defaultdict
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from poolwise.cluster.resources import OPTIONAL, WATCHED, Resource, owner_uid, resource_of
from poolwise.errors import ClusterError, NotFound
from tests.fake_kube import Document, FakeKube, _watched_as

USUAL_SECONDS = 0.3
"""Of a write: longer than in most clusters, so that passes fall between its start and its end."""
VERSIONS = {api.group: api.versions[0] for api in OPTIONAL}
_GONE = object()


@dataclass(frozen=True, slots=True)
class StatusWrite:
    """What a status was, and what it became."""

    name: str
    before: Document
    after: Document


class Cluster(FakeKube):
    """Tells each watcher of each change in their order, some time after it happened."""

    def __init__(self) -> None:
        super().__init__()
        self.operator: Callable[[Resource, str, Document], None] | None = None
        """Who watches what is always served."""
        self.lag_seconds: defaultdict[str, float] = defaultdict(float)
        """Of watches, by plural."""
        self.write_seconds = USUAL_SECONDS
        """What a write of the operator takes before it is carried out."""
        self.carries_out = False
        """Whether writes arrive whose sender ends meanwhile."""
        self.failures: list[ClusterError] = []
        """What the next writes of the operator meet, the last one first."""
        self.unwanted: dict[str, ClusterError] = {}
        """Writes that always fail, by a part of their name."""
        self.operator_writes: list[tuple[float, str]] = []
        """When, and what."""
        self.attempts: list[str] = []
        """Of the operator at writes, but for statuses that were written."""
        self.made: set[str] = set()
        """Uids of what the operator made."""
        self.on_made: Callable[[Document], None] = lambda made: None
        self.statuses: list[StatusWrite] = []
        """Of the operator."""
        self.shrunk: list[tuple[float, str]] = []
        """When replicas became fewer, and which."""
        self.changes = 0
        """Of anything, so far."""
        self.watcher = self._told
        self.before_write = self._fails
        self.after_write = self._noted
        self._streams: defaultdict[Resource, list[asyncio.Queue[Any]]] = defaultdict(list)
        self._told_at: dict[Resource, float] = {}

    # APIs that come and go

    def serve(self, group: str) -> None:
        """Install an optional API."""
        self.optional[group] = (VERSIONS[group],)

    def remove_api(self, group: str) -> None:
        """Delete its definitions: its objects go first, and then its watches end."""
        api = next(each for each in OPTIONAL if each.group == group)
        for resource in api.resources:
            for document in self.all(resource):
                self.vanish(document)
            for stream in self._streams.pop(resource, []):
                stream.put_nowait(_GONE)
        self.optional.pop(group, None)

    async def peek(self, resource: Resource, namespace: str | None = None) -> None:
        self._check_served(resource)

    async def watch(self, resource: Resource, namespace: Any = None, version: Any = None) -> Any:
        self._check_served(resource)
        stream: asyncio.Queue[Any] = asyncio.Queue()
        self._streams[resource].append(stream)
        async for page in self.pages(resource, namespace):
            for document in page:
                yield "ADDED", document
        while (event := await stream.get()) is not _GONE:
            yield event
        raise NotFound(f"{resource} is not served")

    # Writes of the operator take time

    async def create(self, document: Any, limit_seconds: float = math.inf) -> Any:
        return await self._sent(super().create(document, limit_seconds))

    async def replace(self, document: Any, limit_seconds: float = math.inf) -> Any:
        return await self._sent(super().replace(document, limit_seconds))

    async def apply(self, document: Any, limit_seconds: float = math.inf) -> Any:
        return await self._sent(self._apply(document, limit_seconds))

    async def _apply(self, document: Any, limit_seconds: float) -> Any:
        applied = await super().apply(document, limit_seconds)
        if applied["metadata"]["uid"] not in self.made:
            self.made.add(applied["metadata"]["uid"])
            self.on_made(applied)
        return applied

    async def patch(
        self, document: Any, changes: Any, subresource: str = "", limit_seconds: float = math.inf
    ) -> Any:
        return await self._sent(self._patch(document, changes, subresource, limit_seconds))

    async def _patch(
        self, document: Any, changes: Any, subresource: str, limit_seconds: float
    ) -> Any:
        before = (self.live(document) or {}).get("status") or {}
        patched = await super().patch(document, changes, subresource, limit_seconds)
        if subresource == "status":
            name = f"{patched['kind']} {_name(patched)}"
            self.statuses.append(StatusWrite(name, before, patched["status"]))
        return patched

    async def delete(self, document: Any, limit_seconds: float = math.inf) -> None:
        await self._sent(super().delete(document, limit_seconds))

    async def _sent(self, write: Coroutine[Any, Any, Any]) -> Any:
        try:
            await asyncio.sleep(self.write_seconds)
        except asyncio.CancelledError:
            if self.carries_out:
                with suppress(ClusterError):
                    await write
            write.close()
            raise
        return await write

    # What is told

    def _told(self, change: str, resource: Resource, document: Document) -> None:
        self.changes += 1
        for stream in self._streams.get(resource, ()):
            self._later(resource, stream.put_nowait, (change, document))
        if resource in WATCHED and self.operator is not None:
            self._later(resource, self.operator, resource, change, document)

    def _later(self, resource: Resource, tell: Callable[..., Any], *event: Any) -> None:
        """In the order of what happened, whatever the lag was meanwhile."""
        loop = asyncio.get_running_loop()
        due = loop.time() + self.lag_seconds[resource.plural]
        due = self._told_at[resource] = max(due, self._told_at.get(resource, 0.0))
        if due <= loop.time():
            tell(*event)
        else:
            loop.call_at(due, tell, *event)

    # Writes of the operator

    def _fails(self, write: str) -> None:
        for name, error in self.unwanted.items():
            if name in write:
                self.attempts.append(write)
                raise error
        if self.failures:
            self.attempts.append(write)
            raise self.failures.pop()
        if "status" not in write:
            self.attempts.append(write)

    def _noted(self, write: str) -> None:
        self.operator_writes.append((asyncio.get_running_loop().time(), write))

    def _write(self, verb: str, key: Any, document: Document) -> Document:
        known = self.objects.get(key)
        if known is not None and known.get("spec") != document.get("spec"):
            generation = known["metadata"]["generation"] + 1
            document = {**document, "metadata": {**document["metadata"], "generation": generation}}
        return super()._write(verb, key, document)

    def _store(self, key: Any, document: Document, change: str) -> Document:
        """A watch that selects by a label tells of the end of what lost the label."""
        before = self.objects.get(key)
        stored = super()._store(key, document, change)
        lost = set(_watched_as(key[0], before or stored)) - set(_watched_as(key[0], stored))
        for each in lost:
            self._told("DELETED", each, copy.deepcopy(stored))
        self._watch_replicas(before, stored)
        return stored

    def _watch_replicas(self, before: Document | None, after: Document) -> None:
        """Note where what runs replicas gets fewer."""
        then, now = (
            ((each or {}).get("spec") or {}).get("replicas") or 0 for each in (before, after)
        )
        if after["kind"] in ("Deployment", "LeaderWorkerSet") and now < then:
            moment = asyncio.get_running_loop().time()
            self.shrunk.append((moment, f"{after['kind']} {_name(after)} from {then} to {now}"))

    # What controllers of Kubernetes do

    def live(self, document: Document) -> Document | None:
        """This very object as it is now."""
        metadata = document["metadata"]
        key = (resource_of(document), metadata.get("namespace"), metadata["name"])
        found = self.objects.get(key)
        return found if found and found["metadata"]["uid"] == metadata["uid"] else None

    def next_number(self) -> int:
        """For names."""
        return self._version

    def change(self, document: Document, **fields: Any) -> None:
        """What another one writes into an object; nothing where it is gone, or so already."""
        live = self.live(document)
        if live is not None and {**live, **fields} != live:
            self.put({**live, **copy.deepcopy(fields)})

    def vanish(self, document: Document) -> None:
        """What it owns goes with the next collection of garbage."""
        key = resource_of(document), document["metadata"].get("namespace"), _name(document)
        gone = self.objects.pop(key)
        self._applied.pop(str(key), None)
        for each in _watched_as(key[0], gone):
            self._told("DELETED", each, copy.deepcopy(gone))

    def terminate(self, document: Document) -> None:
        """A pod ends in its own time."""
        metadata = {**document["metadata"], "deletionTimestamp": "2026-11-21T00:00:00Z"}
        self.change(document, metadata=metadata)

    def collect_garbage(self) -> None:
        """What is told to end has ended, and what names an owner that is gone goes too."""
        uids = {each["metadata"]["uid"] for each in self.objects.values()}
        for document in list(self.objects.values()):
            owner = owner_uid(document)
            if "deletionTimestamp" in document["metadata"]:
                self.vanish(document)
            elif owner and owner.removeprefix("between-") not in uids:
                end = self.terminate if document["kind"] == "Pod" else self.vanish
                end(document)


def _name(document: Document) -> str:
    return str(document["metadata"]["name"])
