"""Give real nodes accelerators that they do not have, and see that they keep them.

Labels and taints stand in the node's metadata and spec. Extended resources are patched into its
status, where the kubelet lets them stand, until it restarts: then it may take them for those of a
device plugin that is gone, and set them to 0. So a thread looks at all nodes again and again.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from urllib3.exceptions import HTTPError

from e2e.controlplane.client import Client, Object, Refused
from e2e.errors import HarnessError
from e2e.running import Running

PERIOD_SECONDS = 0.5
KUBERNETES_LABELS = "kubernetes.io/"
"""What every kubelet sets itself: host name, operating system, architecture."""
CONTROL_PLANE = "node-role.kubernetes.io/control-plane"
SETTLE_SECONDS = 60.0
CONFLICT = 409


@dataclass(frozen=True)
class Hardware:
    """What a node is to look as if it had."""

    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Mapping[str, str], ...] = ()
    resources: Mapping[str, str] = field(default_factory=dict)


def hardware_of(node: Object) -> Hardware:
    """What a profile's node carries beside what its kubelet tells of itself."""
    labels = {
        key: value
        for key, value in node["metadata"]["labels"].items()
        if not key.startswith(KUBERNETES_LABELS)
    }
    extended = {key: value for key, value in node["status"]["capacity"].items() if "/" in key}
    return Hardware(labels, tuple(node["spec"].get("taints", ())), extended)


def workers(nodes: Iterable[Object]) -> list[str]:
    """The names of the nodes that are no control plane, sorted."""
    return sorted(
        node["metadata"]["name"]
        for node in nodes
        if CONTROL_PLANE not in node["metadata"].get("labels", {})
    )


def assign(profile: Iterable[Object], names: Iterable[str]) -> dict[str, Hardware]:
    """Each node of the profile on a worker of its own, in order.

    Raises :class:`HarnessError` when there are fewer workers than that.
    """
    wanted, free = [hardware_of(node) for node in profile], list(names)
    if len(free) < len(wanted):
        raise HarnessError(f"the profile has {len(wanted)} nodes, the cluster {len(free)} workers")
    return dict(zip(free, wanted, strict=False))


def changes(node: Object, wanted: Hardware, before: Hardware) -> Object:
    """A merge patch of metadata and spec: empty when all is as wanted.

    ``before`` is what was wanted until now, of which what is not wanted any more goes.
    """
    labels = _changes(node["metadata"].get("labels", {}), wanted.labels, before.labels)
    patch: Object = {"metadata": {"labels": labels}} if labels else {}
    present = node["spec"].get("taints", [])
    others = [taint for taint in present if not _is_one_of(taint, wanted.taints + before.taints)]
    taints = [*others, *wanted.taints]
    if sorted(map(_key, taints)) != sorted(map(_key, present)):
        # A list is replaced as a whole: not what a controller has added in the meantime.
        version = node["metadata"]["resourceVersion"]
        patch["metadata"] = {**patch.get("metadata", {}), "resourceVersion": version}
        patch["spec"] = {"taints": taints}
    return patch


def status_changes(node: Object, wanted: Hardware, before: Hardware) -> Object:
    """A merge patch of the status: empty when all is as wanted."""
    status = node.get("status", {})
    parts = {
        part: _changes(status.get(part, {}), wanted.resources, before.resources)
        for part in ("capacity", "allocatable")
    }
    found = {part: amounts for part, amounts in parts.items() if amounts}
    return {"status": found} if found else {}


def _changes(
    present: Mapping[str, str], wanted: Mapping[str, str], before: Mapping[str, str]
) -> dict[str, Any]:
    gone = {key: None for key in before if key not in wanted and key in present}
    return gone | {key: value for key, value in wanted.items() if present.get(key) != value}


def _key(taint: Mapping[str, str]) -> tuple[str, str, str]:
    return (taint["key"], taint.get("value", ""), taint["effect"])


def _is_one_of(taint: Mapping[str, str], taints: Iterable[Mapping[str, str]]) -> bool:
    return _key(taint) in {_key(each) for each in taints}


class HardwareKeeper(Running):
    """Gives nodes their hardware when the ``with`` is entered, and takes it back at its end."""

    def __init__(self, client: Client, wanted: Mapping[str, Hardware]) -> None:
        self._client = client
        self._wanted = dict(wanted)
        self._given: dict[str, Hardware] = {}
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="hardware", daemon=True)
        self.repairs = 0
        """How often a node that had its hardware was found without."""

    def start(self) -> None:
        """Patch all nodes, and go on looking at them in the background."""
        self._settle()
        self._thread.start()

    def stop(self) -> None:
        """Take back what was given; raises :class:`TimeoutError` when that does not succeed."""
        self._ended.set()
        self._thread.join()
        self._wanted = dict.fromkeys(self._given, Hardware())
        self._settle()

    def give(self, name: str, wanted: Hardware) -> None:
        """Change the hardware of one node, now."""
        with self._lock:
            self._wanted[name] = wanted
        self._settle()

    def of(self, name: str) -> Hardware:
        """What a node has been given."""
        return self._wanted.get(name, Hardware())

    def _keep(self) -> None:
        while not self._ended.wait(PERIOD_SECONDS):
            # The API server is away for moments in some tests: the next look finds it again.
            with contextlib.suppress(Refused, HTTPError):
                self._look()

    def _settle(self) -> None:
        """Look until nothing is left to change."""
        deadline = time.monotonic() + SETTLE_SECONDS
        while self._look():
            if time.monotonic() > deadline:
                raise TimeoutError(f"nodes do not keep their hardware for {SETTLE_SECONDS:g} s")

    def _look(self) -> int:
        """Look at all nodes once; how many had to be changed."""
        with self._lock:
            nodes = self._client.list("v1", "Node")
            return sum(self._repair(node) for node in nodes if _name(node) in self._wanted)

    def _repair(self, node: Object) -> bool:
        name = _name(node)
        wanted, before = self._wanted[name], self._given.get(name, Hardware())
        metadata, status = changes(node, wanted, before), status_changes(node, wanted, before)
        if not (metadata or status):
            self._given[name] = wanted
            return False
        self.repairs += bool(status) and wanted is before
        if metadata:
            self._patch(node, metadata)
        if status:
            self._patch(node, status, "status")
        return True

    def _patch(self, node: Object, change: Object, subresource: str = "") -> None:
        """Patch; somebody who was faster is no error, for the next look sees what is left to do."""
        try:
            self._client.patch(node, change, subresource)
        except Refused as refusal:
            if refusal.status != CONFLICT:
                raise


def _name(node: Object) -> str:
    return str(node["metadata"]["name"])
