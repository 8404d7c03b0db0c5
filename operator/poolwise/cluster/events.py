"""Events: one for each decision, on the object that it is about."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import datetime

import structlog
from prometheus_client import Counter

from poolwise.cluster.resources import EVENTS
from poolwise.cluster.writer import Writer
from poolwise.errors import ClusterError, NamespaceEnds, NotLeading
from poolwise.plan.observed import Object

_log = structlog.get_logger(__name__)

CONTROLLER = "poolwise.dev/operator"
_NOTE_BYTES = 1024
"""Limit of events.k8s.io/v1."""
_BURST = 25
"""Events of one reason about one object at once; then one in each :data:`_REFILL_SECONDS`, as
client-go has it."""
_REFILL_SECONDS = 300.0
_REMEMBERED = 4096
"""Reasons of objects; who was told of longest ago is forgotten, and may be told of at once."""


class Recorder:
    """Writes Events, as many as anybody can read: an object that flaps floods nobody."""

    def __init__(
        self,
        writer: Writer,
        identity: str,
        now: Callable[[], datetime],
        monotonic_seconds: Callable[[], float],
        decisions: Counter,
    ) -> None:
        self._writer = writer
        self._identity = identity
        self._now = now
        self._monotonic_seconds = monotonic_seconds
        self._decisions = decisions
        self._due_at: dict[tuple[str, str], float] = {}
        """By uid and reason: when its Events so far would all have come, one in each time."""

    async def record(self, regarding: Object, reason: str, note: str, *, warning: bool) -> bool:
        """Tell of a decision; whether that was done. An Event that fails is only logged."""
        about = (regarding["metadata"]["uid"], reason)
        if self._is_too_often(about):
            _log.info("an Event was left out", name=regarding["metadata"]["name"], reason=reason)
            return False
        try:
            await self._writer.create(self._event(regarding, reason, note, warning))
        except NamespaceEnds:
            return False  # there is nobody left to read it
        except NotLeading:
            return False  # the Lease tells of it, once for all
        except ClusterError as error:
            _log.warning("an Event could not be written", error=str(error))
            return False
        self._count(about)
        self._decisions.labels(regarding["kind"], reason).inc()
        return True

    def _is_too_often(self, about: tuple[str, str]) -> bool:
        ahead_seconds = self._due_at.get(about, 0.0) - self._monotonic_seconds()
        return ahead_seconds > (_BURST - 1) * _REFILL_SECONDS

    def _count(self, about: tuple[str, str]) -> None:
        now = self._monotonic_seconds()
        self._due_at[about] = max(self._due_at.pop(about, now), now) + _REFILL_SECONDS
        if len(self._due_at) > _REMEMBERED:
            del self._due_at[next(iter(self._due_at))]

    def _event(self, regarding: Object, reason: str, note: str, warning: bool) -> dict[str, object]:
        metadata = regarding["metadata"]
        # Events about cluster-scoped objects live in the namespace "default".
        namespace = metadata.get("namespace") or "default"
        return {
            "apiVersion": EVENTS.api_version,
            "kind": EVENTS.kind,
            "metadata": {
                "name": f"{metadata['name'][:200].rstrip('-.')}.{uuid.uuid4().hex[:16]}",
                "namespace": namespace,
            },
            "eventTime": self._now().strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            "reportingController": CONTROLLER,
            "reportingInstance": self._identity[:128],
            "action": "Plan",
            "reason": reason,
            "note": _clipped(note),
            "type": "Warning" if warning else "Normal",
            "regarding": {
                "apiVersion": regarding["apiVersion"],
                "kind": regarding["kind"],
                "name": metadata["name"],
                "namespace": metadata.get("namespace", ""),
                "uid": metadata["uid"],
                "resourceVersion": metadata.get("resourceVersion", ""),
            },
        }


def _clipped(note: str) -> str:
    encoded = note.encode()
    if len(encoded) <= _NOTE_BYTES:
        return note
    return encoded[: _NOTE_BYTES - 3].decode(errors="ignore") + "..."
