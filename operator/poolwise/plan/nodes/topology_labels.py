"""Node labels that tell where a node is in its fabric, of every platform, and how near they mean.

No two platforms agree: AWS counts its layers from the top and Topograph from the node, others name
them. Keys were read in the setter's documentation or source: GKE, EKS, OKE node labels, AKS,
CoreWeave, Crusoe, NVIDIA GPU Feature Discovery, and Topograph before and after its labels were
renamed (v1.0).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

LINK_KEYS = (
    "nvidia.com/gpu.clique",
    "accelerator.topograph.run/domain",
    "network.topology.nvidia.com/accelerator",
    "ds.coreweave.com/nvlink.domain",
    "oci.oraclecloud.com/host.gpu_memory_fabric_id",
    "topology.k8s.aws/ultraserver-id",
)
"""Nodes of one value share the accelerators' own link (multi-node NVLink, NeuronLink), where the
hardware has one that leaves the node."""
RACK_KEYS = (
    "cloud.google.com/gce-topology-subblock",
    "node.coreweave.cloud/rack",
    "oci.oraclecloud.com/host.rack_id",
)
"""The rack, which is such a domain of hardware that is built as racks (A4X: one subblock)."""
SLICE_KEY = "cloud.google.com/gke-nodepool"
"""GKE makes a node pool of each slice of several TPU hosts."""

NETWORK_KEYS = (
    "accelerator.topograph.run/sub-domain",
    "cloud.google.com/gce-topology-host",
    "cloud.google.com/gce-topology-subblock",
    "cloud.google.com/gce-topology-block",
    "topology.k8s.aws/network-node-layer-4",
    "topology.k8s.aws/network-node-layer-3",
    "topology.k8s.aws/network-node-layer-2",
    "topology.k8s.aws/network-node-layer-1",
    "network.topology.nvidia.com/leaf",
    "network.topology.nvidia.com/block",
    "network.topology.nvidia.com/spine",
    "network.topology.nvidia.com/core",
    "network.topology.nvidia.com/datacenter",
    "node.coreweave.cloud/rack",
    "backend.coreweave.cloud/leafgroup",
    "ib.coreweave.cloud/leafgroup",
    "backend.coreweave.cloud/superpod",
    "ib.coreweave.cloud/superpod",
    "backend.coreweave.cloud/fabric",
    "ib.coreweave.cloud/fabric",
    "oci.oraclecloud.com/host.rack_id",
    "oci.oraclecloud.com/rdma.local_block_id",
    "oci.oraclecloud.com/rdma.network_block_id",
    "oci.oraclecloud.com/host.network_block_id",
    "oci.oraclecloud.com/rdma.hpc_island_id",
    "crusoe.ai/pod.id",
    "crusoe.ai/ib.partition.id",
    "kubernetes.azure.com/ppg",
)
"""Levels of each platform's network, nearest first."""
ZONE_KEY = "topology.kubernetes.io/zone"
_TIER = re.compile(r"fabric\.topograph\.run/tier-(\d{1,3})")


def carried(every: Sequence[Mapping[str, str]]) -> tuple[str, ...]:
    """Levels that most of the nodes carry, nearest first; those of the accelerators' own link
    before the network's.

    Levels nest, so of two with different numbers of domains the one with more is nearer, whoever
    set it. A node that has just joined without labels takes no level away from the others.
    """
    known = {key for labels in every for key in labels if _is_level(key)}
    values = {key: {labels[key] for labels in every if labels.get(key)} for key in known}
    common = [key for key in known if 2 * sum(bool(at.get(key)) for at in every) > len(every)]
    return tuple(sorted(common, key=lambda key: (*_family(key, len(values[key])), key)))


def _is_level(key: str) -> bool:
    return key in _ORDER or _TIER.fullmatch(key) is not None


def _family(key: str, domains: int) -> tuple[bool, bool, int, int]:
    """Link before network before zone, then by how fine, then in the setter's order."""
    tier = _TIER.fullmatch(key)
    order = int(tier[1]) if tier else _ORDER[key]
    return key not in LINK_KEYS, key == ZONE_KEY, -domains, order


_ORDER = {key: index for index, key in enumerate((*LINK_KEYS, *NETWORK_KEYS, ZONE_KEY))}
