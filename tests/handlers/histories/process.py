"""One operator process on a cluster: everything but kopf, the network and the Lease."""

from __future__ import annotations

import asyncio
import math
import time

from poolwise.cluster import clock
from poolwise.cluster.cache import Cache
from poolwise.cluster.events import Recorder
from poolwise.cluster.listing import fill
from poolwise.cluster.metrics import Metrics
from poolwise.cluster.optional import OptionalApis
from poolwise.cluster.readiness import Readiness
from poolwise.cluster.resources import Resource
from poolwise.cluster.scraping import Source
from poolwise.cluster.writer import Writer
from poolwise.handlers.engine import Engine
from poolwise.handlers.isolation import Decide
from poolwise.settings import Settings
from tests.fake_kube import Document
from tests.handlers.histories.cluster import Cluster


class Process:
    """It leads from its start to its end."""

    def __init__(
        self, cluster: Cluster, decide: Decide, settings: Settings, source: Source
    ) -> None:
        self._cluster = cluster
        self._settings = settings
        self.leads = True
        self.cache = Cache()
        writer = Writer(cluster, self.cache, lambda: math.inf if self.leads else 0.0)
        metrics = Metrics()
        recorder = Recorder(writer, "test", clock.utc_now, time.monotonic, metrics.decisions)
        self.engine = Engine(self.cache, writer, recorder, decide, settings, metrics)
        self.engine.scaler._source = self.engine.measurer._source = source
        self.tasks: list[asyncio.Task[None]] = []
        """None ends by itself; none is left once it has ended."""

    async def start(self) -> None:
        """Read the cluster, and take up work."""
        self._cluster.operator = self._see  # what changes while it reads comes after it
        readiness = Readiness()
        await fill(self.cache, self._cluster, self._settings, readiness)
        apis = OptionalApis(self._cluster, self._cluster, self.cache, self._settings, readiness)
        await apis.open()
        apis.listen(self.engine)
        self.tasks = [asyncio.create_task(each) for each in (self.engine.run(), apis.run())]

    def _see(self, resource: Resource, change: str, document: Document) -> None:
        if self.leads:
            self.engine.see(resource, change, document)

    async def end(self) -> None:
        """As if killed: what is under way is not ended."""
        self.leads = False
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        self.tasks = []
