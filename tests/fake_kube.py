"""The one fake of the API server: :class:`poolwise.cluster.kube.Kube` in memory.

It keeps what the shell depends on: resourceVersions that grow, uids, conflicts, an apply that
changes nothing and leaves the object alone, status apart from the rest, and deletion of children
with their owner. Every write is recorded; ``on_write`` may raise before or after one.
"""

from __future__ import annotations

import asyncio
import copy
import math
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from poolwise.cluster.clock import utc_now
from poolwise.cluster.resources import (
    BESIDE,
    CACHED,
    OPTIONAL,
    WATCHED,
    Resource,
    owner_uid,
    resource_of,
)
from poolwise.errors import Conflict, NotFound
from poolwise.plan.conditions import timestamp

Document = dict[str, Any]
Watcher = Callable[[str, Resource, Document], None]


class FakeKube:
    """A cluster without controllers: nothing happens that a test does not do."""

    def __init__(self) -> None:
        self.objects: dict[tuple[Resource, str | None, str], Document] = {}
        self.writes: list[str] = []
        """``verb plural/name``, in order."""
        self.before_write: Callable[[str], None] = lambda write: None
        self.after_write: Callable[[str], None] = lambda write: None
        self.watcher: Watcher = lambda change, resource, document: None
        self.optional: dict[str, tuple[str, ...]] = {}
        """Versions of optional APIs that are served, by group."""
        self.streams: defaultdict[Resource, asyncio.Queue[Any]] = defaultdict(asyncio.Queue)
        """Events for :meth:`watch`."""
        self._version = 0
        self._applied: dict[str, Document] = {}

    # The protocol

    async def pages(self, resource, namespace=None, *, metadata_only=False):
        """List, in one page."""
        self._check_served(resource)
        found = [
            copy.deepcopy(document)
            for (kind, where, _), document in self.objects.items()
            if _is_alike(kind, resource)
            and namespace in (None, where)
            and _matches(resource, document)
        ]
        if metadata_only:
            found = [{"metadata": each["metadata"]} for each in found]
        yield found

    async def peek(self, resource, namespace=None):
        """List one at most."""
        self._check_served(resource)

    async def discovered(self, group, version):
        """All kinds are served, of optional APIs those that a test switched on."""
        if version not in (await self.groups()).get(group, ()):
            return frozenset()
        return frozenset(each.plural for each in CACHED if each.group == group)

    async def groups(self):
        """Those of the kinds that are always there, and what a test switched on."""
        return {each.group: (each.version,) for each in WATCHED} | self.optional

    async def watch(self, resource, namespace=None, version=None):
        """What is there, then what is put into ``streams`` until that is None."""
        if version is None:
            async for page in self.pages(resource, namespace):
                for document in page:
                    yield "ADDED", document
        while (event := await self.streams[resource].get()) is not None:
            yield event

    async def get(self, resource, namespace, name):
        """Read one."""
        return copy.deepcopy(self.objects.get((resource, namespace, name)))

    async def create(self, document, limit_seconds=math.inf):
        """Create one."""
        document = copy.deepcopy(dict(document))
        if "generateName" in document["metadata"]:
            document["metadata"]["name"] = f"{document['metadata']['generateName']}{self._version}"
        key = _key(document)
        if key in self.objects:
            raise Conflict(f"{key[2]} already exists")
        return self._write("create", key, self._born(document))

    async def replace(self, document, limit_seconds=math.inf):
        """Replace one, if its version is current."""
        key, document = _key(document), copy.deepcopy(dict(document))
        self._check_version(key, document["metadata"].get("resourceVersion"))
        return self._write("replace", key, document)

    async def apply(self, document, limit_seconds=math.inf):
        """Server-side apply, of that object alone where a uid is told: what was applied before and
        is no longer, goes."""
        key, document = _key(document), copy.deepcopy(dict(document))
        live, uid = self.objects.get(key), document["metadata"].pop("uid", None)
        if uid is not None and (live is None or live["metadata"]["uid"] != uid):
            raise Conflict(f"{key[2]} is another object now")
        if live is None:
            self._applied[str(key)] = document
            return self._write("apply", key, self._born(copy.deepcopy(document)))
        merged = _merged(live, self._applied.get(str(key), {}), document)
        self._applied[str(key)] = document
        return self._write("apply", key, merged)

    async def patch(self, document, changes, subresource="", limit_seconds=math.inf):
        """Merge into the object, or into its status alone."""
        key = _key(document)
        live = self._existing(key)
        if live["metadata"]["uid"] != document["metadata"]["uid"]:
            raise Conflict(f"{key[2]} is another object now")
        changes = {"status": changes["status"]} if subresource else dict(changes)
        return self._write(f"patch {subresource}".strip(), key, _patched(live, changes))

    async def delete(self, document, limit_seconds=math.inf):
        """Delete one, and what it owns."""
        live = self.objects.get(_key(document))
        if live is not None and live["metadata"]["uid"] == document["metadata"]["uid"]:
            self.before_write(self._name("delete", _key(document)))
            self.vanish(live)
            self._record("delete", _key(document))

    # What a test does, as other actors

    def put(self, document: Document) -> Document:
        """Create or replace, as somebody else: not recorded as a write."""
        key, document = _key(document), copy.deepcopy(document)
        known = self.objects.get(key)
        born = self._born(document)
        if known is not None:
            born["metadata"] = {**known["metadata"], **document["metadata"]}
            changed = known.get("spec") != document.get("spec")
            born["metadata"]["generation"] = known["metadata"]["generation"] + changed
        return self._store(key, born, "MODIFIED" if known else "ADDED")

    def vanish(self, document: Document) -> None:
        """Delete, and let the garbage collector take what it owns."""
        key = _key(document)
        gone = self.objects.pop(key)
        self._applied.pop(str(key), None)
        for resource in _watched_as(key[0], gone):
            self.watcher("DELETED", resource, copy.deepcopy(gone))
        for child in [o for o in self.objects.values() if owner_uid(o) == gone["metadata"]["uid"]]:
            if _key(child) in self.objects:
                self.vanish(child)

    def all(self, resource: Resource) -> list[Document]:
        """Objects of one kind."""
        return [document for (kind, _, _), document in self.objects.items() if kind == resource]

    # Below the surface

    def _existing(self, key: tuple[Resource, str | None, str]) -> Document:
        if key not in self.objects:
            raise NotFound(f"{key[0]} {key[2]} not found")
        return self.objects[key]

    def _check_served(self, resource: Resource) -> None:
        optional = {api.group for api in OPTIONAL}
        if resource.group in optional and resource.version not in self.optional.get(
            resource.group, ()
        ):
            raise NotFound(f"{resource} is not served")

    def _check_version(self, key: tuple[Resource, str | None, str], version: str | None) -> None:
        if version not in (None, self._existing(key)["metadata"]["resourceVersion"]):
            raise Conflict(f"{key[2]} has changed")

    def _born(self, document: Document) -> Document:
        self._version += 1
        metadata = {"uid": f"uid-{self._version}", "generation": 1, **document["metadata"]}
        metadata.setdefault("creationTimestamp", timestamp(utc_now()))
        return {**document, "metadata": metadata}

    def _write(
        self, verb: str, key: tuple[Resource, str | None, str], document: Document
    ) -> Document:
        self.before_write(self._name(verb, key))
        known = self.objects.get(key)
        if known is not None and _without_version(known) == _without_version(document):
            self._record(verb, key)
            return copy.deepcopy(known)
        stored = self._store(key, document, "MODIFIED" if known else "ADDED")
        self._record(verb, key)
        return stored

    def _store(
        self, key: tuple[Resource, str | None, str], document: Document, change: str
    ) -> Document:
        self._version += 1
        document["metadata"]["resourceVersion"] = str(self._version)
        before, self.objects[key] = self.objects.get(key), document
        seen = [*_watched_as(key[0], document)]
        for resource in seen:
            self.watcher(change, resource, copy.deepcopy(document))
        for resource in _watched_as(key[0], before) if before else ():
            if resource not in seen:  # a watch that selects tells of an end
                self.watcher("DELETED", resource, copy.deepcopy(document))
        return copy.deepcopy(document)

    def _record(self, verb: str, key: tuple[Resource, str | None, str]) -> None:
        self.writes.append(self._name(verb, key))
        self.after_write(self.writes[-1])

    @staticmethod
    def _name(verb: str, key: tuple[Resource, str | None, str]) -> str:
        return f"{verb} {key[0].plural}/{key[2]}"


