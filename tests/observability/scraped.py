"""Ten minutes of what Prometheus would scrape: from a real planner, and from the engine's double.

Nothing here is made up by hand but the sizes: nodes and workloads go through the operator's own
shell, requests through the double's scheduler, and both are read off their registries.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache

from prometheus_client import CollectorRegistry

from e2e.images.double.batch import Batch, Limits
from e2e.images.double.costs import Costs
from e2e.images.double.metrics import Metrics as EngineMetrics
from e2e.images.double.sequence import Sequence
from poolwise.cluster.resources import INFERENCE_SERVICES
from poolwise.handlers.collector import ClusterCollector
from poolwise.plan.live.mismatch.clue import Mismatch
from poolwise.plan.live.telling import measured
from tests.handlers.shell import Shell, chat_service, h100_node, training_job
from tests.observability.queries import VARIABLES
from tests.plan.live.given import look

MINUTES = 10
Series = dict[str, str]
"""A series and its values, one a minute, as promtool writes them."""
_GROWING = ("_total", "_bucket", "_count", "_sum")
_LIMITS = Limits(8, 512, 4096, 16, 400)
_REQUESTS_PER_MINUTE = 30
_REQUEST = (200, 20)
"""Tokens of its prompt and of its answer."""


def series() -> Series:
    """All of it."""
    return _operator() | _engine()


@cache
def operator_registry() -> CollectorRegistry:
    """Of an operator that leads, with two pools, a service that runs, and jobs that do and wait."""
    shell = Shell()
    nodes = [h100_node(), h100_node(), _cordoned(h100_node()), _unknown(h100_node())]
    shell.put(*nodes)
    slo = [
        {"metric": metric, "percentile": 99, "target": target}
        for metric, target in (("TTFT", "5s"), ("ITL", "1s"), ("E2E", "60s"))
    ]
    shell.put(chat_service(VARIABLES["namespace"], VARIABLES["name"], slo=slo))
    shell.put(training_job("train", "runs", 8), training_job("train", "waits", 16))
    shell.put(training_job("train", "never", 512))
    shell.run(lambda: shell.start_pods(nodes[0]["metadata"]["name"]))
    _looked_at(shell)
    _work(shell)
    planner = shell.engine.planner
    collector = ClusterCollector(
        shell.engine._cache, lambda: planner.decisions.pools, each_workload=True
    )
    shell.metrics.registry.register(collector)
    return shell.metrics.registry


def _looked_at(shell: Shell) -> None:
    """What a look at the service's replicas writes to its status."""
    [service] = shell.kube.all(INFERENCE_SERVICES)
    seen = look(
        mismatches=[(Mismatch.PREEMPTIONS, "many")],
        gateway={"inferencePool": "chat", "heldRequests": 0.0},
    )
    scaling = measured(seen, {}).scaling
    told = {**service, "status": {**service["status"], "scaling": scaling}}
    told["metadata"] = {**told["metadata"], "resourceVersion": "1000000"}
    shell.engine._cache.put(INFERENCE_SERVICES, told)


def _work(shell: Shell) -> None:
    """What the fake API server does not do: requests, watches, failures, an election."""
    metrics = shell.metrics
    metrics.leader.set(1)
    metrics.ready.set(1)
    metrics.queue_depth.set(0)
    metrics.loop_lag_seconds.set(0.001)
    metrics.watch_age_seconds.labels("nodes").set(20)
    metrics.ghosts.labels("pods").inc()
    metrics.failures.labels("TrainingJob", "ChildRefused").inc()
    for code in ("200", "403", "429", "503", "none"):
        metrics.requests.labels("list", "nodes", code).inc()
    metrics.plan_seconds.observe(0.2)


def _cordoned(node: Mapping[str, object]) -> dict[str, object]:
    return {**node, "spec": {"unschedulable": True}}


def _unknown(node: dict[str, dict[str, dict[str, str]]]) -> dict[str, dict[str, dict[str, str]]]:
    labels = {**node["metadata"]["labels"], "nvidia.com/gpu.product": "NVIDIA-X999"}
    return {**node, "metadata": {**node["metadata"], "labels": labels}}


def _operator() -> Series:
    target = {
        "namespace": "poolwise-system",
        "job": "poolwise-metrics",
        "pod": "poolwise-a",
        "instance": "a:8080",
    }
    return {
        _written(name, target | labels): _values(name, value)  # honorLabels: its own labels win
        for name, labels, value in _samples(operator_registry())
    }


def _values(name: str, value: float) -> str:
    return f"{value:g}+{value:g}x{MINUTES}" if name.endswith(_GROWING) else f"{value:g}x{MINUTES}"


def _engine() -> Series:
    """The double at work; its registry is read once a minute of its own clock."""
    batch = Batch(_LIMITS, Costs())
    metrics = EngineMetrics("m", batch)
    target = {"namespace": VARIABLES["namespace"], "name": VARIABLES["name"], "pod": "assistant-0"}
    read: dict[str, list[str]] = {}
    for minute in range(MINUTES + 1):
        for name, labels, value in _samples(metrics.registry):
            read.setdefault(_written(name, target | labels), []).append(f"{value:g}")
        _serve(batch, metrics, 60.0 * minute)
    return {name: " ".join(values) for name, values in read.items()}


def _serve(batch: Batch, metrics: EngineMetrics, now: float) -> None:
    for _ in range(_REQUESTS_PER_MINUTE):
        batch.add(Sequence(*_REQUEST, arrived=now))
    while iteration := batch.schedule(now):
        now += iteration.seconds
        emitted = batch.complete(iteration, now)
        metrics.iterated(iteration, emitted)
        for token in emitted:
            if token.sequence.is_finished:
                batch.drop(token.sequence)
                metrics.finished(token.sequence, "length", now)


def engine_labels() -> dict[str, frozenset[str]]:
    """Names of the double's series, with their labels."""
    registry = EngineMetrics("m", Batch(_LIMITS, Costs())).registry
    return {name: frozenset(labels) for name, labels, _ in _samples(registry)}


def _samples(registry: CollectorRegistry) -> Iterator[tuple[str, dict[str, str], float]]:
    for family in registry.collect():
        for sample in family.samples:
            yield sample.name, sample.labels, sample.value


def _written(name: str, labels: Mapping[str, str]) -> str:
    told = ",".join(f'{label}="{value}"' for label, value in labels.items())
    return f"{name}{{{told}}}"
