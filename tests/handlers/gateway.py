"""A gateway before the service ``chat`` on the fake API server, whose endpoint picker the test
plays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from poolwise.cluster.resources import DEPLOYMENTS
from poolwise.plan.gateway.reading import ENGINE, QUEUE_ALONE, read, read_queue
from poolwise.plan.names import INFERENCE, INFERENCE_OLD
from poolwise.plan.signals.adapters import Fault
from tests.handlers.fleet import Clock, Served

HOLDS = "llm_d_epp_flow_control_dispatch_cycle_duration_seconds_count 1000\n"
"""What a picker tells whose flow control layer runs, before any request."""
EPP = {"app": "chat-epp"}
OURS = {"poolwise.dev/owner": "chat", "poolwise.dev/owner-kind": "InferenceService"}


def queue(count: float, pool: str = "chat") -> str:
    labels = f'fairness_id="default",inference_pool="{pool}",priority="0"'
    return f"{HOLDS}llm_d_epp_flow_control_queue_size{{{labels}}} {count}\n"


def inference_pool(name: str = "chat", **selector: str) -> dict[str, Any]:
    return {
        "apiVersion": "inference.networking.k8s.io/v1",
        "kind": "InferencePool",
        "metadata": {"name": name, "namespace": "a"},
        "spec": {
            "selector": {"matchLabels": selector or OURS},
            "targetPorts": [{"number": 8000}],
            "endpointPickerRef": {"name": f"{name}-epp", "port": {"number": 9002}},
        },
    }


def old_inference_pool(name: str = "chat") -> dict[str, Any]:
    return {
        "apiVersion": "inference.networking.x-k8s.io/v1alpha2",
        "kind": "InferencePool",
        "metadata": {"name": name, "namespace": "a"},
        "spec": {
            "selector": OURS,
            "targetPortNumber": 8000,
            "extensionRef": {"name": f"{name}-epp", "portNumber": 9002},
        },
    }


def picker_service(name: str = "chat-epp") -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": "a"},
        "spec": {"selector": EPP, "ports": [{"port": 9002}]},
    }


def picker_pod(name: str = "chat-epp-0", is_ready: bool = True, port: int = 9090) -> dict[str, Any]:
    ready = {"type": "Ready", "status": str(is_ready), "lastTransitionTime": "2026-11-24T00:00:00Z"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "a", "labels": EPP},
        "spec": {
            "nodeName": "n",
            "containers": [
                {"name": "epp", "ports": [{"name": "metrics", "containerPort": port}]},
            ],
        },
        "status": {"phase": "Running", "podIP": "127.0.0.2", "conditions": [ready]},
    }


class Fronted(Served):
    """``chat`` behind InferencePool ``chat``; its replicas come and go as their Deployment says."""

    def __init__(self, clock: Clock, **scaling: object) -> None:
        self.epp: str | Fault | Iterator[str] = HOLDS
        """What its picker tells; of an iterator, one after the other."""
        self.asked: list[tuple[str, int]] = []
        self.is_busy = True
        """Whether requests reach the replicas."""
        super().__init__(clock, **{"minReplicas": 0, "scaleToZero": True, **scaling})

    def serve_gateway(self, *documents: dict[str, Any]) -> None:
        """Install the API, and put a gateway before the service."""
        for group, version in ((INFERENCE, "v1"), (INFERENCE_OLD, "v1alpha2")):
            self.apis[group] = version
            self.kube.optional[group] = (version,)
        self.put(*(documents or (inference_pool(), picker_service(), picker_pod())))

    async def tell(self, targets):
        every = list(targets)
        engines = [each for each in every if each.engine not in (ENGINE, QUEUE_ALONE)]
        told = dict(await self.load.look(engines))
        if not self.is_busy:
            self.load.requests -= 40.0 * bool(engines)
        for each in every:
            if each not in engines:
                self.asked.append((each.address, each.port))
                told[each] = self._epp(each)
        return told

    def _epp(self, target):
        if isinstance(self.epp, Fault):
            return self.epp
        text = self.epp if isinstance(self.epp, str) else next(self.epp)
        reader = read_queue if target.engine == QUEUE_ALONE else read
        return reader(text, target.replica, self.clock.now.timestamp())

    def play_pods(self) -> None:
        """What Kubernetes does: as many ready pods as the Deployment wants."""
        wanted = self.kube.all(DEPLOYMENTS)[0]["spec"]["replicas"]
        pods = [
            each
            for (kind, _, name), each in list(self.kube.objects.items())
            if kind.kind == "Pod" and name.startswith("chat-0")
        ]
        if pods and not wanted:
            self.kube.vanish(pods[0])
        if wanted and not pods:
            self.start_pods("n")
            self.set_pods(lambda index: self.clock.now)

    def idle(self) -> None:
        """From now on nothing comes."""
        self.is_busy = False
        told = self.load.told
        self.load.told = type(told)("", 0.0, running=0.0, waiting=0.0, kv_cache_usage=0.0)
