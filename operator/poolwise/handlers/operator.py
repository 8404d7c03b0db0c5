"""The operator process: what kopf starts, feeds and stops."""

from __future__ import annotations

import asyncio
import socket
import time
import uuid
from collections.abc import Coroutine
from typing import Any

import structlog

from poolwise.cluster import clock
from poolwise.cluster.cache import Cache
from poolwise.cluster.connection import Connection, WatchSession
from poolwise.cluster.events import Recorder
from poolwise.cluster.freshness import Freshness
from poolwise.cluster.kube import ApiKube
from poolwise.cluster.lease import Lease
from poolwise.cluster.listing import fill, prune, scopes
from poolwise.cluster.metrics import Metrics
from poolwise.cluster.resources import WATCHED, Resource
from poolwise.cluster.writer import Writer
from poolwise.errors import ClusterError, PoolwiseError
from poolwise.handlers.engine import Engine
from poolwise.handlers.gauges import measure
from poolwise.handlers.isolation import Decide
from poolwise.plan.observed import Object
from poolwise.settings import Settings

_log = structlog.get_logger(__name__)

_GAUGE_SECONDS = 5.0
_RELIST_PAUSE_SECONDS = 2.0
"""After a watch listed anew, so that one prune serves a burst of events."""


class Operator:
    """One process: connection, cache, Lease, engine, and the tasks that keep them going."""

    def __init__(self, connection: Connection, settings: Settings, decide: Decide) -> None:
        self._connection = connection
        where = settings.lease_namespace or connection.namespace
        self._settings = settings.model_copy(update={"lease_namespace": where})
        self._decide = decide
        self._metrics = Metrics()
        self._cache = Cache()
        self._freshness = Freshness(time.monotonic)
        self._tasks: list[asyncio.Task[None]] = []
        self._relisted: set[Resource] = set()
        self.stop_flag = asyncio.Event()
        """Set when the process must end."""
        self.failure: PoolwiseError | None = None
        """Why it must, if that is an error."""

    async def start(self) -> None:
        """Read the cluster, then take up work as soon as we lead.

        :raises PoolwiseError: when the cluster cannot be used as it is.
        """
        await self._connection.log_in()
        self._kube = ApiKube(self._connection.client(), self._settings, self._metrics.requests)
        try:
            await fill(self._cache, self._kube, self._settings)
        except PoolwiseError:
            await self._kube.close()
            raise
        known = {str(resource): len(self._cache.stores[resource]) for resource in WATCHED}
        _log.info("the cluster is known", **known)
        self._freshness.require(
            resource.path(namespace)
            for resource in WATCHED
            for namespace in scopes(resource, self._settings)
        )
        self._serve_metrics()
        self._assemble()
        self._spawn("lead", self._lead())
        self._spawn("relist", self._relist())
        self._spawn("measure", self._measure())

    def _assemble(self) -> None:
        identity = f"{socket.gethostname()}_{uuid.uuid4().hex[:8]}"
        self._lease = Lease(self._kube, self._settings, identity, time.monotonic, clock.utc_now)
        writer = Writer(self._kube, self._cache, self._leads)
        recorder = Recorder(writer, identity, clock.utc_now, self._metrics.decisions)
        self._engine = Engine(
            self._cache, writer, recorder, self._decide, self._settings, self._metrics
        )

    async def stop(self) -> None:
        """End our tasks, and hand the Lease over."""
        for task in self._tasks:
            task.remove_done_callback(self._ended)
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._settings.leader_election:
            await self._lease.release()
        await self._kube.close()
        self.stop_flag.set()  # kopf waits 5 s for whoever still waits for it

    def see(self, resource: Resource, change: str | None, document: Object) -> None:
        """Take an event in."""
        if change is None:  # kopf lists: at the start, and after a watch was interrupted
            self._relisted.add(resource)
        self._engine.see(resource, change, document)

    async def watch_session(self) -> tuple[str, WatchSession]:
        """The API server's address, and a session for the watches, with fresh credentials."""
        await self._connection.log_in()
        session = await self._connection.watch_session(self._freshness.trace)
        return self._connection.configuration.host, session

    def oldest_watch_seconds(self) -> float:
        """Time since the quietest watch received anything."""
        return max(self._freshness.ages_seconds().values(), default=0.0)

    def ill(self) -> str | None:
        """Why this process should be restarted; None while it is well."""
        ages = self._freshness.ages_seconds()
        stale = [path for path, age in ages.items() if age > self._settings.watch_stale_seconds]
        return f"watches that receive nothing: {', '.join(stale)}" if stale else None

    def _leads(self) -> bool:
        return not self._settings.leader_election or self._lease.is_held

    async def _lead(self) -> None:
        if self._settings.leader_election:
            _log.info("waiting for the Lease")
            await self._lease.acquire()
        self._metrics.leader.set(1)
        _log.info("leading")
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._engine.run(), name="engine")
            if self._settings.leader_election:
                tasks.create_task(self._hold(), name="lease")

    async def _hold(self) -> None:
        await self._lease.hold()
        self.fail(ClusterError("the Lease was lost"))

    async def _relist(self) -> None:
        """Drop ghosts: soon after kopf has listed a kind again, and now and then in any case."""
        due = time.monotonic() + self._settings.relist_seconds
        while True:
            await asyncio.sleep(_RELIST_PAUSE_SECONDS)
            resources, self._relisted = self._relisted, set()
            if time.monotonic() >= due:
                resources = set(WATCHED)
                due = time.monotonic() + self._settings.relist_seconds * clock.jitter()
            for resource in resources:
                for namespace in scopes(resource, self._settings):
                    await self._prune(resource, namespace)

    async def _prune(self, resource: Resource, namespace: str | None) -> None:
        for ghost in await prune(self._cache, self._kube, resource, namespace):
            self._metrics.ghosts.labels(resource.plural).inc()
            self._engine.touch(resource, ghost)

    async def _measure(self) -> None:
        while True:
            started = time.monotonic()
            await asyncio.sleep(_GAUGE_SECONDS)
            self._metrics.loop_lag_seconds.set(time.monotonic() - started - _GAUGE_SECONDS)
            for path, age in self._freshness.ages_seconds().items():
                self._metrics.watch_age_seconds.labels(path.rpartition("/")[2]).set(age)
            measure(self._cache, self._metrics)

    def _serve_metrics(self) -> None:
        if self._settings.metrics_listen:
            address, _, port = self._settings.metrics_listen.rpartition(":")
            self._metrics.serve(address.strip("[]"), int(port))

    def _spawn(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work, name=name)
        task.add_done_callback(self._ended)
        self._tasks.append(task)

    def _ended(self, task: asyncio.Task[None]) -> None:
        """None of our tasks ends by itself; a process without one of them must not limp on."""
        error = None if task.cancelled() else task.exception()
        _log.error("a task ended", task=task.get_name(), exc_info=error)
        self.fail(ClusterError(f"{task.get_name()} ended: {error!r}"))

    def fail(self, error: PoolwiseError) -> None:
        """End the process because of ``error``."""
        self.failure = self.failure or error
        self.stop_flag.set()
