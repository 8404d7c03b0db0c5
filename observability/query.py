"""PromQL as the dashboards write it.

Gauges of pools and workloads come from the leader. While one leader follows another both may be in
the database, so a gauge is read as ``max by (...)``, never summed over processes; a counter is
summed, for each process counts its own.
"""

from __future__ import annotations

from dataclasses import dataclass

from grafana_foundation_sdk.builders import prometheus
from grafana_foundation_sdk.models.dashboard import DataSourceRef
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

DATASOURCE = DataSourceRef(type_val="prometheus", uid="${datasource}")
"""Whatever the variable of that name holds: no dashboard knows the name of a data source."""

MIN_STEP = "30s"
"""The chart's monitors scrape this often or more; $__rate_interval is then at least four of it,
whatever the data source says of its own interval."""


@dataclass(frozen=True)
class Query:
    """One expression, and how its series are called."""

    expr: str
    legend: str = ""


def gauge(metric: str, *labels: str) -> str:
    """A gauge of one replica: ``max by (pool) (poolwise_pool_nodes)``."""
    grouping = f" by ({', '.join(labels)}) " if labels else ""
    return f"max{grouping}(poolwise_{metric})"


def over_time(query: Query, position: int) -> prometheus.Dataquery:
    """The query over the dashboard's range."""
    return _target(query, position).range().interval(MIN_STEP)


def now(query: Query, position: int) -> prometheus.Dataquery:
    """The last value alone."""
    return _target(query, position).instant()


def as_table(query: Query, position: int) -> prometheus.Dataquery:
    """The last value alone, its labels as columns."""
    return now(query, position).format(PromQueryFormat.TABLE)


def _target(query: Query, position: int) -> prometheus.Dataquery:
    return (
        prometheus.Dataquery()
        .datasource(DATASOURCE)
        .ref_id(ref_id(position))
        .expr(query.expr)
        .legend_format(query.legend or "__auto")
    )


def ref_id(position: int) -> str:
    """``A`` for the first query of a panel."""
    return chr(ord("A") + position)
