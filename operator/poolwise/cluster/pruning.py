"""What the cache keeps of an object: what somebody reads, so that memory stays flat.

A node of 9 kB becomes one of 1 kB; heartbeats and image lists disappear, and with them the events
that would wake the planner for nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from poolwise.cluster.resources import (
    AUTOSCALERS,
    FAILED_CREATIONS,
    NODES,
    OTHER_SERVICES,
    PODS,
    QUEUED,
    Resource,
)
from poolwise.plan.gateway.pickers import PORT_NAME
from poolwise.plan.observed import Object

_METADATA = (
    "name",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "labels",
    "annotations",
    "ownerReferences",
)
_POD_SPEC = ("nodeName", "overhead", "nodeSelector", "tolerations", "resources")
_POD_STATUS = ("phase", "reason", "message", "conditions", "startTime", "podIP")
_CONTAINER_STATUS = ("name", "ready", "restartCount", "state", "lastState")


def pruned(resource: Resource, document: Object) -> Object:
    """A copy of ``document`` with what is worth remembering."""
    if resource is NODES:
        return _node(document)
    if resource is PODS:
        return _pod(document)
    if resource == QUEUED:
        return _queued(document)
    if resource is AUTOSCALERS:
        spec = _pick(document.get("spec") or {}, ("scaleTargetRef",))
        document = {**_pick(document, ("apiVersion", "kind", "metadata")), "spec": spec}
    if resource == OTHER_SERVICES:
        metadata = _pick(document["metadata"], ("name", "namespace", "uid", "resourceVersion"))
        spec = _pick(document.get("spec") or {}, ("selector",))
        return {**_pick(document, ("apiVersion", "kind")), "metadata": metadata, "spec": spec}
    if resource is FAILED_CREATIONS:
        document = _pick(
            document, ("apiVersion", "kind", "metadata", "regarding", "reason", "note")
        )
    return {**document, "metadata": _pick(document["metadata"], _METADATA)}


def _node(document: Object) -> Object:
    status = document.get("status") or {}
    conditions = status.get("conditions") or []
    return {
        **_pick(document, ("apiVersion", "kind")),
        "metadata": _pick(
            document["metadata"], [field for field in _METADATA if field != "annotations"]
        ),
        "spec": _pick(document.get("spec") or {}, ("taints", "unschedulable", "providerID")),
        "status": {
            **_pick(status, ("allocatable", "capacity")),
            "nodeInfo": _pick(status.get("nodeInfo") or {}, ("architecture",)),
            "conditions": [
                _pick(each, ("type", "status", "reason"))
                for each in conditions
                if each["type"] == "Ready"
            ],
        },
    }


def _pod(document: Object) -> Object:
    spec, status = document.get("spec") or {}, document.get("status") or {}
    return {
        **_pick(document, ("apiVersion", "kind")),
        "metadata": _pick(document["metadata"], _METADATA),
        "spec": _asks(spec),
        "status": {
            **_pick(status, _POD_STATUS),
            "containerStatuses": [
                _pick(each, _CONTAINER_STATUS) for each in status.get("containerStatuses") or []
            ],
            "initContainerStatuses": [
                _pick(each, _CONTAINER_STATUS) for each in status.get("initContainerStatuses") or []
            ],
        },
    }


def _queued(workload: Object) -> Object:
    """Kueue's Workload: its pods' templates are most of it, and only what they ask for counts."""
    spec, status = workload.get("spec") or {}, workload.get("status") or {}
    return {
        **_pick(workload, ("apiVersion", "kind")),
        "metadata": _pick(workload["metadata"], _METADATA),
        "spec": {
            **_pick(spec, ("queueName", "active")),
            "podSets": [
                {
                    **_pick(each, ("name", "count")),
                    "template": {"spec": _asks((each.get("template") or {}).get("spec") or {})},
                }
                for each in spec.get("podSets") or []
            ],
        },
        "status": _pick(status, ("conditions", "admission", "admissionChecks")),
    }


def _asks(spec: Object) -> Object:
    return {
        **_pick(spec, _POD_SPEC),
        "containers": [_container(each) for each in spec.get("containers") or []],
        "initContainers": [_container(each) for each in spec.get("initContainers") or []],
    }


def _container(container: Object) -> Object:
    """Of its ports the one that an endpoint picker tells its metrics on."""
    found = _pick(container, ("name", "resources", "restartPolicy"))
    ports = [
        _pick(each, ("name", "containerPort"))
        for each in container.get("ports") or []
        if each.get("name") == PORT_NAME
    ]
    return {**found, "ports": ports} if ports else found


def _pick(document: Object, fields: Iterable[str]) -> dict[str, Any]:
    return {field: document[field] for field in fields if field in document}
