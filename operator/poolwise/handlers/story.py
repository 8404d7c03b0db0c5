"""The status of one workload, written when it differs, and the Events of its decisions."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from poolwise.cluster.cache import Cache, name_of
from poolwise.cluster.difference import merge_patch
from poolwise.cluster.events import Recorder
from poolwise.cluster.resources import resource_of
from poolwise.cluster.writer import Writer
from poolwise.handlers.announcement import announcements
from poolwise.handlers.planner import Planner
from poolwise.plan.decision import Key, Outcome
from poolwise.plan.observed import Object
from poolwise.plan.pool import Pool
from poolwise.plan.status.accrual import brought_up_to_date
from poolwise.plan.status.workload import is_paused, status
from poolwise.settings import Settings


class Story:
    """Tells users what was decided and what is."""

    def __init__(
        self,
        cache: Cache,
        writer: Writer,
        recorder: Recorder,
        planner: Planner,
        settings: Settings,
        now: Callable[[], datetime],
    ) -> None:
        self._cache = cache
        self._writer = writer
        self._recorder = recorder
        self._planner = planner
        self._status_seconds = settings.status_seconds
        self._accrual_seconds = settings.accrual_seconds
        self._now = now
        self._told_at: dict[Key, datetime] = {}

    async def tell(self, workload: Object, outcome: Outcome, pool: Pool | None) -> None:
        """Write the status if it differs: decisions at once, observations now and then."""
        live = self._cache.get(resource_of(workload), *name_of(workload)) or workload
        before, now = live.get("status") or {}, self._now()
        after = status(live, outcome, pool, *self._seen(live), now)
        if not is_paused(live):
            after = brought_up_to_date(after, now, self._accrual_seconds)
        changes = merge_patch(before, after)
        decisions = list(announcements(before, after))
        if changes and not decisions and self._is_too_soon(outcome.key, now):
            return self._planner.look_again(outcome.key, self._status_seconds)
        if changes:
            self._told_at[outcome.key] = now
            await self._writer.patch(live, {"status": changes}, "status")
        self._planner.told(outcome)
        for each in decisions:
            await self._recorder.record(live, each.reason, each.note, warning=each.is_warning)

    def forget(self, key: Key) -> None:
        """The workload is gone."""
        self._told_at.pop(key, None)

    def _is_too_soon(self, key: Key, now: datetime) -> bool:
        told_at = self._told_at.get(key)
        return told_at is not None and (now - told_at).total_seconds() < self._status_seconds

    def _seen(self, workload: Object) -> tuple[list[Object], list[Object]]:
        """Children of the workload, with what keeps a Job from creating its pods, and its pods."""
        children = self._cache.children_of(workload["metadata"]["uid"])
        pods = [pod for pod in self._cache.pods_of(workload) if _belongs(pod, children)]
        failures = map(self._cache.failed_creation_of, filter(_lacks_pods, children))
        return [*children, *filter(None, failures)], pods


def _lacks_pods(child: Object) -> bool:
    """Whether this is a Job that has fewer pods than it should run now."""
    spec, status = child.get("spec") or {}, child.get("status") or {}
    created = (status.get("active") or 0) + (status.get("succeeded") or 0)
    return child["kind"] == "Job" and created < (spec.get("parallelism") or 0)


def _belongs(pod: Object, children: list[Object]) -> bool:
    """Whether one of the children made the pod: labels alone could be anybody's.

    A Deployment's pods name a ReplicaSet, which is not watched; it bears the Deployment's name.
    """
    owners = pod["metadata"].get("ownerReferences") or []
    uids = {child["metadata"]["uid"] for child in children}
    names = {f"{child['metadata']['name']}-" for child in children if child["kind"] == "Deployment"}
    return any(
        owner["uid"] in uids
        or (owner["kind"] == "ReplicaSet" and owner["name"].startswith(tuple(names)))
        for owner in owners
        if owner.get("controller")
    )
