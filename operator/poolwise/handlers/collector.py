"""Metrics of pools and workloads, made anew for each scrape, so that none is ever half told and
what is gone leaves no series behind."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from poolwise.cluster.cache import Cache
from poolwise.cluster.clock import utc_now
from poolwise.cluster.metric_table import Definition
from poolwise.cluster.resources import ACCELERATOR_POOLS, WORKLOADS
from poolwise.handlers.pool_series import pool_samples
from poolwise.handlers.samples import Sample
from poolwise.handlers.workload_series import samples_of_each, sums
from poolwise.plan.pool import Pool

_Family = CounterMetricFamily | GaugeMetricFamily


class ClusterCollector(Collector):
    """Registered by the leader alone: two replicas that told the same would double every sum.

    A scrape comes from another thread. It copies each list of objects in one step, and the objects
    themselves never change.
    """

    def __init__(
        self,
        cache: Cache,
        pools: Callable[[], Sequence[Pool]],
        *,
        each_workload: bool,
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        self._cache = cache
        self._pools = pools
        self._each_workload = each_workload
        self._now = now

    def collect(self) -> Iterator[Metric]:
        """All samples, by metric."""
        families: dict[Definition, _Family] = {}
        for metric, labels, value in self._samples():
            family = families.get(metric)
            if family is None:
                of_type = CounterMetricFamily if metric.type == "counter" else GaugeMetricFamily
                family = of_type(metric.full_name, metric.meaning, labels=metric.labels)
                families[metric] = family
            family.add_metric(labels, value)
        yield from families.values()

    def _samples(self) -> Iterator[Sample]:
        stores = self._cache.stores
        workloads = list(itertools.chain.from_iterable(stores[kind] for kind in WORKLOADS))
        yield from pool_samples(stores[ACCELERATOR_POOLS], self._pools())
        yield from sums(workloads)
        if self._each_workload:
            yield from samples_of_each(workloads, self._now())
