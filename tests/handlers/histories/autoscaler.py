"""What an autoscaler of nodes does: it brings those that pods wait for."""

from __future__ import annotations

from poolwise.cluster.resources import NODES, PODS
from poolwise.plan.ledger.capacity_pods import requests
from tests.fake_kube import Document
from tests.handlers.histories import documents
from tests.handlers.histories.cluster import Cluster
from tests.handlers.histories.scheduling import may_take
from tests.handlers.histories.virtual_time import VirtualLoop

NODE_SECONDS = 100.0
"""Between two nodes that come."""


class Autoscaler:
    """One step, as often as it is called."""

    def __init__(self, cluster: Cluster, loop: VirtualLoop) -> None:
        self._cluster = cluster
        self._loop = loop
        self.group = ""
        """Of nodes that it may bring, by the first letter of their names; empty: none."""
        self._since: dict[str, float] = {}
        """When each pod was first seen without a node."""

    def step(self) -> None:
        if not self.group:
            return
        waiting = [pod for pod in self._cluster.all(PODS) if _waits(pod)]
        now = self._loop.time()
        self._since = {
            uid: self._since.get(uid, now) for uid in (pod["metadata"]["uid"] for pod in waiting)
        }
        for pod in waiting:
            if now - self._since[pod["metadata"]["uid"]] >= NODE_SECONDS and self._bring(pod):
                self._since.clear()
                return

    def _bring(self, pod: Document) -> bool:
        there = {each["metadata"]["name"] for each in self._cluster.all(NODES)}
        asked = requests(pod).accelerators.get(documents.GPU, 0)
        for name in documents.NODES:
            if name in there or not name.startswith(self.group):
                continue
            node = documents.node(name)
            if may_take(node, pod["spec"]) and asked <= int(
                node["status"]["allocatable"][documents.GPU]
            ):
                self._cluster.put(node)
                return True
        return False


def _waits(pod: Document) -> bool:
    is_leaving = "deletionTimestamp" in pod["metadata"]
    return not is_leaving and "nodeName" not in pod["spec"] and "ownerReferences" in pod["metadata"]
