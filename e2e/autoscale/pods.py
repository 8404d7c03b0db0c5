"""Pods of one service as everybody sees them: looked at again and again, their lives kept."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from urllib3.exceptions import HTTPError

from e2e.controlplane.client import Client, Object, Refused
from e2e.running import Running
from e2e.workloads import condition

LOOK_SECONDS = 0.25
OWNER = "poolwise.dev/owner"


@dataclass
class Life:
    """Of one pod, in Unix time of this machine; None: not yet."""

    name: str
    """With the hash of its template, which stays the same unless pods are replaced."""
    born_seconds: float
    ready_seconds: float | None = None
    leaving_seconds: float | None = None
    gone_seconds: float | None = None

    @property
    def left_seconds(self) -> float | None:
        """When it was told to go, or was gone without being seen to be told."""
        return self.gone_seconds if self.leaving_seconds is None else self.leaving_seconds

    def seconds_within(self, begin: float, end: float) -> float:
        """For which it has to be paid between two moments."""
        last = end if self.gone_seconds is None else self.gone_seconds
        return max(min(last, end) - max(self.born_seconds, begin), 0.0)


class Pods(Running):
    """Looks in a thread of its own; ``then`` is told of each look."""

    def __init__(
        self,
        client: Client,
        namespace: str,
        service: str,
        then: Callable[[Sequence[Object]], None] | None = None,
    ) -> None:
        self._client, self._namespace, self._service = client, namespace, service
        self._then = then
        self._lives: dict[str, Life] = {}
        self._ready: tuple[Object, ...] = ()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look_on, name="pods", daemon=True)
        self.trouble: Exception | None = None
        """What ended the looking before its time."""

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """Look no more."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()

    @property
    def lives(self) -> list[Life]:
        """Of all pods that were ever seen, in the order of their births."""
        if self.trouble is not None:
            raise self.trouble
        return list(self._lives.values())

    @property
    def ready(self) -> tuple[Object, ...]:
        """Those that take requests, as a gateway knows them: ready and not on their way out."""
        if self.trouble is not None:
            raise self.trouble
        return self._ready

    def _look_on(self) -> None:
        while not self._ended.wait(LOOK_SECONDS):
            try:
                self._look()
            except (Refused, HTTPError):
                continue  # the API server is busy
            except Exception as error:
                self.trouble = error
                return

    def _look(self) -> None:
        selector = f"{OWNER}={self._service}"
        pods = self._client.list("v1", "Pod", self._namespace, selector)
        now = time.time()
        for pod in pods:
            self._note(pod, now)
        present = {pod["metadata"]["uid"] for pod in pods}
        for uid, life in self._lives.items():
            if uid not in present and life.gone_seconds is None:
                life.gone_seconds = now
        self._ready = tuple(filter(is_ready, pods))
        if self._then is not None:
            self._then(pods)

    def _note(self, pod: Object, now: float) -> None:
        metadata = pod["metadata"]
        life = self._lives.setdefault(metadata["uid"], Life(metadata["name"], now))
        if life.leaving_seconds is None and "deletionTimestamp" in metadata:
            life.leaving_seconds = now
        if life.ready_seconds is None and is_ready(pod):
            life.ready_seconds = now


def is_ready(pod: Object) -> bool:
    """Whether requests go to it."""
    leaves = "deletionTimestamp" in pod["metadata"]
    return not leaves and condition(pod, "Ready").get("status") == "True"
