"""A stage without containers: a control plane of processes, fake nodes, engines as processes."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from bench.autoscale.scene import Routing
from e2e.autoscale.kubelet import MARK, Kubelet
from e2e.autoscale.live import NAME
from e2e.autoscale.pods import Life, Pods
from e2e.controlplane.client import Object
from e2e.images.load.plan import Planned
from e2e.images.load.replay import LeastOutstanding, Replayed, replay
from e2e.running import Running
from e2e.workloads import Observer


class Local(Running):
    """Engines of one namespace, while the ``with`` lasts; ``folder`` gets their logs."""

    environment: Sequence[Object] = (MARK,)
    routing = Routing.LEAST_OUTSTANDING

    def __init__(self, observer: Observer, namespace: str, port: int, folder: Path) -> None:
        self.observer, self.namespace = observer, namespace
        self._port = port
        self._kubelet = Kubelet(observer.client, folder)
        self._pods = Pods(observer.client, namespace, NAME, self._kubelet.look)

    def start(self) -> None:
        """Pods of the service get processes from now on."""
        self._pods.start()

    def stop(self) -> None:
        """End all of them."""
        self._pods.stop()
        self._kubelet.stop()

    @property
    def lives(self) -> Sequence[Life]:
        """Of the service's pods."""
        return self._pods.lives

    def replay(self, requests: Sequence[Planned]) -> Replayed:
        """From this process, to whoever is ready and has least to do."""
        return asyncio.run(replay(requests, LeastOutstanding(self._urls)))

    def _urls(self) -> Sequence[str]:
        return [f"http://{pod['status']['podIP']}:{self._port}" for pod in self._pods.ready]
