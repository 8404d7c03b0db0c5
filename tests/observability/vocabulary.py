"""What there is to query: the operator's own registry, the engines, and our recording rules."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator

from poolwise.cluster.metric_table import SECTIONS, Definition
from poolwise.cluster.metrics import Metrics
from tests.observability.promql import Labels, Vocabulary
from tests.observability.queries import rules
from tests.observability.scraped import engine_labels

TARGET = frozenset({"namespace", "pod", "container", "service", "endpoint", "job", "instance"})
"""Prometheus Operator adds them to what a ServiceMonitor or PodMonitor scrapes."""
RELABELLED = frozenset({"name", "pool"})
"""The chart's PodMonitor of engines adds them, from labels of the pods."""


def exported() -> dict[str, Labels]:
    """Series of the operator: its table of metrics, and what its registry has beside them."""
    beside = (sample for family in Metrics().registry.collect() for sample in family.samples)
    found = {sample.name: frozenset(sample.labels) for sample in beside}
    for definition in itertools.chain.from_iterable(SECTIONS.values()):
        found |= dict(_series(definition))
    return found


def _series(definition: Definition) -> Iterator[tuple[str, Labels]]:
    """Names and labels of what Prometheus sees of it."""
    name, labels = definition.full_name, frozenset(definition.labels)
    if definition.type == "histogram":
        yield f"{name}_bucket", labels | {"le"}
        yield from ((f"{name}_{part}", labels) for part in ("sum", "count"))
    else:
        yield name, labels


def vocabulary() -> Vocabulary:
    """All of them with the labels that scraping adds, and what our rules record."""
    metrics: dict[str, Collection[str]] = {
        **{name: labels | TARGET for name, labels in exported().items()},
        **{name: labels | TARGET | RELABELLED for name, labels in engine_labels().items()},
    }
    for rule in rules():
        if "record" in rule:
            own = Vocabulary(metrics).labels_of(rule["expr"]) | set(rule.get("labels", {}))
            metrics[rule["record"]] = own
    return Vocabulary(metrics)
