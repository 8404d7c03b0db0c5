"""Which nodes the scheduler lets a pod go to."""

from __future__ import annotations

from tests.fake_kube import Document


def may_take(node: Document, pod: Document) -> bool:
    """By all but what is free on it."""
    labels = node["metadata"].get("labels") or {}
    wanted = (pod.get("nodeSelector") or {}).items()
    spec, tolerated = node.get("spec") or {}, pod.get("tolerations") or []
    if spec.get("unschedulable") or not wanted <= labels.items():
        return False
    if not all(
        any(_tolerates(each, taint) for each in tolerated) for taint in spec.get("taints", ())
    ):
        return False
    affinity = (pod.get("affinity") or {}).get("nodeAffinity") or {}
    terms = (affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}).get(
        "nodeSelectorTerms", [{}]
    )
    return any(
        all(_matches(labels, each) for each in term.get("matchExpressions", ())) for term in terms
    )


def _matches(labels: dict[str, str], wanted: Document) -> bool:
    value = labels.get(wanted["key"])
    match wanted["operator"]:
        case "In":
            return value in wanted["values"]
        case "NotIn":
            return value not in wanted["values"]
        case "Exists":
            return value is not None
        case _:
            return value is None


def _tolerates(toleration: Document, taint: Document) -> bool:
    """None of ours tells an effect of its own, and no taint of ours has a value."""
    return toleration.get("key") == taint["key"] and toleration.get("operator") == "Exists"
