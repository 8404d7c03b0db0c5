"""Workloads whose pods run our own image: a rendezvous for training, an engine for serving."""

from __future__ import annotations

from typing import Any

from e2e.controlplane.client import Object
from e2e.kind.images import WORKLOADS
from e2e.workloads import chat_service, training_job, with_environment, with_image

RENDEZVOUS_SECONDS = "300"
"""How long ranks wait for each other: images are there, but nodes may be slow."""


def training(namespace: str, name: str, count: int, run_seconds: float = 1, **spec: Any) -> Object:
    """A job whose ranks all meet, then work for so long."""
    job = with_image(training_job(namespace, name, count, **spec), WORKLOADS)
    return with_environment(
        job, E2E_RUN_SECONDS=f"{run_seconds:g}", E2E_RENDEZVOUS_TIMEOUT_SECONDS=RENDEZVOUS_SECONDS
    )


def tuning(namespace: str, name: str, count: int, run_seconds: float = 1, **spec: Any) -> Object:
    """A job that also fits on one accelerator, and on a small one: adapters of a frozen model."""
    lora = {"globalBatchSize": 16, "sequenceLength": 2048, "tokens": "10M", "method": "Lora"}
    return training(namespace, name, count, run_seconds, **{"training": lora, **spec})


def service(namespace: str, name: str, **spec: Any) -> Object:
    """A chat that is bound by memory bandwidth and fits on one accelerator; the chart's settings
    make our image its engine."""
    traffic = {
        "requestsPerSecond": "4",
        "inputTokens": {"p50": 300, "p95": 1200},
        "outputTokens": {"p50": 350, "p95": 900},
    }
    slo = [
        {"metric": "TTFT", "percentile": 99, "target": "2s"},
        {"metric": "ITL", "percentile": 99, "target": "80ms"},
    ]
    return chat_service(namespace, name, **{"traffic": traffic, "slo": slo, **spec})


def client_pod(namespace: str) -> Object:
    """A pod to send requests from, as a user's application is one."""
    container = {
        "name": "client",
        "image": WORKLOADS,
        "imagePullPolicy": "IfNotPresent",
        "command": ["sleep", "infinity"],
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "client", "namespace": namespace},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 0},
    }
