"""The metrics of the process itself; those of pools and workloads are read off their statuses, see
:mod:`poolwise.handlers.collector`."""

from __future__ import annotations

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
    start_http_server,
)

from poolwise import __version__
from poolwise.cluster import metric_table as table
from poolwise.cluster.listen import address_and_port, cannot_listen
from poolwise.cluster.metric_table import Definition

_PASS_BUCKETS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)


class Metrics:
    """What :data:`poolwise.cluster.metric_table.PROCESS` lists."""

    def __init__(self) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]  # a second series for each counter, which nobody reads
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)  # its memory, CPU and start, as process_*
        self._gauge(table.BUILD_INFO).labels(__version__).set(1)
        self.ready = self._gauge(table.READY)
        self.leader = self._gauge(table.LEADER)
        self.decisions = self._counter(table.DECISIONS)
        self.requests = self._counter(table.REQUESTS)
        self.failures = self._counter(table.FAILURES)
        self.ghosts = self._counter(table.GHOSTS)
        self.plan_seconds = Histogram(
            table.PLAN_SECONDS.full_name,
            table.PLAN_SECONDS.meaning,
            buckets=_PASS_BUCKETS,
            registry=self.registry,
        )
        self.queue_depth = self._gauge(table.QUEUE_DEPTH)
        self.longest_running = self._gauge(table.LONGEST_RUNNING)
        self.loop_lag_seconds = self._gauge(table.LOOP_LAG_SECONDS)
        self.watch_age_seconds = self._gauge(table.WATCH_AGE_SECONDS)

    def serve(self, listen: str) -> None:
        """Serve ``/metrics`` from a thread of its own, so that it answers under load too.

        :raises InvalidInput: when the address is in use, or not ours.
        """
        if listen:
            address, port = address_and_port(listen)
            try:
                start_http_server(port, address, self.registry)
            except OSError as error:
                raise cannot_listen("metrics_listen", listen, error) from error

    def _counter(self, metric: Definition) -> Counter:
        return Counter(metric.full_name, metric.meaning, metric.labels, registry=self.registry)

    def _gauge(self, metric: Definition) -> Gauge:
        return Gauge(metric.full_name, metric.meaning, metric.labels, registry=self.registry)
