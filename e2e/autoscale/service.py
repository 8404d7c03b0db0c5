"""The InferenceService that is scaled, and how its engines learn how fast they are.

How fast depends on where the operator places it and how it lays it out, so that is told once it is
known: in a ConfigMap, for which containers wait.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bench.autoscale.engine import Engine
from bench.autoscale.sizing import Targets
from e2e.controlplane.client import Object
from e2e.images.double.modelled import as_json
from e2e.images.load.plan import Lengths
from e2e.workloads import chat_service

MAX_MODEL_LENGTH = 8192
PERCENTILE = 99
INPUTS, OUTPUTS = Lengths(1000, 3000), Lengths(400, 1000)
TARGETS = Targets(ttft_seconds=2.0, tpot_seconds=0.1)


@dataclass(frozen=True, slots=True)
class Wish:
    """What its owner wants."""

    preset: str = "llama-3.1-70b"
    inputs: Lengths = INPUTS
    outputs: Lengths = OUTPUTS
    targets: Targets = TARGETS
    requests_per_second: str = "1"
    """For which it is placed at first."""
    most_replicas: int = 6
    accelerators: int | None = None
    """Of one replica; as the operator chooses when None."""
    start_seconds: float = 12.0
    """That an engine loads its model, on top of what its process takes to start."""
    metrics_port: int = 8000

    def document(self, namespace: str, name: str, *environment: Object, **spec: Any) -> Object:
        """As it is applied; ``environment`` is for its containers."""
        traffic = {
            "requestsPerSecond": self.requests_per_second,
            "inputTokens": {"p50": int(self.inputs.median), "p95": int(self.inputs.p95)},
            "outputTokens": {"p50": int(self.outputs.median), "p95": int(self.outputs.p95)},
        }
        told = [_told(name, variable) for variable in ("DOUBLE_MODEL_COSTS", "DOUBLE_KV_TOKENS")]
        start = {"name": "DOUBLE_START_SECONDS", "value": f"{self.start_seconds:g}"}
        wish = {
            "model": {"preset": self.preset, "maxModelLength": MAX_MODEL_LENGTH},
            "traffic": traffic,
            "slo": [
                _target("TTFT", self.targets.ttft_seconds),
                _target("TPOT", self.targets.tpot_seconds),
            ],
            "scaling": {"minReplicas": 1, "maxReplicas": self.most_replicas},
            "engine": {"type": "vllm", "metricsPort": self.metrics_port},
            "run": {"env": [*environment, start, *told]},
        }
        if self.accelerators is not None:
            wish["accelerators"] = {"perReplica": self.accelerators}
        return chat_service(namespace, name, **{**wish, **spec})


def _target(metric: str, seconds: float) -> Object:
    return {"metric": metric, "percentile": PERCENTILE, "target": f"{round(seconds * 1000)}ms"}


def _told(name: str, variable: str) -> Object:
    reference = {"name": map_name(name), "key": variable}
    return {"name": variable, "valueFrom": {"configMapKeyRef": reference}}


def map_name(service: str) -> str:
    """Of the ConfigMap."""
    return f"{service}-engine"


def config_map(service: Object, engine: Engine) -> Object:
    """What engines of that layout are told."""
    metadata = service["metadata"]
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": map_name(metadata["name"]), "namespace": metadata["namespace"]},
        "data": {
            "DOUBLE_MODEL_COSTS": as_json(engine.costs),
            "DOUBLE_KV_TOKENS": str(engine.limits.kv_tokens),
        },
    }
