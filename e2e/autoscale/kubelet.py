"""The kubelet of fake nodes for pods that are to be real: processes in place of containers.

A pod whose environment says ``E2E_KUBELET=processes`` is left alone by the fake kubelets
(``e2e/controlplane/stages/pod.yaml``) and gets a process here, on an address of its own: with the
arguments and the environment of its container, ConfigMaps included, probed as its readiness probe
says, and ended as a kubelet ends it: preStop, SIGTERM, its grace, SIGKILL.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from e2e.controlplane.client import Client, Object, Refused
from e2e.controlplane.process import end_with_parent
from e2e.controlplane.supervised import REPOSITORY
from e2e.errors import ProcessFailed
from e2e.progress import last_lines

MARK = {"name": "E2E_KUBELET", "value": "processes"}
ENGINE = (sys.executable, "-c", "from e2e.images.double.server import main; main()")
PROBE_SECONDS = 1.0
"""One probe may take."""
FIRST_ADDRESS, ADDRESSES = 127 << 24 | 128 << 16 | 1, 60_000
"""Above those that fake kubelets give."""
NOT_FOUND = 404


class Held:
    """One pod and its process."""

    def __init__(self, pod: Object, address: str, log: Path, environment: dict[str, str]) -> None:
        self.pod, self.address, self.log = pod, address, log
        self.is_ready = False
        self._asked_seconds: float | None = None
        """To end."""
        container = pod["spec"]["containers"][0]
        self._url = f"http://{address}:{_port(container)}{_path(container)}"
        words = [*container["command"][1:], *container["args"], f"--host={address}"]
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                [*ENGINE, *words],
                cwd=REPOSITORY,
                env=os.environ | environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                preexec_fn=end_with_parent(),
            )

    def answers(self) -> bool:
        """Whether the readiness probe would succeed; raises :class:`ProcessFailed`."""
        if self._process.poll() is not None and self._asked_seconds is None:
            name = self.pod["metadata"]["name"]
            raise ProcessFailed(f"the engine of {name} ended by itself:\n{last_lines(self.log)}")
        try:
            with urllib.request.urlopen(self._url, timeout=PROBE_SECONDS) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False

    def has_ended(self, now: float) -> bool:
        """Go on with its end; whether it is over."""
        if self._asked_seconds is None:
            self._asked_seconds = now
        spec, waited = self.pod["spec"], now - self._asked_seconds
        hook = spec["containers"][0].get("lifecycle", {}).get("preStop", {}).get("sleep", {})
        if waited >= hook.get("seconds", 0) and self._process.poll() is None:
            self._process.terminate()
        if waited >= spec["terminationGracePeriodSeconds"]:
            self.kill()
        return self._process.poll() is not None

    def kill(self) -> None:
        """End it at once."""
        self._process.kill()
        self._process.wait()


class Kubelet:
    """Of all fake nodes; :meth:`look` is called with the pods as they are, again and again."""

    def __init__(self, client: Client, folder: Path) -> None:
        self._client, self._folder = client, folder
        self._held: dict[str, Held] = {}
        self._started = 0

    def look(self, pods: Sequence[Object]) -> None:
        """Do what is due for each."""
        present = {pod["metadata"]["uid"]: pod for pod in pods if MARK in _environment(pod)}
        for uid in [uid for uid in self._held if uid not in present]:
            self._held.pop(uid).kill()  # deleted by force
        for uid, pod in present.items():
            if "deletionTimestamp" in pod["metadata"]:
                self._end(uid, pod)
            elif uid not in self._held:
                self._start(uid, pod)
            elif not self._held[uid].is_ready and self._held[uid].answers():
                self._tell(self._held[uid], ready=True)

    def stop(self) -> None:
        """End all processes."""
        for held in self._held.values():
            held.kill()
        self._held.clear()

    def _start(self, uid: str, pod: Object) -> None:
        environment = self._resolved(pod)
        if "nodeName" not in pod["spec"] or environment is None:
            return  # not bound, or its ConfigMap is not there yet
        self._started += 1
        number = FIRST_ADDRESS + (os.getpid() * 97 + self._started) % ADDRESSES
        address = ".".join(str(number >> shift & 255) for shift in (24, 16, 8, 0))
        log = self._folder / f"{pod['metadata']['name']}.log"
        self._held[uid] = held = Held(pod, address, log, environment)
        self._tell(held, ready=False)

    def _end(self, uid: str, pod: Object) -> None:
        held = self._held.get(uid)
        if held is None or held.has_ended(time.monotonic()):
            self._held.pop(uid, None)
            self._client.delete_now(pod)

    def _resolved(self, pod: Object) -> dict[str, str] | None:
        """The environment: what is given, and what ConfigMaps have; None while one is not there."""
        found = {each["name"]: each["value"] for each in _environment(pod) if "value" in each}
        for each in _environment(pod):
            reference = each.get("valueFrom", {}).get("configMapKeyRef")
            if reference is None:
                continue
            where = pod["metadata"]["namespace"]
            told = self._client.get("v1", "ConfigMap", reference["name"], where)
            if told is None:
                return None
            found[each["name"]] = told["data"][reference["key"]]
        return found

    def _tell(self, held: Held, ready: bool) -> None:
        """Its status, as a kubelet writes it."""
        try:
            self._client.patch(held.pod, {"status": _status(held, ready)}, "status")
            held.is_ready = ready
        except Refused as refusal:
            if refusal.status != NOT_FOUND:
                raise


def _status(held: Held, ready: bool) -> dict[str, Any]:
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    container = held.pod["spec"]["containers"][0]
    state = {
        "name": container["name"],
        "image": container["image"],
        "imageID": "",
        "ready": ready,
        "started": ready,
        "restartCount": 0,
        "state": {"running": {"startedAt": now}},
    }
    conditions = {"Initialized": True, "ContainersReady": ready, "Ready": ready}
    return {
        "phase": "Running",
        "podIP": held.address,
        "podIPs": [{"ip": held.address}],
        "containerStatuses": [state],
        "conditions": [
            {"type": type_, "status": str(is_so), "lastTransitionTime": now}
            for type_, is_so in conditions.items()
        ],
    }


def _environment(pod: Object) -> list[Object]:
    found: list[Object] = pod["spec"]["containers"][0].get("env", [])
    return found


def _port(container: Object) -> int:
    return int(container["ports"][0]["containerPort"])


def _path(container: Object) -> str:
    return str(container["readinessProbe"]["httpGet"]["path"])
