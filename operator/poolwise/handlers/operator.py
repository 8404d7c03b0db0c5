"""The operator process: what kopf starts, feeds and stops."""

from __future__ import annotations

import asyncio
import math
import socket
import time
import uuid
from collections.abc import Coroutine
from typing import Any

import structlog

from poolwise.cluster import clock
from poolwise.cluster.cache import Cache
from poolwise.cluster.connection import Client, Connection, WatchSession
from poolwise.cluster.events import Recorder
from poolwise.cluster.following import Listener, Silent
from poolwise.cluster.freshness import Freshness
from poolwise.cluster.health import HealthServer
from poolwise.cluster.kube import ApiKube
from poolwise.cluster.lease import Lease
from poolwise.cluster.listing import fill, prune, scopes, targets
from poolwise.cluster.metrics import Metrics
from poolwise.cluster.optional import OptionalApis
from poolwise.cluster.patience import Patience, pause_seconds
from poolwise.cluster.prometheus import Prometheus
from poolwise.cluster.pulse import Pulse
from poolwise.cluster.readiness import Readiness
from poolwise.cluster.resources import WATCHED, Resource
from poolwise.cluster.scraping import Scraper
from poolwise.cluster.writer import Writer
from poolwise.errors import ClusterError, PoolwiseError, Unavailable
from poolwise.handlers import garbage
from poolwise.handlers.collector import ClusterCollector
from poolwise.handlers.engine import Engine
from poolwise.handlers.isolation import Decide
from poolwise.plan.observed import Object
from poolwise.settings import Settings

_log = structlog.get_logger(__name__)

