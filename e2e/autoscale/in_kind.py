"""A stage of real pods: a cluster that has the engines' image, requests through the Service."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bench.autoscale.scene import Routing
from e2e.autoscale.live import NAME
from e2e.autoscale.pods import Life, Pods
from e2e.autoscale.trace import as_csv
from e2e.controlplane.client import Object
from e2e.images.load.plan import Planned
from e2e.images.load.replay import Replayed, from_json
from e2e.running import Running
from e2e.workloads import Observer

REACH = """
import socket, sys, time
end = time.monotonic() + 60.0
while True:
    try:
        socket.create_connection((sys.argv[1], 80), 2.0).close()
        break
    except OSError:
        if time.monotonic() > end:
            raise
        time.sleep(0.2)
"""
Inside = Callable[..., str]
"""Runs a command in a pod of the namespace, given its standard input; what it printed."""


class InKind(Running):
    """Engines of one namespace; what kube-proxy spreads, it spreads by chance."""

    environment: Sequence[Object] = ()
    routing = Routing.SERVICE

    def __init__(self, observer: Observer, namespace: str, inside: Inside) -> None:
        self.observer, self.namespace = observer, namespace
        self._inside = inside
        self._pods = Pods(observer.client, namespace, NAME)

    def start(self) -> None:
        """Look at the pods from now on."""
        self._pods.start()

    def stop(self) -> None:
        """Look no more."""
        self._pods.stop()

    @property
    def lives(self) -> Sequence[Life]:
        """Of the service's pods."""
        return self._pods.lives

    def replay(self, requests: Sequence[Planned]) -> Replayed:
        """As an application of the cluster sends them, once kube-proxy knows where to: the operator
        reads ready pods by their own addresses, and may have before."""
        self._inside("python3", "-c", REACH, NAME, stdin="")
        return from_json(self._inside("replay", f"--url=http://{NAME}", stdin=as_csv(requests)))
