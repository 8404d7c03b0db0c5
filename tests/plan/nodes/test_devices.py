"""Extended resources as the device plugins of their makers and of others name them."""

from __future__ import annotations

import pytest

from poolwise.plan.nodes.devices import is_accelerator
from tests.plan.nodes_given import H100, condition, declared, node, only_pool

ACCELERATORS = (
    "huawei.com/Ascend910",
    "huawei.com/Ascend910B",
    "huawei.com/npu-core",
    "cambricon.com/mlu",
    "cambricon.com/mlu370.smlu.vmemory",
    "enflame.com/gcu",
    "metax-tech.com/gpu",
    "metax-tech.com/sgpu",
    "hygon.com/dcu",
    "mthreads.com/vgpu",
    "iluvatar.ai/gpu",
    "iluvatar.ai/BI-V150-vgpu",
    "kunlunxin.com/xpu",
    "birentech.com/gpu",
    "aws.amazon.com/neurondevice",
    "qualcomm.com/qaic",
    "furiosa.ai/rngd",
    "rebellions.ai/ATOM",
    "tenstorrent.com/n300",
    "gpu.intel.com/flex",
    "npu.intel.com/accel",
    "fpga.intel.com/af-695.d84.aVKN",
    "xilinx.com/fpga-xilinx_u250_gen3x16_xdma_shell_3_1-0",
    "nvidia.com/GH100_H100_SXM5_80GB",
    "aliyun.com/gpu-mem",
    "example.com/accelerator",
)
OTHERS = (
    "cpu",
    "hugepages-2Mi",
    "ephemeral-storage",
    "vpc.amazonaws.com/efa",
    "vpc.amazonaws.com/pod-eni",
    "vpc.amazonaws.com/PrivateIPv4Address",
    "rdma/hca_shared_devices_a",
    "rdma/ib",
    "nvidia.com/hostdev",
    "nvidia.com/mlnxnics",
    "nvidia.com/rdma_shared_device_a",
    "nvidia.com/sriov_rdma_vf",
    "amd.com/nic",
    "amd.com/vnic",
    "intel.com/intel_sriov_netdevice",
    "intel.com/mlnx_sriov_rdma",
    "openshift.io/gpu_nic",
    "qat.intel.com/generic",
    "sgx.intel.com/enclave",
    "gpu.intel.com/i915_monitoring",
    "smarter-devices/nvhost-gpu",
    "devices.kubevirt.io/kvm",
    "devices.kubevirt.io/vhost-net",
    "networking.gke.io.networks/rdma-0",
    "squat.ai/video",
    "example.com/dongle",
)


@pytest.mark.parametrize("resource", ACCELERATORS)
def test_a_node_with_an_unlisted_accelerator_is_unknown_hardware(resource: str) -> None:
    pool = only_pool([node(resources={resource: "8"})])
    status, reason, message = condition(pool, "HardwareKnown")
    assert (status, reason) == (False, "UnknownHardware")
    assert resource in message
    assert (pool.machine, pool.accelerator, pool.is_cpu) == (None, None, False)
    assert pool.unusable_reason is not None


@pytest.mark.parametrize("resource", OTHERS)
def test_other_resources_leave_a_cpu_node_what_it_is(resource: str) -> None:
    assert not is_accelerator(resource)
    assert only_pool([node(resources={resource: "8"})]).is_cpu


@pytest.mark.parametrize(
    ("gpus", "labels"), [("8Gi", {}), ("9" * 25, {}), ("8", {"nvidia.com/gpu.count": "9" * 25})]
)
def test_a_node_that_tells_of_more_devices_than_any_has_is_not_believed(
    gpus: str, labels: dict[str, str]
) -> None:
    """Every count up to that of a pool is weighed: one node held all planning up."""
    told = {"nvidia.com/gpu": gpus}
    pool = only_pool([node(labels={**H100, **labels}, resources=told)])
    status, reason, message = condition(pool, "HardwareKnown")
    assert (status, reason) == (False, "UnknownHardware")
    assert "nvidia.com/gpu, and none has more than 4096" in message
    assert pool.unusable_reason is not None


def test_a_resource_of_which_the_node_has_none_says_nothing() -> None:
    assert only_pool([node(resources={"huawei.com/Ascend910": "0"})]).is_cpu


def test_other_views_of_a_known_device_are_no_devices() -> None:
    views = {"nvidia.com/gpumem": "640", "aliyun.com/gpu-mem": "640"}
    pool = only_pool([node(labels=H100, gpus=8, resources=views)])
    assert (pool.accelerator, pool.resource) == ("H100-SXM5-80GB", "nvidia.com/gpu")


def test_a_person_can_name_the_cores_beside_an_unlisted_accelerator() -> None:
    label = {"pool": "npu"}
    nodes = [node(labels=label, resources={"huawei.com/Ascend910": "8"})]
    pool = only_pool(nodes, [declared("mine", nodeSelector=label, accelerator="EPYC-7R13")])
    assert pool.is_cpu
    assert pool.unusable_reason is None
