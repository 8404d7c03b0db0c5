"""Read who wrote what, from the API server's own audit log."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "Metadata", "verbs": ["create", "update", "patch", "delete", "deletecollection"]},
        {"level": "None"},
    ],
}
"""Every write, however it ended; reads are not recorded."""

_LONGEST_LINE_BYTES = 2**20
"""More than any event of the ``Metadata`` level has."""


@dataclass(frozen=True)
class Write:
    """One write request, answered: by whom, of what, and with which HTTP status."""

    user: str
    user_agent: str
    verb: str
    """``create``, ``update``, ``patch``, ``delete`` or ``deletecollection``."""
    resource: str
    """With subresource, as RBAC writes it: ``jobs``, ``trainingjobs/status``."""
    group: str
    namespace: str
    name: str
    code: int
    received_at: str

    def __str__(self) -> str:
        where = "/".join(part for part in (self.namespace, self.name) if part)
        return f"{self.received_at} {self.user} {self.verb} {self.resource} {where}: {self.code}"


class AuditLog:
    """The audit log of one API server, which writes it before it answers."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def mark(self) -> int:
        """Where the last whole line ends now, to read from there later.

        A line may be seen half written: a mark amid it would have the next reading begin there.
        """
        with self.path.open("rb") as log:
            start = log.seek(max(0, log.seek(0, os.SEEK_END) - _LONGEST_LINE_BYTES))
            return start + log.read().rfind(b"\n") + 1

    def writes(
        self,
        since: int = 0,
        *,
        user: str | None = None,
        verb: str | None = None,
        resource: str | None = None,
    ) -> list[Write]:
        """The writes after ``since``, of that user, verb and resource where given.

        A user matches by name, or by the start of the user agent: ``kubectl`` finds all of its.
        """
        return [
            write
            for write in self._read(since)
            if (user is None or user == write.user or write.user_agent.startswith(user))
            and verb in (None, write.verb)
            and resource in (None, write.resource)
        ]

    def _read(self, since: int) -> Iterator[Write]:
        with self.path.open("rb") as log:
            log.seek(since)
            for line in log:
                if line.endswith(b"\n"):  # the last one may still be half written
                    yield _write(json.loads(line))


def _write(event: dict[str, Any]) -> Write:
    target = event.get("objectRef", {})
    parts = (target.get("resource", ""), target.get("subresource", ""))
    return Write(
        user=event["user"].get("username", ""),
        user_agent=event.get("userAgent", ""),
        verb=event["verb"],
        resource="/".join(part for part in parts if part),
        group=target.get("apiGroup", ""),
        namespace=target.get("namespace", ""),
        name=target.get("name", ""),
        code=event.get("responseStatus", {}).get("code", 0),
        received_at=event["requestReceivedTimestamp"],
    )
