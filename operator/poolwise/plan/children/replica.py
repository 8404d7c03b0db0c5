"""The pods of one replica: the engine with the plan's arguments, its probes, and its end.

One pod, unless the replica spans nodes: then a leader, which answers requests, and workers, which
answer nobody and so have no probes: where one ends, the group starts anew.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from poolwise.api import InferenceServiceSpec
from poolwise.errors import InvalidInput
from poolwise.model.work import ServingLayout
from poolwise.plan.children import pods
from poolwise.plan.children.affinity import of_replica
from poolwise.plan.children.engines import (
    DRAIN,
    ENGINES,
    METRICS_BESIDE_HTTP,
    Engine,
    arguments,
    default_image,
    node_arguments,
    waits_seconds,
    without_overridden,
)
from poolwise.plan.children.metadata import pod_metadata, selector_labels, without_empty
from poolwise.plan.children.model import Weights, weights
from poolwise.plan.children.quantity import cores, size
from poolwise.plan.decision import Key, PlacementRecord
from poolwise.plan.ledger.capacity import packs
from poolwise.plan.observed import Manifest
from poolwise.plan.pool import Pool
from poolwise.plan.wording import GIB, MIB
from poolwise.settings import Settings

HTTP, METRICS = "http", "metrics"
ANY_ADDRESS = "0.0.0.0"
PROBE_SECONDS = 10
LIVENESS_FAILURES = 6
"""A minute without an answer: an engine under full load may be late, and a restart costs more."""
STOP_MARGIN_SECONDS = 15
"""For the engine to end once the last request is done."""
SHARED_BYTES_PER_ACCELERATOR = GIB
"""Of /dev/shm: message queues and NCCL's buffers of one worker are well below."""


@dataclass(frozen=True, slots=True)
class Replica:
    """What the pod of a replica follows from."""

    key: Key
    spec: InferenceServiceSpec
    record: PlacementRecord
    pool: Pool
    settings: Settings

    @property
    def engine(self) -> Engine:
        """Its row of the table."""
        return ENGINES[self.spec.engine.type]

    @property
    def layout(self) -> ServingLayout:
        """How it is laid over accelerators or cores."""
        return self.record.serving_layout

    @property
    def nodes(self) -> int:
        """How many it spans."""
        return self.record.nodes_per_replica

    @property
    def accelerators_per_pod(self) -> int:
        """Of each of its pods, one per node."""
        return self.record.count // self.nodes

    @property
    def packs(self) -> bool:
        """Whether replicas share nodes rather than keep apart, as the ledger counted them."""
        return packs(self.layout.count, self.spec.scaling.redundancy)

    @property
    def own_image(self) -> str:
        """The image that the spec names, if any."""
        return self.spec.run.image or self.spec.engine.image

    @property
    def http_port(self) -> int:
        """Port of the API: the engine's own where it has two, else the one of the metrics.

        An engine of the user's own says so by a port named ``http``.
        """
        ports = self.spec.run.ports
        named = next((port.container_port for port in ports if port.name == HTTP), None)
        return named or self.engine.http_port or self.spec.engine.metrics_port

    @property
    def metrics_port(self) -> int:
        """Port of the metrics, beside the API's where the engine has two."""
        wished = self.spec.engine.metrics_port
        shares = self.engine.http_port is not None and wished == self.http_port
        return METRICS_BESIDE_HTTP if shares else wished


def template(replica: Replica, is_worker: bool = False) -> Manifest:
    """Pod template of a replica, or of its workers.

    :raises InvalidInput: for an engine that has no build for the pool, or cannot load the model.
    """
    spec, record, source = replica.spec, replica.record, weights(replica.spec, replica.record)
    accelerators = replica.accelerators_per_pod
    shm_volume, shm_mount = pods.shared_memory(SHARED_BYTES_PER_ACCELERATOR * max(1, accelerators))
    given = _arguments(replica, source, is_worker)
    container = pods.container_of(
        spec.run,
        "engine",
        [shm_mount, *source.mounts],
        image=_image(replica),
        command=list(spec.run.command or replica.engine.command),
        args=given,
        env=pods.environment(spec.run, [*source.environment, *_cpu_environment(replica)]),
        ports=pods.ports(spec.run, _ports(replica)),
        resources=pods.resources(spec.run, replica.pool, accelerators, _cpu_size(replica.layout)),
        lifecycle={"preStop": {"sleep": {"seconds": _stay_seconds(replica, given)}}},
        **({} if is_worker else _probes(replica)),
    )
    volumes = pods.mounted(container, [shm_volume, *source.volumes])
    pod = pods.pod_spec(spec.run, replica.pool, container, volumes, spec.priority_class_name)
    affinity = of_replica(replica.pool, replica.packs, selector_labels(replica.key))
    return {
        "metadata": pod_metadata(replica.key, record.pool),
        "spec": {
            **pod,
            **without_empty({"affinity": affinity}),
            "terminationGracePeriodSeconds": _grace_seconds(replica),
        },
    }


