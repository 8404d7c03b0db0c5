"""Other autoscalers on what Poolwise scales: two that set one number undo each other's work.

KEDA's ScaledObjects are seen by the HorizontalPodAutoscaler that KEDA makes of each.
"""

from __future__ import annotations

from collections.abc import Container, Iterable

from poolwise.plan import names
from poolwise.plan.children.groups import group_set_name
from poolwise.plan.decision import Key, Kind
from poolwise.plan.live.look import Mode, Rival
from poolwise.plan.names import child_name, overflow_name
from poolwise.plan.observed import Object

_CHILDREN = {"Deployment": "apps", "LeaderWorkerSet": names.LEADER_WORKER_SET}
_KEDA = "scaledobject.keda.sh/name"


def rival(
    key: Key, mode: Mode, autoscalers: Iterable[Object], further_pools: Iterable[str] = ()
) -> Rival | None:
    """The autoscaler that sets the replicas of a service beside Poolwise.

    In the modes External and Off one on the InferenceService is what they are for; on the child it
    never is, since the child follows the service. Of several the one is told that acts.
    """
    further = (overflow_name(key.name, pool) for pool in further_pools)
    children = {child_name(key.name), group_set_name(key.name), *further}
    near = (each for each in autoscalers if each["metadata"].get("namespace") == key.namespace)
    found = [_rival(each) for each in near if _targets(each, key, mode, children)]
    return next((each for each in found if each.acts), found[0] if found else None)


def _targets(autoscaler: Object, key: Key, mode: Mode, children: Container[str]) -> bool:
    target = (autoscaler.get("spec") or {}).get("scaleTargetRef") or {}
    group = str(target.get("apiVersion", "")).rpartition("/")[0]
    kind, name = target.get("kind"), target.get("name")
    if (group, kind, name) == (names.GROUP, Kind.INFERENCE_SERVICE.value, key.name):
        return mode is Mode.DIRECT
    return _CHILDREN.get(str(kind)) == group and str(name) in children


def _rival(autoscaler: Object) -> Rival:
    kind = autoscaler["spec"]["scaleTargetRef"]["kind"]
    return Rival(_named(autoscaler), acts=kind != Kind.INFERENCE_SERVICE)


def _named(autoscaler: Object) -> str:
    metadata, target = autoscaler["metadata"], autoscaler["spec"]["scaleTargetRef"]
    keda = (metadata.get("labels") or {}).get(_KEDA)
    what = f"ScaledObject {keda}" if keda else f"HorizontalPodAutoscaler {metadata['name']}"
    return f"{what} (on {target['kind']} {target['name']})"
