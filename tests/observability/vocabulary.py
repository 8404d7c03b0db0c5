"""What there is to query: the operator's own registry, the engines, and our recording rules."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping

from poolwise.cluster.metric_table import SECTIONS, Definition
from poolwise.cluster.metrics import Metrics
from tests.observability.promql import Labels, Vocabulary
from tests.observability.queries import rules

TARGET = frozenset({"namespace", "pod", "container", "service", "endpoint", "job", "instance"})
"""Prometheus Operator adds them to what a ServiceMonitor or PodMonitor scrapes."""
RELABELLED = frozenset({"name", "pool"})
"""The chart's PodMonitor of engines adds them, from labels of the pods."""

_ENGINE = frozenset({"model_name", "engine"})
HISTOGRAMS: Mapping[str, tuple[float, ...]] = {
    "vllm:time_to_first_token_seconds": (
        *(0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5),
        *(10, 20, 40, 80, 160, 640, 2560),
    ),
    "vllm:inter_token_latency_seconds": (
        *(0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10),
        *(20, 40, 80),
    ),
    "vllm:e2e_request_latency_seconds": (
        *(0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960),
        *(1920, 7680),
    ),
}
"""Bounds of vLLM's buckets: vllm/v1/metrics/loggers.py."""
ENGINE: Mapping[str, Labels] = {
    "vllm:num_requests_running": _ENGINE,
    "vllm:num_requests_waiting": _ENGINE,
    "vllm:kv_cache_usage_perc": _ENGINE,
    "vllm:prompt_tokens_total": _ENGINE,
    "vllm:generation_tokens_total": _ENGINE,
    "vllm:request_success_total": _ENGINE | {"finished_reason"},
    **{f"{name}_bucket": _ENGINE | {"le"} for name in HISTOGRAMS},
    **{f"{name}_count": _ENGINE for name in HISTOGRAMS},
    **{f"{name}_sum": _ENGINE for name in HISTOGRAMS},
}
"""What vLLM exports of what we query, in the same file."""


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
        **{name: labels | TARGET | RELABELLED for name, labels in ENGINE.items()},
    }
    for rule in rules():
        if "record" in rule:
            own = Vocabulary(metrics).labels_of(rule["expr"]) | set(rule.get("labels", {}))
            metrics[rule["record"]] = own
    return Vocabulary(metrics)
