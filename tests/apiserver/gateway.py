"""The InferencePool API on an API server without a gateway, and endpoint pickers that the tests
play: what Poolwise needs of the published schema, and of their metrics."""

from __future__ import annotations

from dataclasses import dataclass

from e2e.controlplane.client import Object
from tests.plan.gateway.told import router

GROUP, OLD_GROUP = "inference.networking.k8s.io", "inference.networking.x-k8s.io"
_TEXT: Object = {"type": "string"}
_PORT: Object = {"type": "integer", "minimum": 1, "maximum": 65535}
_LABELS: Object = {"type": "object", "additionalProperties": _TEXT}
_STATUS = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def _fields(required: list[str], **properties: Object) -> Object:
    return {"type": "object", "required": required, "properties": properties}


_NUMBERED = _fields(["number"], number=_PORT)
_PICKER: Object = {
    "group": {**_TEXT, "default": ""},
    "kind": {**_TEXT, "default": "Service"},
    "name": _TEXT,
    "failureMode": {"type": "string", "enum": ["FailOpen", "FailClose"], "default": "FailClose"},
}
_SPECS: dict[str, Object] = {
    GROUP: _fields(
        ["selector", "targetPorts"],
        selector=_fields(["matchLabels"], matchLabels=_LABELS),
        targetPorts={"type": "array", "minItems": 1, "maxItems": 8, "items": _NUMBERED},
        appProtocol=_TEXT,
        endpointPickerRef=_fields(["name"], **_PICKER, port=_NUMBERED),
    ),
    OLD_GROUP: _fields(
        ["selector", "targetPortNumber", "extensionRef"],
        selector=_LABELS,
        targetPortNumber=_PORT,
        extensionRef=_fields(["name"], **_PICKER, portNumber=_PORT),
    ),
}
VERSIONS = {GROUP: "v1", OLD_GROUP: "v1alpha2"}


def crd(group: str = GROUP) -> Object:
    """The definition of InferencePool."""
    schema = {"type": "object", "properties": {"spec": _SPECS[group], "status": _STATUS}}
    approved = "https://github.com/kubernetes-sigs/gateway-api-inference-extension/pull/1173"
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"inferencepools.{group}",
            "annotations": {"api-approved.kubernetes.io": approved},
        },
        "spec": {
            "group": group,
            "names": {
                "kind": "InferencePool",
                "plural": "inferencepools",
                "singular": "inferencepool",
            },
            "scope": "Namespaced",
            "versions": [
                {
                    "name": VERSIONS[group],
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                    "subresources": {"status": {}},
                }
            ],
        },
    }


def inference_pool(namespace: str, service: str, group: str = GROUP) -> Object:
    """The one before a service."""
    ours = {"poolwise.dev/owner": service, "poolwise.dev/owner-kind": "InferenceService"}
    spec = {
        GROUP: {
            "selector": {"matchLabels": ours},
            "targetPorts": [{"number": 8000}],
            "endpointPickerRef": {"name": f"{service}-epp", "port": {"number": 9002}},
        },
        OLD_GROUP: {
            "selector": ours,
            "targetPortNumber": 8000,
            "extensionRef": {"name": f"{service}-epp", "portNumber": 9002},
        },
    }
    return {
        "apiVersion": f"{group}/{VERSIONS[group]}",
        "kind": "InferencePool",
        "metadata": {"name": service, "namespace": namespace},
        "spec": spec[group],
    }


def picker(namespace: str, service: str, port: int) -> list[Object]:
    """Its endpoint picker: a Service, and the pod behind it, whose metrics are on that port."""
    labels = {"app": f"{service}-epp"}
    where = {"name": f"{service}-epp", "namespace": namespace}
    ports = [{"name": "grpc", "containerPort": 9002}, {"name": "metrics", "containerPort": port}]
    return [
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": where,
            "spec": {"selector": labels, "ports": [{"port": 9002}]},
        },
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {**where, "labels": labels},
            "spec": {"containers": [{"name": "epp", "image": "epp", "ports": ports}]},
        },
    ]


@dataclass
class Picker:
    """What one endpoint picker tells, as the llm-d router writes it."""

    pool: str
    held: int = 0
    is_silent: bool = False
    passes_on: int = 0
    """Requests between two looks, all within half a second."""
    asked: int = 0

    def answer(self, address: str) -> tuple[int, str, str]:
        """Of its flow control layer; the queue only once it held something."""
        self.asked += 1
        if self.is_silent:
            return 500, "text/plain", "it has no word for you"
        stage = f'{{inference_pool="{self.pool}",stage="effective"}}'
        flow = f'{{fairness_id="default",inference_pool="{self.pool}",priority="0"}}'
        lines = [
            "llm_d_epp_flow_control_dispatch_cycle_duration_seconds_count 81234",
            f"llm_d_epp_flow_control_pool_saturation{stage} 1",
            f'inference_pool_ready_pods{{name="{self.pool}"}} 0',
        ]
        if self.held:
            lines.append(f"llm_d_epp_flow_control_queue_size{flow} {self.held}")
        passed_on = router(self.passes_on * self.asked) if self.passes_on else ""
        return 200, "text/plain", "\n".join([*lines, passed_on])
