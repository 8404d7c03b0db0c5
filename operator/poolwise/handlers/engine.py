"""The level-triggered loop: events mark what is dirty, passes decide, workers write.

::

    event -> cache -> want -> [planning pass] -> queue -> [worker] -> writes -> cache
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import structlog

from poolwise.cluster import clock
from poolwise.cluster.cache import Cache
from poolwise.cluster.events import Recorder
from poolwise.cluster.metrics import Metrics
from poolwise.cluster.prometheus import Prometheus
from poolwise.cluster.queue import WorkQueue
from poolwise.cluster.resources import (
    ACCELERATOR_POOLS,
    ADMISSION_CHECKS,
    LOOKED_AT,
    QUEUED,
    WORKLOADS,
    Resource,
)
from poolwise.cluster.scraping import Scraper
from poolwise.cluster.store import name_of
from poolwise.cluster.under_way import UnderWay
from poolwise.cluster.writer import Writer
from poolwise.errors import ClusterError, NamespaceEnds, NotFound, NotLeading, Unavailable
from poolwise.handlers.admissions import Admissions
from poolwise.handlers.children import Children
from poolwise.handlers.draining import Draining
from poolwise.handlers.isolation import Decide
from poolwise.handlers.looks import Looks
from poolwise.handlers.measuring import Measurer
from poolwise.handlers.planner import KueueObject, Planner, Target
from poolwise.handlers.pools import Pools
from poolwise.handlers.reconciler import Reconciler, manifests, workload_of
from poolwise.handlers.refusals import REFUSALS, internal_error, reason_of
from poolwise.handlers.routing import targets_of
from poolwise.handlers.scaling import Scaler
from poolwise.handlers.story import Story
from poolwise.plan.children.metadata import key_of
from poolwise.plan.conditions import Reason
from poolwise.plan.decision import Key, Plan, Rejection
from poolwise.plan.observed import Decisions, Object
from poolwise.settings import Settings

_log = structlog.get_logger(__name__)

_NO_FAILURES = (Reason.INVALID_SPEC, Reason.NAME_IN_DELETION)
"""Of ours: the one is its owner's to mend, and the other passes."""