_GAUGE_SECONDS = 5.0
_CLOCK_SET_SECONDS = 10.0
"""The process ends when the machine's clock is set by so much, since its own does not follow: the
next one, or a standby, goes on from what the cluster tells. Clocks of machines differ by less."""
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
        self._readiness = Readiness()
        self._metrics.ready.set_function(lambda: self._readiness.problem is None)
        self._freshness = Freshness(time.monotonic, self._readiness)
        self._health = HealthServer(
            settings.liveness_listen, self._freshness, self._readiness, settings.watch_stale_seconds
        )
        self._clients: list[ApiKube | Scraper | Prometheus] = []
        self._lease: Lease | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._listener: Listener = Silent(self._cache)
        """The engine, once we lead: it looks at everything then, and a standby that noted what to
        look at would note the names of all that ever was."""
        self.stop_flag = asyncio.Event()
        """Set when the process must end."""
        self.failure: PoolwiseError | None = None
        """Why it must, if that is an error."""

    async def open(self) -> None:
        """Answer probes and scrapes, and read the credentials.

        :raises InvalidInput: when a kubeconfig or an address to listen on cannot be used.
        """
        self._metrics.serve(self._settings.metrics_listen)
        await self._health.start()
        await self._connection.log_in()

    async def start(self) -> None:
        """Read the cluster, however long that takes, then take up work as soon as we lead."""
        self._readiness.server = self._connection.configuration.host
        kube = self._client(self._connection.client())
        watches = self._client(self._connection.watch_client())
        apis = OptionalApis(kube, watches, self._cache, self._settings, self._readiness)
        await fill(self._cache, kube, self._settings, self._readiness)
        await apis.open()
        self._readiness.filled()
        known = {str(resource): len(self._cache.stores[resource]) for resource in WATCHED}
        garbage.settle()
        _log.info("the cluster is known", **known)
        self._freshness.require(targets(self._settings))
        lease = self._assemble(kube)
        self._spawn("lead", self._lead(lease, apis))
        self._spawn("relist", self._relist(kube))
        self._spawn("pulse", Pulse(kube, self._readiness, self._settings, time.monotonic).run())
        self._spawn("discover", apis.run())
        self._spawn("measure", self._measure())
        self._spawn("collect", garbage.collect(lambda: self._engine.planner.is_planning))

    def _client(self, client: Client) -> ApiKube:
        kube = ApiKube(client, self._settings, self._metrics.requests)
        self._clients.append(kube)
        return kube

    def _assemble(self, kube: ApiKube) -> Lease:
        identity = f"{socket.gethostname()}_{uuid.uuid4().hex[:8]}"
        lease = self._lease = Lease(
            kube, self._settings, identity, time.monotonic, clock.utc_now, self._readiness
        )
        lease.owner_references = self._connection.account_references(self._settings.lease_namespace)
        writer = Writer(kube, self._cache, lambda: lease.seconds_left if self._elects else math.inf)
        recorder = Recorder(
            writer, identity, clock.utc_now, time.monotonic, self._metrics.decisions
        )
        self._engine = Engine(
            self._cache, writer, recorder, self._decide, self._settings, self._metrics
        )
        self._clients.append(self._engine.scraper)
        return lease

    async def stop(self) -> None:
        """End our tasks, and hand the Lease over; a second time does nothing."""
        for task in self._tasks:
            task.remove_done_callback(self._ended)
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._elects and self._lease:
            await self._lease.release()
        for client in self._clients:
            await client.close()
        await self._health.close()
        self.stop_flag.set()  # kopf waits 5 s for whoever still waits for it

    def see(self, resource: Resource, change: str | None, document: Object) -> None:
        """Take an event in."""
        self._listener.see(resource, change, document)

    async def watch_session(self) -> tuple[str, WatchSession]:
        """The API server's address, and a session for the watches, with fresh credentials."""
        await self._connection.log_in()
        session = await self._connection.watch_session(self._freshness.middleware)
        return self._connection.configuration.host, session

    @property
    def _elects(self) -> bool:
        return self._settings.leader_election

    async def _lead(self, lease: Lease, apis: OptionalApis) -> None:
        if self._elects:
            _log.info("waiting for the Lease")
            await lease.acquire()
        self._metrics.leader.set(1)
        self._metrics.registry.register(self._collector())
        _log.info("leading")
        self._listener = self._engine
        apis.listen(self._listener)
        async with asyncio.TaskGroup() as tasks:
            engine = tasks.create_task(self._engine.run(), name="engine")
            if self._elects:
                tasks.create_task(self._hold(lease, engine), name="lease")

    def _collector(self) -> ClusterCollector:
        planner, each = self._engine.planner, self._settings.workload_metrics
        return ClusterCollector(self._cache, lambda: planner.decisions.pools, each_workload=each)

    async def _hold(self, lease: Lease, engine: asyncio.Task[None]) -> None:
        await lease.hold()
        self.fail(ClusterError("the Lease was lost"))
        engine.cancel()  # kopf takes its time to end us, and each write would fail till then
        await asyncio.get_running_loop().create_future()

    async def _relist(self, kube: ApiKube) -> None:
        """Drop ghosts: soon after kopf has listed a kind again, and now and then in any case. What
        cannot be listed yet is listed as soon as it can be: kopf will not list it once more."""
        due = time.monotonic() + self._settings.relist_seconds
        resources, pauses = set[Resource](), iter(Patience())
        while True:
            await asyncio.sleep(_RELIST_PAUSE_SECONDS)
            resources |= self._freshness.listed()
            if time.monotonic() >= due:
                resources = set(WATCHED)
                due = time.monotonic() + self._settings.relist_seconds * clock.jitter()
            try:
                for resource in tuple(resources):
                    await self._prune(kube, resource)
                    resources.discard(resource)
                pauses = iter(Patience())
            except Unavailable as error:
                _log.warning("a list failed; tried again soon", error=str(error))
                await asyncio.sleep(pause_seconds(error, next(pauses)))

    async def _prune(self, kube: ApiKube, resource: Resource) -> None:
        """:raises Unavailable: when it cannot be listed just now."""
        for namespace in scopes(resource, self._settings):
            try:
                ghosts = await prune(self._cache, kube, resource, namespace)
            except Unavailable:
                raise
            except ClusterError as error:  # its watch is told the same
                _log.warning("a list failed", resource=str(resource), error=str(error))
                continue
            for ghost in ghosts:
                self._metrics.ghosts.labels(resource.plural).inc()
                self._listener.touch(resource, ghost)

    async def _measure(self) -> None:
        while True:
            seconds = clock.set_by_seconds()
            if abs(seconds) >= _CLOCK_SET_SECONDS:
                way = "forward" if seconds > 0 else "back"
                told = f"this machine's clock was set {way} by {abs(seconds):.0f} s"
                self.fail(PoolwiseError(told))
            for plural, age in self._freshness.oldest_seconds().items():
                self._metrics.watch_age_seconds.labels(plural).set(age)
            started = time.monotonic()
            await asyncio.sleep(_GAUGE_SECONDS)
            self._metrics.loop_lag_seconds.set(time.monotonic() - started - _GAUGE_SECONDS)

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
