"""Which replicas end when a service has fewer: those with the least work left.

Kubernetes ends pods of a ReplicaSet in the order of their deletion cost, among those that are ready
(KEP-2255); without one it takes the newest, whatever it is in the middle of.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from poolwise.plan.live.seen import ready_at
from poolwise.plan.observed import Object
from poolwise.plan.signals.sample import Sample

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
LEAVES, STAYS = "-1", "0"


def deletion_costs(
    pods: Iterable[Object], samples: Mapping[str, Sample], leaving: int
) -> list[tuple[Object, str]]:
    """Pods whose deletion cost has to change, with their new one, before ``leaving`` of them end.

    :param samples: newest look at each, by uid of the pod.
    """
    there = [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]
    ready = [pod for pod in there if ready_at(pod) is not None]
    # Kubernetes ends those that are not ready before any other.
    leaving = max(leaving - (len(there) - len(ready)), 0)
    ordered = sorted(ready, key=lambda pod: _work_left(pod, samples))
    wanted = [(pod, LEAVES if at < leaving else STAYS) for at, pod in enumerate(ordered)]
    return [(pod, cost) for pod, cost in wanted if cost != _cost(pod)]


def _work_left(pod: Object, samples: Mapping[str, Sample]) -> tuple[float, float, str]:
    """Requests in flight, then how full its cache is; one that does not tell is taken for idle: it
    may not serve at all."""
    sample = samples.get(pod["metadata"]["uid"])
    if sample is None:
        return 0.0, 0.0, pod["metadata"]["name"]
    return sample.in_flight, sample.kv_cache_usage or 0.0, pod["metadata"]["name"]


def _cost(pod: Object) -> str:
    annotations = pod["metadata"].get("annotations") or {}
    return str(annotations.get(DELETION_COST, STAYS))
