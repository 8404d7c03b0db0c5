"""Node labels that clouds and discovery tools set, in order of trust, and what they mean.

Every key was read in the setter's documentation or source: NVIDIA GPU Feature Discovery, AMD and
Intel node labellers, GKE, EKS, Karpenter (AWS and Azure), AKS, OKE, CoreWeave, Topograph.
"""

from __future__ import annotations

from collections.abc import Mapping

PRODUCT_KEYS = (
    "nvidia.com/gpu.product",
    "amd.com/gpu.product-name",
    "amd.com/gpu.device-id",
    "habana.ai/product.name",
    "gpu.intel.com/product",
    "cloud.google.com/gke-accelerator",
    "cloud.google.com/gke-tpu-accelerator",
    "eks.amazonaws.com/instance-gpu-name",
    "eks.amazonaws.com/instance-accelerator-name",
    "karpenter.k8s.aws/instance-gpu-name",
    "karpenter.k8s.aws/instance-accelerator-name",
    "karpenter.azure.com/sku-gpu-name",
    "gpu.nvidia.com/model",
    "aliyun.accelerator/nvidia_name",
)
"""The device's model: what drivers read first, what provisioners were told after."""

MEMORY_MIB_KEYS = (
    "nvidia.com/gpu.memory",
    "eks.amazonaws.com/instance-gpu-memory",
    "karpenter.k8s.aws/instance-gpu-memory",
)
"""Memory of one device in MiB, as a plain number."""
MEMORY_KEYS = ("amd.com/gpu.vram",)
"""Memory of one device with a unit, ``192G`` for 192 GiB."""

COUNT_KEYS = (
    "nvidia.com/gpu.count",
    "cloud.google.com/gke-accelerator-count",
    "eks.amazonaws.com/instance-gpu-count",
    "karpenter.k8s.aws/instance-gpu-count",
    "karpenter.azure.com/sku-gpu-count",
    "gpu.nvidia.com/count",
    "aliyun.accelerator/nvidia_count",
    "gpu.intel.com/device.count",
)
"""Physical devices of the node."""

CAPABILITY_KEYS = ("nvidia.com/gpu.compute.major", "nvidia.com/gpu.compute.minor")
FAMILY_KEY = "nvidia.com/gpu.family"
PARTITION_KEY = "cloud.google.com/gke-gpu-partition-size"
"""GKE: every device of the node is cut into MIG slices of this profile."""
AMD_PARTITION_KEY = "amd.com/compute-memory-partition"
TPU_TOPOLOGY_KEY = "cloud.google.com/gke-tpu-topology"

MACHINE_TYPE_KEYS = ("node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type")
ARCHITECTURE_KEYS = ("kubernetes.io/arch", "beta.kubernetes.io/arch")
HOSTNAME_KEY = "kubernetes.io/hostname"
CPU_MODEL_KEYS = tuple(
    f"feature.node.kubernetes.io/cpu-model.{part}" for part in ("vendor_id", "family", "id")
)

CLOUD_POOL_KEYS = (
    "cloud.google.com/gke-nodepool",
    "eks.amazonaws.com/nodegroup",
    "karpenter.sh/nodepool",
    "kubernetes.azure.com/agentpool",
    "agentpool",
    "compute.coreweave.com/node-pool",
    "alpha.eksctl.io/nodegroup-name",
    "kops.k8s.io/instancegroup",
    "ibm-cloud.kubernetes.io/worker-pool-name",
    "doks.digitalocean.com/node-pool",
    "lke.linode.com/pool-id",
    "vke.vultr.com/node-pool",
    "k8s.scaleway.com/pool-name",
    "nebius.com/node-group-id",
    "worker.gardener.cloud/pool",
    "alibabacloud.com/nodepool-id",
)
"""What the cloud or the provisioner itself calls the group that the node belongs to."""

_ANY = ""
_SPOT, _ON_DEMAND, _RESERVED = "Spot", "OnDemand", "Reserved"
CAPACITY_TYPES: tuple[tuple[str, Mapping[str, str]], ...] = (
    (
        "karpenter.sh/capacity-type",
        {"spot": _SPOT, "on-demand": _ON_DEMAND, "reserved": _RESERVED},
    ),
    (
        "eks.amazonaws.com/capacityType",
        {"spot": _SPOT, "on_demand": _ON_DEMAND, "capacity_block": _RESERVED},
    ),
    ("cloud.google.com/gke-spot", {"true": _SPOT}),
    ("cloud.google.com/gke-preemptible", {"true": _SPOT}),
    ("cloud.google.com/gke-provisioning", {"spot": _SPOT, "preemptible": _SPOT}),
    ("kubernetes.azure.com/scalesetpriority", {"spot": _SPOT, "regular": _ON_DEMAND}),
    ("oci.oraclecloud.com/oke-is-preemptible", {"true": _SPOT}),
    ("topology.k8s.aws/capacity-block-id", {_ANY: _RESERVED}),
    ("karpenter.k8s.aws/capacity-reservation-id", {_ANY: _RESERVED}),
    ("cloud.google.com/reservation-name", {_ANY: _RESERVED}),
)
"""Terms of purchase by key and value, the first match wins."""
SPOT, DEFAULT_CAPACITY_TYPE = _SPOT, _ON_DEMAND
LEAST_ASSURED = (_SPOT, _ON_DEMAND, _RESERVED)
"""Terms of purchase, those first that give the least right to a node."""

NETWORK_MBPS_KEYS = (
    "eks.amazonaws.com/instance-network-bandwidth",
    "karpenter.k8s.aws/instance-network-bandwidth",
)
"""Baseline of the node's network in megabits per second."""
RDMA_LABELS = (
    "feature.node.kubernetes.io/rdma.available",
    "feature.node.kubernetes.io/rdma.capable",
)
RDMA_RESOURCE_PREFIXES = ("rdma/", "nvidia.com/hostdev", "nvidia.com/mlnxnics")
AZURE_KEY_PREFIX = "kubernetes.azure.com/"


def first(labels: Mapping[str, str], keys: tuple[str, ...]) -> tuple[str, str] | None:
    """The first of ``keys`` that has a value, with it."""
    return next(((key, labels[key]) for key in keys if labels.get(key)), None)


def capacity_type(labels: Mapping[str, str]) -> tuple[str, str] | None:
    """Reserved, OnDemand or Spot, and the label that says so; None: no label does."""
    for key, meanings in CAPACITY_TYPES:
        value = labels.get(key)
        meaning = value and (meanings.get(value.lower()) or meanings.get(_ANY))
        if meaning:
            return meaning, f"{key}={value}"
    return None
