"""Objects of one kind: the newest version of each, whatever order events come in.

Two things a plain dict would get wrong: an event that is older than what is known (the answer to
an own write, most of the time) is ignored, and an object that was deleted does not come back by a
late event of its earlier life.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Hashable, Iterator

from poolwise.cluster.resources import FAILED_CREATIONS, PODS, WORKLOADS, owner_uid
from poolwise.plan.names import OWNER_KIND, OWNER_NAME, child_name
from poolwise.plan.observed import Object

Name = tuple[str | None, str]
"""Namespace and name."""

_WORKLOADS = frozenset(resource.kind for resource in WORKLOADS)

_GRAVES = 4096
"""Deleted objects that are remembered by uid: more than events can be late for."""
_FUTILE = 4
"""Writes without effect that are remembered of an object: its parts are written apart."""


def name_of(document: Object) -> Name:
    """Key of an object within its kind."""
    metadata = document["metadata"]
    return metadata.get("namespace"), metadata["name"]


_State = tuple[str, str | None]
"""Uid and version."""


class Store:
    """Objects of one kind by name, and by one attribute that they are looked up by; and which
    writes would change nothing about them."""

    def __init__(self) -> None:
        self._objects: dict[Name, Object] = {}
        self._by_index: dict[Hashable, dict[Name, Object]] = defaultdict(dict)
        self._graves: dict[str, str | None] = {}
        """By uid: the version in which it went; None: whatever comes of it is late."""
        self._futile: dict[Name, tuple[_State, deque[Object]]] = {}

    def __iter__(self) -> Iterator[Object]:
        return iter(list(self._objects.values()))

    def __len__(self) -> int:
        return len(self._objects)

    def get(self, name: Name) -> Object | None:
        """The object of that name."""
        return self._objects.get(name)

    def with_index(self, value: Hashable) -> list[Object]:
        """Objects whose :func:`index_of` is ``value``."""
        return list(self._by_index.get(value, {}).values())

    def put(self, document: Object) -> bool:
        """Remember ``document`` unless it is older than what is known; whether anything changed."""
        name = name_of(document)
        known = self._objects.get(name)
        if self._is_late(document) or _is_older(document, known):
            return False
        self._graves.pop(document["metadata"]["uid"], None)
        self._forget(name)
        self._objects[name] = document
        self._by_index[index_of(document)][name] = document
        return known is None or _content(known) != _content(document)

    def remove(self, document: Object, *, for_good: bool = False) -> bool:
        """Forget ``document``; whether it was known.

        A watch that selects by a label tells of the end of what lost the label as well. So an
        object may come back in a newer version, unless it went ``for_good``: we deleted it.
        """
        uid = document["metadata"]["uid"]
        self._graves[uid] = None if for_good else _version(document)
        if len(self._graves) > _GRAVES:
            del self._graves[next(iter(self._graves))]
        known = self._objects.get(name_of(document))
        if known is None or known["metadata"]["uid"] != uid:
            return False
        self._forget(name_of(document))
        self._futile.pop(name_of(document), None)
        return True

    def is_futile(self, live: Object, write: Object) -> bool:
        """Whether ``write`` was tried on exactly this version of an object, and changed nothing."""
        state, writes = self._futile.get(name_of(live), (None, ()))
        return state == _state(live) and write in writes

    def found_futile(self, live: Object, write: Object) -> None:
        """``write`` changed nothing; remembered until the object changes or goes."""
        if live["metadata"]["uid"] in self._graves:
            return  # it went while the answer was on its way
        state, writes = self._futile.get(name_of(live), (None, deque[Object]()))
        if state != _state(live):
            writes = deque(maxlen=_FUTILE)
        writes.append(write)
        self._futile[name_of(live)] = _state(live), writes

    def _is_late(self, document: Object) -> bool:
        """Whether this is from before its end."""
        uid = document["metadata"]["uid"]
        end = self._graves.get(uid)
        return uid in self._graves and (end is None or not _is_before(end, _version(document)))

    def _forget(self, name: Name) -> None:
        known = self._objects.pop(name, None)
        if known is not None:
            index = index_of(known)
            self._by_index[index].pop(name)
            if not self._by_index[index]:
                del self._by_index[index]


def index_of(document: Object) -> Hashable:
    """What an object is looked up by: children by their owner, pods and workloads by labels, Events
    by what they are about."""
    metadata, kind = document["metadata"], document["kind"]
    if kind == FAILED_CREATIONS.kind:
        return (document.get("regarding") or {}).get("uid")
    if kind == PODS.kind:
        labels = metadata.get("labels") or {}
        return metadata.get("namespace"), labels.get(OWNER_KIND), labels.get(OWNER_NAME)
    if kind in _WORKLOADS:
        return metadata.get("namespace"), kind, child_name(metadata["name"])
    return owner_uid(document)


def _state(document: Object) -> _State:
    metadata = document["metadata"]
    return metadata["uid"], metadata.get("resourceVersion")


def _is_older(document: Object, known: Object | None) -> bool:
    if known is None:
        return False
    return _is_before(_version(document), _version(known))


def _is_before(one: str, other: str) -> bool:
    # Numbers by contract since Kubernetes 1.35, and in practice before; else trust the order.
    return one.isdigit() and other.isdigit() and int(one) < int(other)


def _version(document: Object) -> str:
    return str(document["metadata"].get("resourceVersion", ""))


def _content(document: Object) -> tuple[Object, Object]:
    metadata = {
        field: value
        for field, value in document["metadata"].items()
        if field not in ("resourceVersion", "generation")
    }
    return metadata, {field: value for field, value in document.items() if field != "metadata"}
