"""Taints: which ones a pool's pods tolerate, and which keep all of them away."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from poolwise.api.acceleratorpool import Toleration
from poolwise.plan.nodes.devices import vendor_resource
from poolwise.plan.nodes.facts import Taint
from poolwise.plan.nodes.labels import AZURE_KEY_PREFIX, SPOT
from poolwise.plan.pools.members import Draft, usual_capacity_type
from poolwise.tables import Tables

AKS_TOLERATION: Mapping[str, Any] = {
    "key": "sku",
    "operator": "Equal",
    "value": "gpu",
    "effect": "NoSchedule",
}
"""The accelerator taint of AKS, as its documentation has people set it on GPU node pools."""
SPOT_KEYS = (
    "cloud.google.com/gke-preemptible",
    "cloud.google.com/gke-spot",
    "kubernetes.azure.com/scalesetpriority",
    "oci.oraclecloud.com/oke-is-preemptible",
)
"""Taints of nodes that the cloud may take back: AKS and OKE set theirs on every such node, GKE on
those that it provisions itself, and its documentation has people set it on the others."""
_HARMLESS_EFFECT = "PreferNoSchedule"


def tolerations(draft: Draft, tables: Tables) -> tuple[Mapping[str, Any], ...]:
    """The taint of the accelerator's own resource, the cloud's own accelerator taint, those of
    spot nodes in a spot pool, and what the spec lists. Every other taint keeps work away.

    All that can be told without nodes is: pods that tolerated something else once nodes are there
    would be replaced.
    """
    keys = list(SPOT_KEYS) if usual_capacity_type(draft) == SPOT else []
    resource = draft.offer.resource
    if resource is not None:
        keys += sorted({resource, vendor_resource(resource, tables) or resource})
    own: list[Mapping[str, Any]] = [{"key": key, "operator": "Exists"} for key in keys]
    on_azure = resource is not None and _is_on_azure(draft)
    listed = [_as_object(toleration) for toleration in draft.spec.tolerate_taints]
    return (*own, *([AKS_TOLERATION] if on_azure else []), *listed)


def untolerated(taints: Sequence[Taint], tolerated: Sequence[Mapping[str, Any]]) -> str | None:
    """The first taint that keeps pods off a node, in words; None: none does."""
    for taint in taints:
        is_hard = taint.get("effect") != _HARMLESS_EFFECT
        if is_hard and not any(tolerates(each, taint) for each in tolerated):
            return _words(taint)
    return None


def tolerates(toleration: Mapping[str, Any], taint: Mapping[str, Any]) -> bool:
    """As the scheduler matches: https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/."""
    effect, key = toleration.get("effect"), toleration.get("key")
    if (effect and effect != taint.get("effect")) or (key and key != taint.get("key")):
        return False
    if toleration.get("operator", "Equal") == "Exists":
        return True
    return bool(key) and (toleration.get("value") or "") == (taint.get("value") or "")


def _as_object(toleration: Toleration) -> Mapping[str, Any]:
    fields = toleration.model_dump(by_alias=True)
    return {name: value for name, value in fields.items() if value}


def _is_on_azure(draft: Draft) -> bool:
    known = (draft.spec.node_selector, *(member.node.labels for member in draft.members))
    return any(key.startswith(AZURE_KEY_PREFIX) for labels in known for key in labels)


def _words(taint: Taint) -> str:
    value = f"={taint['value']}" if taint.get("value") else ""
    return f"{taint.get('key')}{value}:{taint.get('effect')}"
