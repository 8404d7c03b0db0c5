"""Workloads for tests, and what becomes of them: for any cluster that a Client reaches."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from e2e.controlplane.client import POLL_SECONDS, Client, Object

API = "poolwise.dev/v1alpha1"


@dataclass(frozen=True)
class Observer:
    """Looks at objects until they are as a test expects them, or says how they were."""

    client: Client
    timeout_seconds: float

    def wait(self, target: Object, until: Callable[[Object], bool]) -> Object:
        """The object, once ``until`` says yes to it."""
        return self.client.wait_for(target, until, self.timeout_seconds)

    def wait_condition(self, target: Object, type_: str, status: str, reason: str = "") -> Object:
        """The object, once the condition is so (for this reason, where one is given)."""

        def is_so(seen: Object) -> bool:
            found = condition(seen, type_)
            return found.get("status") == status and reason in ("", found.get("reason"))

        return self.wait(target, is_so)

    def wait_message(self, target: Object, type_: str, words: str) -> Object:
        """The object, once the message of the condition has these words: what it goes by comes in
        over watches of their own, so that the first message may be of a part of it."""
        return self.wait(target, lambda seen: words in condition(seen, type_).get("message", ""))

    def wait_gone(self, target: Object) -> None:
        """Return once the object is gone."""
        self.until(
            lambda: self.look(target) is None,
            f"{target['kind']} {target['metadata']['name']} is still there",
        )

    def until(self, holds: Callable[[], object], otherwise: str) -> None:
        """Return once it holds; raises :class:`TimeoutError` with the sentence."""
        deadline = time.monotonic() + self.timeout_seconds
        while not holds():
            if time.monotonic() > deadline:
                raise TimeoutError(f"{otherwise} after {self.timeout_seconds:g} s")
            time.sleep(POLL_SECONDS)

    def look(self, target: Object) -> Object | None:
        """The object as it is now."""
        metadata = target["metadata"]
        key = (target["apiVersion"], target["kind"], metadata["name"])
        return self.client.get(*key, metadata.get("namespace", ""))

    def job_of(self, workload: Object) -> Object:
        """The Job of a TrainingJob, once it is there."""
        return self.wait(child(workload, "batch/v1", "Job"), lambda _: True)

    def deployment_of(self, workload: Object) -> Object:
        """The Deployment of an InferenceService, once it is there."""
        return self.wait(child(workload, "apps/v1", "Deployment"), lambda _: True)

    def pods_of(self, workload: Object) -> list[Object]:
        """Its pods."""
        selector = f"poolwise.dev/owner={workload['metadata']['name']}"
        return self.client.list("v1", "Pod", workload["metadata"]["namespace"], selector)

    def events_of(self, workload: Object) -> list[Object]:
        """Events about it, by the operator."""
        events = self.client.list("events.k8s.io/v1", "Event", workload["metadata"]["namespace"])
        uid = workload["metadata"]["uid"]
        return [event for event in events if event["regarding"].get("uid") == uid]


def condition(document: Object, type_: str) -> Object:
    """One condition of an object; empty when it has none of that type."""
    conditions = document.get("status", {}).get("conditions", [])
    return next((each for each in conditions if each["type"] == type_), {})


def child(workload: Object, api_version: str, kind: str, suffix: str = "") -> Object:
    """What names a child of a workload."""
    metadata = workload["metadata"]
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": metadata["name"] + suffix, "namespace": metadata["namespace"]},
    }


def training_job(namespace: str, name: str, count: int, **spec: Any) -> Object:
    """A training job that fits on any number of H100s."""
    return {
        "apiVersion": API,
        "kind": "TrainingJob",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "model": {"preset": "llama-3.1-8b"},
            "training": {"globalBatchSize": 64, "sequenceLength": 4096, "tokens": "1G"},
            "accelerators": {"count": count},
            "run": {"image": "registry.example.com/train:1", "command": ["torchrun", "train.py"]},
            **spec,
        },
    }


def chat_service(namespace: str, name: str, **spec: Any) -> Object:
    """A service that one H100 serves."""
    return {
        "apiVersion": API,
        "kind": "InferenceService",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "model": {
                "preset": "llama-3.1-8b",
                "uri": "hf://meta-llama/Llama-3.1-8B-Instruct",
                "maxModelLength": 8192,
            },
            "traffic": {
                "requestsPerSecond": "2",
                "inputTokens": {"p50": 300, "p95": 1200},
                "outputTokens": {"p50": 200, "p95": 600},
            },
            "slo": [{"metric": "TTFT", "percentile": 99, "target": "5s"}],
            **spec,
        },
    }


def with_image(workload: Object, image: str) -> Object:
    """The workload with another image for its containers."""
    run = {**workload["spec"].get("run", {}), "image": image}
    return {**workload, "spec": {**workload["spec"], "run": run}}


def with_environment(workload: Object, **variables: str) -> Object:
    """The workload with variables for its containers: the fake kubelets read some."""
    env = [{"name": name, "value": value} for name, value in variables.items()]
    run = {**workload["spec"].get("run", {}), "env": env}
    return {**workload, "spec": {**workload["spec"], "run": run}}
