"""The operator's own metrics. Labels are bounded: kinds, verbs, reasons and pools, never names of
workloads or text that a user wrote."""

from __future__ import annotations

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    start_http_server,
)

from poolwise.cluster.listen import address_and_port, cannot_listen

_PASS_BUCKETS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)


class Metrics:
    """Everything under ``poolwise_``."""

    def __init__(self) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]  # a second series for each counter, which nobody reads
        self.registry = CollectorRegistry()
        self.decisions = self._counter(
            "decisions", "Decisions that were told to users.", "kind", "reason"
        )
        self.requests = self._counter(
            "api_requests", "Requests to the API server, watches apart.", "verb", "resource", "code"
        )
        self.failures = self._counter(
            "reconcile_failures", "Workloads whose reconciliation failed.", "kind", "error"
        )
        self.ghosts = self._counter(
            "cache_ghosts", "Objects whose deletion no watch told of.", "resource"
        )
        self.plan_seconds = Histogram(
            "poolwise_plan_duration_seconds",
            "Time of one planning pass over the whole cluster.",
            buckets=_PASS_BUCKETS,
            registry=self.registry,
        )
        self.queue_depth = self._gauge("queue_depth", "Workloads that wait for a worker.")
        self.loop_lag_seconds = self._gauge(
            "loop_lag_seconds", "How late the event loop ran its last timer."
        )
        self.ready = self._gauge("ready", "1 while /readyz says ok.")
        self.leader = self._gauge("leader", "1 while this process is the one that writes.")
        self.watch_age_seconds = self._gauge(
            "watch_age_seconds", "Time since the watch saw anything.", "resource"
        )
        self.workloads = self._gauge(
            "workloads", "Workloads by the reason of their state.", "kind", "reason"
        )
        self.cost_per_hour = self._gauge(
            "cost_per_hour", "Predicted cost of placed workloads.", "kind", "pool"
        )
        self.tokens_per_second = self._gauge(
            "predicted_tokens_per_second", "Of placed workloads.", "kind", "pool"
        )
        self.accelerators = self._gauge(
            "pool_accelerators", "Accelerators of usable nodes: all, and free.", "pool", "state"
        )

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

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(f"poolwise_{name}", text, labels, registry=self.registry)

    def _gauge(self, name: str, text: str, *labels: str) -> Gauge:
        return Gauge(f"poolwise_{name}", text, labels, registry=self.registry)