class Engine:
    """Everything between the events and the writes; knows nothing of kopf or of processes."""

    def __init__(
        self,
        cache: Cache,
        writer: Writer,
        recorder: Recorder,
        decide: Decide,
        settings: Settings,
        metrics: Metrics,
    ) -> None:
        self._cache = cache
        self._settings = settings
        self._metrics = metrics
        self._queue: WorkQueue[Target] = WorkQueue(
            settings.retry_seconds, settings.retry_limit_seconds, clock.jitter
        )
        metrics.queue_depth.set_function(lambda: len(self._queue))
        self.planner = Planner(cache, self._queue, decide, self._manifests, settings, metrics)
        looks = Looks(settings.training_interval_seconds)
        story = Story(cache, writer, recorder, self.planner, settings, looks)
        self.scraper = Prometheus(settings) if settings.prometheus_url else Scraper(settings)
        self.scaler = Scaler(cache, self.planner, self.scraper.look, looks.services, settings)
        self.measurer = Measurer(cache, self.planner, self.scraper.look, looks.runs, settings)
        children = Children(cache, writer, Draining(cache, writer, self.scaler.samples))
        self._reconciler = Reconciler(cache, self.planner, children, story, settings)
        self._pools = Pools(cache, writer, self.planner, clock.utc_now)
        self._admissions = Admissions(cache, writer, self.planner, clock.utc_now)
        self._tell_what_hangs(metrics)

    def _tell_what_hangs(self, metrics: Metrics) -> None:
        """What never ends tells of no error: the age of the oldest does."""
        loops: dict[str, UnderWay[Any]] = {
            "planning": self.planner.under_way,
            "writing": self._queue.active,
            "measuring": self.measurer.under_way,
            **self.scaler.under_way,
        }
        for name, under_way in loops.items():
            metrics.longest_running.labels(name).set_function(under_way.oldest_seconds)

    def see(self, resource: Resource, change: str | None, document: Object) -> None:
        """Take an event in."""
        if change == "DELETED":
            changed = self._cache.remove(resource, document)
        else:
            known = self._cache.get(resource, *name_of(document))
            changed = self._cache.put(resource, document)
            if changed and known is not None and not _is_of_the_same(known, document):
                self.touch(resource, known)  # whose it was lacks it now
            if changed and resource in WORKLOADS and not _is_same(known, document):
                self._forget(key_of(document))
        if changed:
            self.touch(resource, document)

    def _forget(self, key: Key) -> None:
        """What is known of a workload that had this name before tells nothing of the one that has
        it now."""
        self.scaler.forget(key)
        self.measurer.forget(key)
        self.planner.forget(key)

    def touch(self, resource: Resource, document: Object) -> None:
        """Look at what ``document`` is part of, and plan again."""
        if resource in LOOKED_AT:
            return
        targets = list(targets_of(self._cache, resource, document))
        if resource == QUEUED and not targets:
            return  # somebody else's job in somebody else's queue
        self.planner.want()
        for target in targets:
            if isinstance(target, Key):
                self.planner.forgive(target)
            self.planner.want(target)

    def touch_all(self) -> None:
        """Look at everything."""
        self.planner.want()
        for resource in (*WORKLOADS, ACCELERATOR_POOLS, ADMISSION_CHECKS, QUEUED):
            for document in self._cache.stores[resource]:
                for target in targets_of(self._cache, resource, document):
                    self.planner.want(target)

    async def run(self) -> None:
        """Plan and write, for ever; first of all, look at everything."""
        self.touch_all()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.planner.run(), name="planner")
            tasks.create_task(self._resync(), name="resync")
            if self._settings.scaling_interval_seconds:
                tasks.create_task(self.scaler.run(), name="scaling")
            if self._settings.training_interval_seconds:
                tasks.create_task(self.measurer.run(), name="measuring")
            for number in range(self._settings.queue_workers):
                tasks.create_task(self._work(), name=f"worker-{number}")

    async def settle(self) -> None:
        """Plan and work until nothing is left that could be done at once."""
        while self.planner.is_wanted or not self._queue.is_idle:
            if self.planner.is_wanted:
                await self.planner.plan()
            while not self._queue.is_idle:
                await self._work_once()

    async def _resync(self) -> None:
        while True:
            await asyncio.sleep(self._settings.resync_seconds * clock.jitter())
            self.touch_all()

    async def _work(self) -> None:
        while True:
            await self._work_once()

    async def _work_once(self) -> None:
        target = await self._queue.get()
        try:
            await self._attempt(target)
        finally:
            self._queue.done(target)

    async def _attempt(self, target: Target) -> None:
        """Work on one target; whatever goes wrong stays with it."""
        try:
            if isinstance(target, Key):
                await self._reconciler.reconcile(target)
            elif isinstance(target, KueueObject):
                await self._admissions.reconcile(target)
            else:
                await self._pools.reconcile(target)
        except NamespaceEnds as error:  # the workload goes too, once its pods have drained
            _log.info("not done: its namespace is being deleted", target=str(target))
            self._give_place(target, reason_of(error), str(error), for_good=True)
        except REFUSALS as error:
            self._refused(target, reason_of(error), str(error))
        except (NotFound, NotLeading):  # gone: the watch will tell; a late Lease tells by itself
            self._queue.add_failed(target)
        except ClusterError as error:
            seconds = error.retry_after_seconds if isinstance(error, Unavailable) else None
            self._failed(target, type(error).__name__, str(error))
            self._queue.add_failed(target, seconds)
        except Exception as error:
            _log.exception("reconciliation failed", target=str(target))
            self._refused(target, reason_of(error), internal_error(error))
        else:
            if not (isinstance(target, Key) and self.planner.is_refused(target)):
                self._queue.forgive(target)

    def _refused(self, target: Target, reason_code: str, reason: str) -> None:
        """What was decided cannot be done: give its place to others, and say so."""
        if reason_code in _NO_FAILURES:
            _log.info("not done", target=str(target), reason=reason_code, problem=reason)
        else:
            self._failed(target, reason_code, reason)
        self._give_place(target, reason_code, reason)

    def _give_place(
        self, target: Target, reason_code: str, reason: str, *, for_good: bool = False
    ) -> None:
        """``for_good``: it would take and leave its place again and again, and others follow."""
        plan = self.planner.decisions.outcomes.get(target) if isinstance(target, Key) else None
        if not isinstance(plan, Plan) or plan.kept:
            self._queue.add_failed(target, self._settings.retry_limit_seconds if for_good else None)
        elif reason_code == Reason.INVALID_SPEC:
            told = (reason_code, reason)
            self.planner.refuse(Rejection(plan.key, plan.uid, plan.generation, *told))
        elif plan.placed:
            self.planner.refuse(_undone(plan, reason_code, reason), for_good=for_good)
        else:
            self._queue.add_failed(target)

    def _failed(self, target: Target, reason_code: str, reason: str) -> None:
        kind = ACCELERATOR_POOLS.kind if isinstance(target, str) else str(target.kind)
        self._metrics.failures.labels(kind, reason_code).inc()
        _log.warning("not done", target=str(target), reason=reason_code, problem=reason)

    def _manifests(self, plan: Plan, decisions: Decisions) -> tuple[Object, ...]:
        workload = workload_of(self._cache, plan.key)
        return manifests(workload, plan, decisions, self._settings) if workload else ()


def _is_same(known: Object | None, document: Object) -> bool:
    return known is not None and known["metadata"]["uid"] == document["metadata"]["uid"]


def _is_of_the_same(known: Object, document: Object) -> bool:
    """Whether an object is still part of what it was part of."""
    before, after = known["metadata"], document["metadata"]
    return all(before.get(each) == after.get(each) for each in ("labels", "ownerReferences"))


def _undone(plan: Plan, reason_code: str, reason: str) -> Plan:
    """What is left of a plan that cannot be carried out."""
    return replace(
        plan, placed=False, claim=None, record=None, reason_code=reason_code, reason=reason
    )