def _key(document: Document) -> tuple[Resource, str | None, str]:
    metadata = document["metadata"]
    return resource_of(document), metadata.get("namespace"), metadata["name"]


def _matches(resource: Resource, document: Document) -> bool:
    labels = document["metadata"].get("labels") or {}
    wanted = [pair.split("=") for pair in resource.label_selector.split(",") if pair]
    return all(
        (labels.get(label.removesuffix("!")) == value) != label.endswith("!")
        for label, value in wanted
    )


def _is_alike(one: Resource, other: Resource) -> bool:
    """Whether both are of one kind, whatever they select of it."""
    return replace(one, label_selector="") == replace(other, label_selector="")


def _watched_as(resource: Resource, document: Document) -> Iterator[Resource]:
    """By whom an object is seen."""
    for each in (resource, *BESIDE):
        if _is_alike(each, resource) and _matches(each, document):
            yield each


def _without_version(document: Document) -> Document:
    metadata = {k: v for k, v in document["metadata"].items() if k != "resourceVersion"}
    return {**document, "metadata": metadata}


def _merged(live: Any, before: Any, after: Any) -> Any:
    """Three-way merge of maps; lists are taken whole."""
    if not (isinstance(live, dict) and isinstance(after, dict)):
        return after
    before = before if isinstance(before, dict) else {}
    kept = {k: v for k, v in live.items() if k in after or k not in before}
    return {**kept, **{k: _merged(live.get(k), before.get(k), v) for k, v in after.items()}}


def _patched(live: Any, patch: Any) -> Any:
    """RFC 7386."""
    if not isinstance(patch, dict):
        return patch
    result = dict(live) if isinstance(live, dict) else {}
    for field, value in patch.items():
        if value is None:
            result.pop(field, None)
        else:
            result[field] = _patched(result.get(field), value)
    return result
