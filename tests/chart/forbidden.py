"""What the operator never writes: changes to what it does, each of which a policy refuses."""

from __future__ import annotations

from typing import Any

CONFINED = {"seccompProfile": {"type": "RuntimeDefault"}}
ELSEWHERE = {"port": 80, "host": "169.254.169.254"}
UNMASKED = {"allowPrivilegeEscalation": False, "procMount": "Unmasked"}
POD_CHANGES: dict[str, dict[str, Any]] = {
    "hostNetwork": {"hostNetwork": True},
    "hostPID": {"hostPID": True},
    "hostIPC": {"hostIPC": True},
    "nodeName": {"nodeName": "h100-1"},
    "hostPath": {"volumes": [{"name": "host", "hostPath": {"path": "/"}}]},
    "unconfined": {"securityContext": {"seccompProfile": {"type": "Unconfined"}}},
    "no seccomp": {"securityContext": {}},
    "sysctl": {
        "securityContext": {
            **CONFINED,
            "sysctls": [{"name": "net.core.somaxconn", "value": "1"}],
        }
    },
    "procMount": {
        "hostUsers": False,  # without which the API server itself refuses it
        "containers": [{"name": "x", "image": "x", "securityContext": UNMASKED}],
    },
    "AppArmor": {"securityContext": {**CONFINED, "appArmorProfile": {"type": "Unconfined"}}},
    "SELinux": {"securityContext": {**CONFINED, "seLinuxOptions": {"type": "spc_t"}}},
    "priority": {"priorityClassName": "system-node-critical"},
    "init": {"initContainers": [{"name": "init", "image": "x", "securityContext": {}}]},
}
CONTAINER_CHANGES: dict[str, dict[str, Any]] = {
    "privileged": {"securityContext": {"privileged": True}},
    "escalation": {"securityContext": {"allowPrivilegeEscalation": True}},
    "escalation by default": {"securityContext": {}},
    "capability": {
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"add": ["SYS_ADMIN"]},
        }
    },
    "unconfined container": {
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "seccompProfile": {"type": "Unconfined"},
        }
    },
    "AppArmor of a container": {
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "appArmorProfile": {"type": "Unconfined"},
        }
    },
    "SELinux of a container": {
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "seLinuxOptions": {"type": "spc_t"},
        }
    },
    "probe of another host": {"livenessProbe": {"httpGet": ELSEWHERE}},
    "hook that asks another host": {"lifecycle": {"preStop": {"httpGet": ELSEWHERE}}},
    "hostPort": {"ports": [{"name": "http", "containerPort": 8000, "hostPort": 8000}]},
}

OWNER_CHANGES: dict[str, dict[str, Any]] = {
    "no owner": {"ownerReferences": []},
    "another kind": {
        "ownerReferences": [
            {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "x", "controller": True}
        ]
    },
    "no label": {"labels": {}},
}
