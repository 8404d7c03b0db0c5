"""One InferencePool, of either API: which pods it takes, and who picks among them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from poolwise.plan.names import INFERENCE, INFERENCE_OLD
from poolwise.plan.observed import Object
from poolwise.plan.reading import mapping, objects

GROUPS = (INFERENCE, INFERENCE_OLD)


@dataclass(frozen=True, slots=True)
class InferencePool:
    """What of its spec counts here."""

    name: str
    selector: Mapping[str, str]
    """Labels that all must match; empty where they cannot be read, and then it takes no pod."""
    picker: str
    """Name of the Service of its endpoint picker; empty where there is none."""
    problem: str = ""
    """Why nobody can be asked for its queue, as a clause; empty: somebody can."""

    def takes(self, labels: Mapping[str, str]) -> bool:
        """Whether pods with these labels are its endpoints."""
        return bool(self.selector) and self.selector.items() <= labels.items()


def inference_pool(document: Object) -> InferencePool:
    """As the object says it. Fields of ``inference.networking.k8s.io/v1``, and where the group is
    ``inference.networking.x-k8s.io`` those of v1alpha2."""
    is_old = str(document.get("apiVersion", "")).startswith(f"{INFERENCE_OLD}/")
    spec, name = mapping(document, "spec"), str(document["metadata"]["name"])
    labels = mapping(spec, "selector")
    reference = mapping(spec, "extensionRef" if is_old else "endpointPickerRef")
    return InferencePool(
        name,
        _labels(labels if is_old else mapping(labels, "matchLabels")),
        _service(reference),
        _refused(document) or _unpicked(reference),
    )


def _labels(told: Mapping[str, Any]) -> Mapping[str, str]:
    """None of them where one is no label: a selector that is read in part takes too much."""
    if not all(isinstance(each, str) for pair in told.items() for each in pair):
        return {}
    return dict(told)


def _service(reference: Mapping[str, Any]) -> str:
    name, kind = reference.get("name"), reference.get("kind") or "Service"
    is_service = kind == "Service" and not reference.get("group")
    return name if isinstance(name, str) and is_service else ""


def _unpicked(reference: Mapping[str, Any]) -> str:
    if _service(reference):
        return ""
    if not reference:
        return "it names no endpoint picker"
    kind, name = reference.get("kind") or "Service", reference.get("name")
    return f"its endpoint picker is the {kind} {name}, and only a Service can be asked"


def _refused(document: Object) -> str:
    """Where every gateway that looked at it refuses it; none needs to say anything at all."""
    status = mapping(document, "status")
    parents = objects(status, "parents") or objects(status, "parent")
    verdicts = [
        each
        for parent in parents
        for each in objects(parent, "conditions")
        if each.get("type") == "Accepted"
    ]
    if {str(each.get("status")) for each in verdicts} != {"False"}:
        return ""
    return f"no gateway accepts it ({verdicts[0].get('reason')})"
