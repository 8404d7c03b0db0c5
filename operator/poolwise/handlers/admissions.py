"""Our AdmissionCheck: it is declared active, and Workloads that wait for it get their answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from poolwise.cluster.cache import Cache
from poolwise.cluster.resources import ADMISSION_CHECKS, QUEUED
from poolwise.cluster.writer import Writer
from poolwise.handlers.planner import KueueObject, Planner
from poolwise.plan.conditions import merged, timestamp
from poolwise.plan.kueue.words import CONTROLLER, CheckState
from poolwise.plan.observed import CheckAnswer, Object
from poolwise.plan.pool import Condition

ACTIVE = Condition(
    "Active", True, "Active", "Poolwise answers: a pool within the flavor, and one domain of it"
)


@dataclass(frozen=True, slots=True)
class Admissions:
    """Writes to Kueue's objects; their status alone."""

    cache: Cache
    writer: Writer
    planner: Planner
    now: Callable[[], datetime]

    async def reconcile(self, guest: KueueObject) -> None:
        """Make what Kueue reads what the newest pass decided."""
        if guest.namespace:
            await self._answer(guest)
        else:
            await self._declare(guest.name)

    async def _declare(self, name: str) -> None:
        """Say that somebody answers this check: Kueue lets nobody wait for one that nobody does."""
        check = self.cache.get(ADMISSION_CHECKS, None, name)
        if check is None or (check.get("spec") or {}).get("controllerName") != CONTROLLER:
            return
        before = (check.get("status") or {}).get("conditions") or []
        after = merged(before, [ACTIVE], check["metadata"].get("generation", 0), self.now())
        if before != after:
            await self.writer.patch(check, {"status": {"conditions": after}}, "status")

    async def _answer(self, guest: KueueObject) -> None:
        workload = self.cache.get(QUEUED, guest.namespace, guest.name)
        answer = self.planner.decisions.answers.get((guest.namespace, guest.name))
        if workload is None or answer is None:
            return
        states = (workload.get("status") or {}).get("admissionChecks") or []
        after = [self._stated(each, answer) for each in states]
        if after == states:
            return
        # The list is written whole: not over what Kueue has changed in it meanwhile.
        version = {"resourceVersion": workload["metadata"]["resourceVersion"]}
        changes = {"metadata": version, "status": {"admissionChecks": after}}
        await self.writer.patch(workload, changes, "status")

    def _stated(self, state: dict[str, Any], answer: CheckAnswer) -> Object:
        if state.get("name") != answer.check or state.get("state") != CheckState.PENDING:
            return state
        told: dict[str, Any] = {
            **state,
            "state": answer.state,
            "message": answer.message,
            "lastTransitionTime": timestamp(self.now()),
        }
        if answer.requeue_after_seconds is not None:
            told["requeueAfterSeconds"] = answer.requeue_after_seconds
        if answer.pod_set_updates:
            told["podSetUpdates"] = [dict(each) for each in answer.pod_set_updates]
        return told
