"""Pools that may grow, what was placed there, and how far it has come."""

import copy
from datetime import timedelta

from poolwise.plan.cluster import decide
from poolwise.settings import Settings
from tests.plan.cluster_given import GPU, NOW, observed, running
from tests.plan.machines import CALIBRATION, TABLES

MINUTE = 60
INDEX = "batch.kubernetes.io/job-completion-index"


def growing(name="zero", max_nodes=8, **spec):
    """A pool of H100 nodes that a person declared, by the label of its node group."""
    return {
        "apiVersion": "poolwise.dev/v1alpha1",
        "kind": "AcceleratorPool",
        "metadata": {"name": name, "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {
            "nodeSelector": {"group": name},
            "accelerator": "H100-SXM5-80GB",
            "maxNodes": max_nodes,
            "nodeStartup": "4m",
            "price": {"perNodeHour": "50"},
            **spec,
        },
    }


def node(name, group="zero", gpus=8, born=NOW):
    """A node that an autoscaler has brought."""
    amounts = {"cpu": "192", "memory": "1800Gi", "pods": "110", GPU: str(gpus)}
    return {
        "metadata": {
            "name": name,
            "labels": {"group": group, "kubernetes.io/hostname": name},
            "creationTimestamp": stamp(born),
        },
        "status": {
            "capacity": amounts,
            "allocatable": dict(amounts),
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def stamp(moment):
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def after(minutes):
    return NOW + timedelta(minutes=minutes)


def decided_at(moment, nodes, *workloads, **more):
    return decide(observed(nodes, *workloads, **more), TABLES, Settings(), CALIBRATION, moment)


def created(nodes, *workloads, at=NOW, **more):
    """The children that a pass makes, as the API server has them from then on."""
    made = running(nodes, *workloads, **more)
    for child in made:
        child["metadata"] |= {
            "uid": f"uid-{child['metadata']['name']}",
            "creationTimestamp": stamp(at),
        }
    return made


def pods(child, *states, at=NOW, **labels):
    """Pods of a child: for each rank the name of its node, or None while it has none."""
    template = copy.deepcopy(child["spec"]["template"])
    return [
        {
            "metadata": {
                "name": f"{child['metadata']['name']}-{index}",
                "namespace": child["metadata"]["namespace"],
                "labels": {
                    **template["metadata"]["labels"],
                    "batch.kubernetes.io/job-name": child["metadata"]["name"],
                    INDEX: str(index),
                    **labels,
                },
                "creationTimestamp": stamp(at),
            },
            "spec": {**template["spec"], **({"nodeName": state} if state else {})},
            "status": {"phase": "Running" if state else "Pending"},
        }
        for index, state in enumerate(states)
    ]


def with_status(workload, **status):
    return {**workload, "status": status}
