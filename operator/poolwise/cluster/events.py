"""Events: one for each decision, on the object that it is about."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import datetime

import structlog
from prometheus_client import Counter

from poolwise.cluster.resources import EVENTS
from poolwise.cluster.writer import Writer
from poolwise.errors import ClusterError
from poolwise.plan.observed import Object

_log = structlog.get_logger(__name__)

CONTROLLER = "poolwise.dev/operator"
_NOTE_BYTES = 1024
"""Limit of events.k8s.io/v1."""
_REMEMBERED = 4096


class Recorder:
    """Writes Events, each thing once."""

    def __init__(
        self, writer: Writer, identity: str, now: Callable[[], datetime], decisions: Counter
    ) -> None:
        self._writer = writer
        self._identity = identity
        self._now = now
        self._decisions = decisions
        self._told: dict[tuple[str, str, str], None] = {}

    async def record(self, regarding: Object, reason: str, note: str, *, warning: bool) -> None:
        """Tell of a decision unless it was told last; an Event that fails is only logged."""
        told = (regarding["metadata"]["uid"], reason, note)
        if told in self._told:
            return
        try:
            await self._writer.create(self._event(regarding, reason, note, warning))
        except ClusterError as error:
            _log.warning("an Event could not be written", error=str(error))
        else:
            self._remember(told)
            self._decisions.labels(regarding["kind"], reason).inc()

    def _remember(self, told: tuple[str, str, str]) -> None:
        self._told[told] = None
        if len(self._told) > _REMEMBERED:
            del self._told[next(iter(self._told))]

    def _event(self, regarding: Object, reason: str, note: str, warning: bool) -> dict[str, object]:
        metadata = regarding["metadata"]
        # Events about cluster-scoped objects live in the namespace "default".
        namespace = metadata.get("namespace") or "default"
        return {
            "apiVersion": EVENTS.api_version,
            "kind": EVENTS.kind,
            "metadata": {
                "name": f"{metadata['name'][:200]}.{uuid.uuid4().hex[:16]}",
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