def rolling_update(record: PlacementRecord) -> Manifest:
    """The new replica first where there is room for it; else the update would never end."""
    surge = 1 if record.may_surge else 0
    return {"maxSurge": surge, "maxUnavailable": 1 - surge}


def _image(replica: Replica) -> str:
    engine, pool = replica.spec.engine.type, replica.pool
    image = replica.own_image or default_image(engine, pool, replica.settings)
    if image is None:
        raise InvalidInput(
            "spec.engine.image",
            f"is empty, and engine {engine} has no default image for pool {pool.name} "
            f"({pool.resource or 'CPU'})",
        )
    return image


def _arguments(replica: Replica, source: Weights, is_worker: bool) -> list[str]:
    planned = [
        *arguments(replica.engine, _values(replica, source), not replica.own_image),
        *node_arguments(replica.engine, replica.nodes, is_worker),
    ]
    users = [*replica.spec.run.args, *replica.spec.engine.args]
    return [*without_overridden(planned, users), *users]


def _values(replica: Replica, source: Weights) -> Mapping[str, object]:
    """What flags may be made from; None where the engine's own choice is right."""
    layout, record, on_cpu = replica.layout, replica.record, replica.pool.is_cpu
    return {
        "model": source.reference,
        "revision": source.revision,
        "name": replica.key.name,
        "host": ANY_ADDRESS,
        "port": replica.http_port,
        "metrics": True,
        "lengths": True,
        "metrics_port": replica.metrics_port,
        "tensor": None if on_cpu else layout.tensor,
        "pipeline": layout.pipeline if layout.pipeline > 1 else None,
        "expert": layout.expert if layout.expert > 1 else None,
        "max_model_tokens": layout.max_model_tokens,
        "max_num_seqs": layout.max_num_seqs,
        "max_batched_tokens": layout.max_batched_tokens,
        "quantization": "fp8" if replica.spec.model.quantization == "fp8" else None,
        "number_type": "float16" if layout.weight_format == "fp16" else None,
        "memory_fraction": None if on_cpu else record.memory_fraction,
        DRAIN: record.drain_seconds,
        "health_path": replica.engine.health_path,
    }


def _cpu_environment(replica: Replica) -> list[Manifest]:
    """One thread per core that the plan counted, and the key-value cache that it counted."""
    cpu_cores, cache_bytes = replica.layout.cpu_cores, replica.record.kv_cache_bytes
    if not cpu_cores:
        return []
    own = {"OMP_NUM_THREADS": max(1, math.floor(cpu_cores))}
    if replica.spec.engine.type == "vllm" and cache_bytes:
        own["VLLM_CPU_KVCACHE_SPACE"] = max(1, math.ceil(cache_bytes / GIB))
    return [{"name": name, "value": str(value)} for name, value in own.items()]


def _cpu_size(layout: ServingLayout) -> dict[str, str]:
    """Cores and memory of a CPU replica, as request and limit: for these the prediction holds.

    Whole MiB, never above what the ledger counted.
    """
    if not layout.cpu_cores:
        return {}
    return {
        "cpu": cores(layout.cpu_cores),
        "memory": size(int(layout.cpu_memory_bytes) // MIB * MIB),
    }


def _ports(replica: Replica) -> list[Manifest]:
    http, metrics = replica.http_port, replica.metrics_port
    return [pods.port(HTTP, http), *([pods.port(METRICS, metrics)] if metrics != http else [])]


def _probes(replica: Replica) -> Manifest:
    engine, budget_seconds = replica.engine, replica.record.start_budget_seconds or 0
    attempts = max(1, math.ceil(budget_seconds / PROBE_SECONDS))
    probes = {
        "startupProbe": {**_check(engine.health_path), "failureThreshold": attempts},
        "readinessProbe": {**_check(engine.health_path), "failureThreshold": 3},
    }
    if engine.live_path:
        check = _check(engine.live_path)
        probes["livenessProbe"] = {**check, "failureThreshold": LIVENESS_FAILURES}
    return probes


def _check(path: str | None) -> Manifest:
    action = {"httpGet": {"path": path, "port": HTTP}} if path else {"tcpSocket": {"port": HTTP}}
    return {**action, "periodSeconds": PROBE_SECONDS, "timeoutSeconds": 5}


def _stay_seconds(replica: Replica, given: list[str]) -> int:
    """For which a replica goes on as ever before it is told to end: until no proxy sends to it, and
    for as much of the time of its requests as its engine would not wait then."""
    waited = waits_seconds(replica.engine, given, replica.nodes)
    left_seconds = max(0.0, (replica.record.drain_seconds or 0) - waited)
    return replica.settings.endpoint_removal_seconds + math.ceil(left_seconds)


def _grace_seconds(replica: Replica) -> int:
    draining_seconds = replica.record.drain_seconds or 0
    return replica.settings.endpoint_removal_seconds + draining_seconds + STOP_MARGIN_SECONDS
