"""One writer at a time, by a ``coordination.k8s.io/Lease``, as client-go elects leaders.

No wall clock is ever compared with another machine's: a standby waits until the record has not
changed for ``lease_seconds`` of *its own* monotonic clock, and a leader counts from the moment it
*sent* its last renewal. The old leader begins no write after ``lease_renew_seconds``, and gives up
those that are not answered after ``lease_seconds``: then a new one may start, whatever the clocks
say.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from datetime import datetime
from typing import Any

import structlog

from poolwise.cluster.kube import Kube
from poolwise.cluster.readiness import Readiness
from poolwise.cluster.resources import LEASES
from poolwise.errors import ClusterError, Conflict, Forbidden
from poolwise.plan.observed import Object
from poolwise.settings import Settings

_log = structlog.get_logger(__name__)


class Lease:
    """Our claim to be the one that writes."""

    def __init__(
        self,
        kube: Kube,
        settings: Settings,
        identity: str,
        monotonic_seconds: Callable[[], float],
        now: Callable[[], datetime],
        readiness: Readiness,
    ) -> None:
        self._kube = kube
        self._settings = settings
        self._identity = identity
        self._monotonic_seconds = monotonic_seconds
        self._now = now
        self._readiness = readiness
        self.owner_references: list[dict[str, str]] = []
        """What the Lease is deleted with; it stays for good where that is nothing."""
        self._problem = ""
        """What was logged last; an outage is one line, not one for each attempt."""
        self._record: Object | None = None
        self._changed_at = 0.0
        """When we first saw the record as it is, on our own clock."""
        self._renewed_at: float | None = None
        """When we sent the last renewal that succeeded; None while we do not lead."""

    @property
    def is_held(self) -> bool:
        """Whether a write may begin at this very moment."""
        return self.seconds_left > 0.0

    @property
    def seconds_left(self) -> float:
        """Time until another may lead, for a write that begins now; 0 where none may begin."""
        if self._renewed_at is None:
            return 0.0
        age_seconds = self._monotonic_seconds() - self._renewed_at
        if age_seconds >= self._settings.lease_renew_seconds:
            return 0.0
        return self._settings.lease_seconds - age_seconds

    async def acquire(self) -> None:
        """Wait until we lead."""
        while not await self._try():
            await asyncio.sleep(self._pause_seconds())

    async def hold(self) -> None:
        """Renew; returns only when the Lease is lost."""
        while self.is_held:
            await asyncio.sleep(self._settings.lease_retry_seconds)
            await self._try()
        self._renewed_at = None

    async def release(self) -> None:
        """Hand over, so that a standby need not wait."""
        if self._renewed_at is None or self._record is None:
            return
        self._renewed_at = None
        try:
            # A standby need not wait for so long, nor need who ends us.
            async with asyncio.timeout(self._settings.lease_renew_seconds):
                await self._hand_over(self._record)
        except (ClusterError, TimeoutError) as error:
            _log.warning("the Lease could not be released", error=repr(error))

    async def _hand_over(self, record: Object) -> None:
        """A renewal that was under way as we were told to end may have been made unseen: then the
        record that we know is not the current one."""
        try:
            await self._free(record)
        except Conflict:
            current = await self._read()
            if current is not None and _holder(current) == self._identity:
                await self._free(current)

    async def _free(self, record: Object) -> None:
        spec = {**(record.get("spec") or {}), "holderIdentity": "", "leaseDurationSeconds": 1}
        limit_seconds = self._settings.lease_renew_seconds
        await self._kube.replace({**record, "spec": spec}, limit_seconds)

    async def _try(self) -> bool:
        """Take or renew the Lease if we may."""
        started = self._monotonic_seconds()
        try:
            # Half, as client-go has it: one connection that hangs must not cost the Lease.
            async with asyncio.timeout(self._settings.lease_renew_seconds / 2):
                held = await self._take()
        except Conflict:
            return False  # somebody was faster
        except Forbidden as error:
            self._readiness.forbidden("Lease", error)
            return False
        except (ClusterError, TimeoutError) as error:
            self._complain(repr(error))
            return False
        self._readiness.solved("Lease")
        self._problem = ""
        if held:
            self._tell_of_a_gap()
            self._renewed_at = started
        return held

    def _tell_of_a_gap(self) -> None:
        """By a busy machine or API server: once, and not for each write that had to wait."""
        if self._renewed_at is not None and not self.is_held:
            age_seconds = round(self._monotonic_seconds() - self._renewed_at, 1)
            _log.warning(
                "the Lease was renewed late; writes waited for it", after_seconds=age_seconds
            )

    def _complain(self, problem: str) -> None:
        if problem != self._problem:
            _log.warning("the Lease could not be read or written", error=problem)
        self._problem = problem

    async def _take(self) -> bool:
        self._observe(await self._read())
        if self._record is None:
            self._observe(await self._kube.create(self._document({}, transitions=0)))
            return True
        spec = self._record.get("spec") or {}
        is_ours = spec.get("holderIdentity") == self._identity
        if not is_ours and self._remaining_seconds(spec) > 0:
            self._renewed_at = None
            return False
        transitions = int(spec.get("leaseTransitions") or 0) + (not is_ours)
        self._observe(await self._kube.replace(self._document(self._record, transitions)))
        return True

    async def _read(self) -> Object | None:
        return await self._kube.get(
            LEASES, self._settings.lease_namespace, self._settings.lease_name
        )

    def _observe(self, record: Object | None) -> None:
        known = self._record
        if record is None or known is None or record.get("spec") != known.get("spec"):
            self._changed_at = self._monotonic_seconds()
        self._record = record

    def _remaining_seconds(self, spec: Object) -> float:
        """Time that another's Lease still runs, by our clock; 0 when nobody holds it."""
        if not spec.get("holderIdentity"):
            return 0.0
        duration = float(spec.get("leaseDurationSeconds") or 0)
        return self._changed_at + duration - self._monotonic_seconds()

    def _pause_seconds(self) -> float:
        """Until the next attempt: no later than another's Lease runs out."""
        pause = self._settings.lease_retry_seconds
        if self._record is not None:
            remaining = self._remaining_seconds(self._record.get("spec") or {})
            pause = min(pause, remaining) if remaining > 0 else pause
        return pause

    def _document(self, record: Object, transitions: int) -> dict[str, Any]:
        now = self._now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        known = record.get("spec") or {}
        is_ours = _holder(record) == self._identity
        return {
            "apiVersion": LEASES.api_version,
            "kind": LEASES.kind,
            "metadata": self._metadata(record),
            "spec": {
                "holderIdentity": self._identity,
                "leaseDurationSeconds": math.ceil(self._settings.lease_seconds),
                "acquireTime": known.get("acquireTime") if is_ours else now,
                "renewTime": now,
                "leaseTransitions": transitions,
            },
        }

    def _metadata(self, record: Object) -> dict[str, Any]:
        name, namespace = self._settings.lease_name, self._settings.lease_namespace
        known = record.get("metadata") or {"name": name, "namespace": namespace}
        return known | ({"ownerReferences": self.owner_references} if self.owner_references else {})


def _holder(record: Object) -> str:
    return str((record.get("spec") or {}).get("holderIdentity") or "")
