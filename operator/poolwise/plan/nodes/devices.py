"""Which extended resources of a node are accelerators, also of makers that no table lists.

A resource that the table of accelerators names is one. Of the others, those of a maker's own
domain and those whose name says what they are (``example.com/npu``) are accelerators too: a node
that advertises one is no CPU node, but nothing is known of its hardware. Network functions,
monitors, and what lets containers reach a kernel device are none.
"""

from __future__ import annotations

import re

from poolwise.plan.amounts import HUGE_PAGES
from poolwise.plan.nodes.reading import capacity, resources
from poolwise.plan.observed import Object
from poolwise.tables import Tables

MIG_RESOURCE_PREFIX = "nvidia.com/mig-"
NVIDIA_RESOURCE = "nvidia.com/gpu"
SYNONYMS = {"nvidia.com/gpu.shared": NVIDIA_RESOURCE, "gpu.intel.com/i915": "gpu.intel.com/xe"}
"""Names of one vendor's devices by other plugins or settings than the table's."""

MAKERS = re.compile(
    r"(?:^|\.)(?:amd\.com|birentech\.com|cambricon\.com|cerebras\.(?:ai|net)|enflame\.(?:com|cn)"
    r"|furiosa\.ai|graphcore\.ai|groq\.com|habana\.ai|hailo\.ai|huawei\.com|hygon\.com"
    r"|iluvatar\.(?:ai|com)|kunlunxin\.com|metax-tech\.com|mthreads\.com|nvidia\.com|qualcomm\.com"
    r"|rebellions\.(?:ai|in)|sambanova\.ai|sophgo\.com|tenstorrent\.com|vastaitech\.com"
    r"|xilinx\.com)$"
)
"""Domains of makers of accelerators, under which their device plugins advertise them."""
KINDS = re.compile(
    r"(?<![a-z])v?(?:gpu|npu|tpu|xpu|mlu|dcu|gcu|ppu|fpga|cuda|neuron|gaudi|ascend|qaic"
    r"|accelerator)"
)
"""What names of accelerators say, from the start of a word: ``vgpu``, ``npu-core``, ``mlu370``."""
OTHER_DOMAINS = re.compile(r"(?:^|\.)(?:kubernetes\.io|kubevirt\.io|openshift\.io|cncf\.io)$")
OTHER_PREFIXES = ("rdma/", "smarter-devices/", HUGE_PAGES, "attachable-volumes-")
OTHER_KINDS = re.compile(
    r"(?<![a-z])(?:\w*nics?|rdma|roce|sriov|sr-iov|hca|hostdev|vf|efa|eni|ib|infiniband|\w*netdevice"
    r"|kvm|vhost\w*|monitoring|qat|sgx)(?![a-z])"
)
"""Network functions and monitors that makers of accelerators advertise beside them."""


def devices(node: Object, tables: Tables) -> list[str]:
    """Resources of accelerators that the table knows and the node has, sorted."""
    names = sorted(resources(node))
    return [each for each in names if vendor_resource(each, tables) and capacity(node, each)]


def unlisted_device(node: Object, tables: Tables) -> str | None:
    """The resource of an accelerator that no table knows; of several views of it the first."""
    names = sorted(resources(node))
    return next(
        (each for each in names if _is_unlisted(each, tables) and capacity(node, each)), None
    )


def vendor_resource(resource: str, tables: Tables) -> str | None:
    """The table's name for a resource, be it of slices or of shared devices; None: no device."""
    if resource.startswith(MIG_RESOURCE_PREFIX):
        return NVIDIA_RESOURCE
    name = SYNONYMS.get(resource, resource)
    return name if name in tables.accelerators.resources else None


def _is_unlisted(resource: str, tables: Tables) -> bool:
    return vendor_resource(resource, tables) is None and is_accelerator(resource)


def is_accelerator(resource: str) -> bool:
    """Whether the name of an extended resource says that it is one.

    >>> [is_accelerator(each) for each in ("huawei.com/Ascend910", "nvidia.com/mlnxnics")]
    [True, False]
    """
    domain, _, name = resource.lower().partition("/")
    if not name or resource.startswith(OTHER_PREFIXES) or OTHER_DOMAINS.search(domain):
        return False
    is_other = OTHER_KINDS.search(name.replace("_", "-"))
    return not is_other and bool(MAKERS.search(domain) or KINDS.search(resource.lower()))
