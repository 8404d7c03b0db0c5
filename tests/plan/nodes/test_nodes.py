from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poolwise.plan.nodes.claims import HardwareReason, LabelClaim, narrow
from poolwise.plan.nodes.facts import Facts, facts
from poolwise.plan.nodes.hardware import DeviceOffer
from poolwise.plan.reading import amount
from poolwise.tables import AcceleratorRow
from tests.plan.nodes_given import H100, TABLES, node


def of(raw: dict[str, Any]) -> Facts:
    return facts(raw, TABLES)


def offer(raw: dict[str, Any]) -> DeviceOffer:
    (only,) = of(raw).offers
    return only


MACHINE = "node.kubernetes.io/instance-type"
N1_WITH_T4 = {MACHINE: "n1-standard-8", "cloud.google.com/gke-accelerator": "nvidia-tesla-t4"}
P4D = {MACHINE: "p4d.24xlarge", "eks.amazonaws.com/instance-gpu-name": "a100"}
NC_A100 = {MACHINE: "Standard_NC24ads_A100_v4", "karpenter.azure.com/sku-gpu-name": "A100"}


@pytest.mark.parametrize(
    ("labels", "resource", "product"),
    [
        (H100, "nvidia.com/gpu", "H100-SXM5-80GB"),
        ({"amd.com/gpu.product-name": "AMD_Instinct_MI300X_OAM"}, "amd.com/gpu", "MI300X"),
        ({"amd.com/gpu.device-id": "74b5", "amd.com/gpu.vram": "191G"}, "amd.com/gpu", "MI300X"),
        ({"habana.ai/product.name": "gaudi3"}, "habana.ai/gaudi", "Gaudi3"),
        (
            {"nvidia.com/gpu.product": "Quadro-RTX-8000", "nvidia.com/gpu.memory": "48601"},
            "nvidia.com/gpu",
            "Quadro-RTX-8000",  # the table has no total of the driver for it
        ),
        ({"cloud.google.com/gke-accelerator": "nvidia-l4"}, "nvidia.com/gpu", "L4"),
        ({"aliyun.accelerator/nvidia_name": "NVIDIA-A10"}, "nvidia.com/gpu", "A10"),
        ({"cloud.google.com/gke-accelerator": "nvidia-b200"}, "nvidia.com/gpu", "B200-SXM-180GB"),
        (
            {"cloud.google.com/gke-tpu-accelerator": "tpu-v5-lite-podslice"},
            "google.com/tpu",
            "TPU v5e",
        ),
        (N1_WITH_T4, "nvidia.com/gpu", "T4"),
        ({MACHINE: "p5.48xlarge"}, "nvidia.com/gpu", "H100-SXM5-80GB"),
        (P4D, "nvidia.com/gpu", "A100-SXM4-40GB"),
        (
            {
                MACHINE: "p5.48xlarge",
                "karpenter.k8s.aws/instance-gpu-name": "h100",
                "karpenter.k8s.aws/instance-gpu-memory": "81920",
            },
            "nvidia.com/gpu",
            "H100-SXM5-80GB",
        ),
        ({MACHINE: "trn1.32xlarge"}, "aws.amazon.com/neuron", "Trainium1"),
        ({MACHINE: "Standard_ND96isr_H100_v5"}, "nvidia.com/gpu", "H100-SXM5-80GB"),
        ({MACHINE: "Standard_ND96isr_MI300X_v5"}, "amd.com/gpu", "MI300X"),
        (NC_A100, "nvidia.com/gpu", "A100-PCIE-80GB"),
        ({"gpu.nvidia.com/model": "H100_NVLINK_80GB"}, "nvidia.com/gpu", "H100-SXM5-80GB"),
        ({MACHINE: "BM.GPU.L40S.4"}, "nvidia.com/gpu", "L40S"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_every_platform_names_its_device(
    labels: dict[str, str], resource: str, product: str
) -> None:
    found = offer(node(labels=labels, resources={resource: "8"}))
    assert (found.product, found.problem, found.resource) == (product, None, resource)
    assert found.count == 8


@pytest.mark.parametrize("row", TABLES.accelerators.rows, ids=lambda row: row.name)
def test_every_product_label_of_the_table_is_known(row: Any) -> None:
    for label in row.product_labels:
        found = offer(node(labels={"nvidia.com/gpu.product": label}, resources={row.resource: "4"}))
        assert found.accelerator == row


@pytest.mark.parametrize(
    ("change", "both"),
    [
        ({MACHINE: "g6.48xlarge"}, ("NVIDIA-H100-80GB-HBM3", "g6.48xlarge")),
        ({MACHINE: "m7i.8xlarge"}, ("NVIDIA-H100-80GB-HBM3", "m7i.8xlarge")),
        ({"nvidia.com/gpu.memory": "40960"}, ("NVIDIA-H100-80GB-HBM3", "40960 (40.0 GiB)")),
        ({"nvidia.com/gpu.compute.major": "8"}, ("NVIDIA-H100-80GB-HBM3", "8.0")),
        ({"nvidia.com/gpu.family": "ampere"}, ("NVIDIA-H100-80GB-HBM3", "ampere")),
        ({"cloud.google.com/gke-accelerator": "nvidia-l4"}, ("NVIDIA-H100-80GB-HBM3", "nvidia-l4")),
    ],
    ids=str,
)
def test_labels_that_contradict_each_other_are_both_named(
    change: dict[str, str], both: tuple[str, str]
) -> None:
    problem = offer(node(labels=H100 | change, gpus=8)).problem
    assert problem is not None
    assert problem.reason is HardwareReason.CONFLICTING_LABELS
    assert all(value in problem.message for value in both)


def test_a_product_of_another_vendor_than_the_resource_is_a_conflict() -> None:
    problem = offer(node(labels=H100, resources={"amd.com/gpu": "8"})).problem
    assert problem is not None
    assert problem.reason is HardwareReason.CONFLICTING_LABELS
    assert "amd.com/gpu" in problem.message


def test_partitions_are_shared_devices_whatever_memory_their_label_tells() -> None:
    """AMD's node labeller reads the memory of a partition, which is no conflict with the device."""
    parts = {
        "amd.com/gpu.product-name": "AMD_Instinct_MI300X_OAM",
        "amd.com/gpu.vram": "24G",
        "amd.com/compute-memory-partition": "cpx_nps4",
    }
    found = offer(node(labels=parts, resources={"amd.com/gpu": "64"}))
    assert (found.problem, found.product, found.nominal_count) == (None, "MI300X", 8)
    assert found.sharing == "partitions of mode cpx_nps4, 8 of each device"


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        ({}, "no label names the device or the machine type"),
        ({MACHINE: "my-server"}, "machine type my-server is not in the shipped table"),
        ({"nvidia.com/gpu.product": "NVIDIA-Z9000"}, "NVIDIA-Z9000, which is no device"),
        ({"gpu.nvidia.com/model": "H100"}, "can be any of H100-NVL-94GB, H100-PCIe-80GB"),
    ],
    ids=str,
)
def test_unknown_hardware_is_never_guessed(labels: dict[str, str], words: str) -> None:
    found = offer(node(labels=labels, gpus=8))
    assert found.problem is not None
    assert found.problem.reason is HardwareReason.UNKNOWN_HARDWARE
    assert words in found.problem.message
    assert found.accelerator is None


@pytest.mark.parametrize(
    ("memory", "product"),
    [("81559", "H100-SXM5-80GB"), ("95830", "H100-NVL-94GB")],
)
def test_memory_tells_devices_of_one_short_name_apart(memory: str, product: str) -> None:
    labels = {"karpenter.k8s.aws/instance-gpu-name": "h100", "nvidia.com/gpu.memory": memory}
    labels["nvidia.com/gpu.product"] = product
    assert offer(node(labels=labels, gpus=8)).product == product


def test_devices_without_a_plugin_count_nothing() -> None:
    found = offer(node(labels={MACHINE: "p5.48xlarge"}))
    assert (found.product, found.count, found.nominal_count) == ("H100-SXM5-80GB", 0, 8)


def test_a_lost_device_does_not_change_what_the_node_is_built_with() -> None:
    found = offer(node(labels=H100, gpus=7))
    assert (found.count, found.nominal_count) == (7, 8)


def test_mig_single_makes_slices_of_the_whole_node() -> None:
    labels = H100 | {
        "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3-MIG-1g.10gb",
        "nvidia.com/gpu.memory": "9984",
        "nvidia.com/gpu.count": "56",
    }
    found = offer(node(labels=labels, gpus=56))
    assert found.product == "H100-SXM5-80GB-MIG-1g.10gb"
    assert (found.count, found.slice_memory_bytes) == (56, 9984 * 2**20)


def test_mig_mixed_offers_whole_devices_and_slices() -> None:
    raw = node(
        labels=H100 | {"nvidia.com/mig-1g.10gb.memory": "9984"},
        gpus=6,
        resources={"nvidia.com/mig-1g.10gb": "14"},
    )
    offers = {each.product: each for each in of(raw).offers}
    assert {name: each.count for name, each in offers.items()} == {
        "H100-SXM5-80GB": 6,
        "H100-SXM5-80GB-MIG-1g.10gb": 14,
    }
    assert offers["H100-SXM5-80GB"].nominal_count == 6


def test_mig_mixed_with_every_device_cut_offers_slices_alone() -> None:
    raw = node(labels=H100, gpus=0, resources={"nvidia.com/mig-1g.10gb": "56"})
    assert [each.resource for each in of(raw).offers] == ["nvidia.com/mig-1g.10gb"]


def test_a_profile_that_the_device_cannot_have_is_unknown_hardware() -> None:
    found = offer(node(labels=H100, resources={"nvidia.com/mig-9g.10gb": "1"}))
    assert found.problem is not None
    assert "9g.10gb" in found.problem.message


@pytest.mark.parametrize(
    ("labels", "resources", "physical", "words"),
    [
        (
            {"nvidia.com/gpu.replicas": "4", "nvidia.com/gpu.sharing-strategy": "time-slicing"},
            {"nvidia.com/gpu": "32"},
            8,
            "time-slicing, each device advertised 4 times",
        ),
        (
            {"nvidia.com/gpu.replicas": "10", "nvidia.com/gpu.sharing-strategy": "mps"},
            {"nvidia.com/gpu": "80"},
            8,
            "mps, each device advertised 10 times",
        ),
        (
            {"nvidia.com/gpu.replicas": "2"},
            {"nvidia.com/gpu.shared": "16"},
            8,
            "time-slicing, each device advertised 2 times",
        ),
        (
            {
                "cloud.google.com/gke-gpu-sharing-strategy": "time-sharing",
                "cloud.google.com/gke-max-shared-clients-per-gpu": "3",
            },
            {"nvidia.com/gpu": "24"},
            8,
            "time-sharing, each device advertised 3 times",
        ),
        (
            {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3-SHARED"},
            {"nvidia.com/gpu": "8"},
            8,
            "time-slicing",
        ),
        (
            {
                "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3-SHARED",
                "nvidia.com/gpu.sharing-strategy": "none",
            },
            {"nvidia.com/gpu": "8"},
            8,
            "label nvidia.com/gpu.product says so, though nvidia.com/gpu.sharing-strategy is none",
        ),
        (
            {"nvidia.com/gpu.sharing-strategy": "none"},
            {"nvidia.com/gpu.shared": "8"},
            8,
            "the name nvidia.com/gpu.shared says so,"
            " though nvidia.com/gpu.sharing-strategy is none",
        ),
    ],
    ids=["time-slicing", "mps", "renamed", "gke", "marked alone", "marked and none", "named, none"],
)
def test_shared_devices_are_counted_once(
    labels: dict[str, str], resources: dict[str, str], physical: int, words: str
) -> None:
    found = offer(node(labels=H100 | labels, resources=resources))
    assert (found.count, found.sharing) == (physical, words)


def test_devices_that_are_not_shared_are_not_called_so() -> None:
    alone = {"nvidia.com/gpu.replicas": "1", "nvidia.com/gpu.sharing-strategy": "none"}
    assert offer(node(labels=H100 | alone, gpus=8)).sharing is None


@pytest.mark.parametrize(
    ("labels", "product", "is_estimated"),
    [
        ({MACHINE: "m7i.4xlarge"}, "Xeon-8488C", False),
        ({MACHINE: "n2-standard-16"}, "Xeon-8259CL", False),
        ({MACHINE: "m8g.4xlarge", "kubernetes.io/arch": "arm64"}, "Graviton4", False),
        (
            {
                "feature.node.kubernetes.io/cpu-model.vendor_id": "AMD",
                "feature.node.kubernetes.io/cpu-model.family": "25",
                "feature.node.kubernetes.io/cpu-model.id": "17",
            },
            "EPYC-9R14",
            False,
        ),
        ({}, "amd64", True),
        ({"kubernetes.io/arch": "arm64"}, "arm64", True),
    ],
    ids=str,
)
def test_cpus(labels: dict[str, str], product: str, is_estimated: bool) -> None:
    found = offer(node(labels=labels))
    assert (found.product, found.is_estimated) == (product, is_estimated)
    assert found.resource is None
    assert found.cpu is not None
    if is_estimated:
        assert found.cpu == TABLES.cpus.weakest(product)


def test_a_cpu_of_another_architecture_is_a_conflict() -> None:
    problem = offer(node(labels={MACHINE: "m7g.4xlarge"})).problem
    assert problem is not None
    assert problem.reason is HardwareReason.CONFLICTING_LABELS


@pytest.mark.parametrize(
    ("labels", "capacity_type"),
    [
        ({}, "OnDemand"),
        ({"karpenter.sh/capacity-type": "spot"}, "Spot"),
        ({"karpenter.sh/capacity-type": "reserved"}, "Reserved"),
        ({"eks.amazonaws.com/capacityType": "SPOT"}, "Spot"),
        ({"eks.amazonaws.com/capacityType": "CAPACITY_BLOCK"}, "Reserved"),
        ({"cloud.google.com/gke-spot": "true"}, "Spot"),
        ({"cloud.google.com/gke-provisioning": "standard"}, "OnDemand"),
        ({"kubernetes.azure.com/scalesetpriority": "spot"}, "Spot"),
        ({"cloud.google.com/reservation-name": "mine"}, "Reserved"),
        ({"karpenter.sh/capacity-type": "unheard-of"}, "OnDemand"),
    ],
    ids=str,
)
def test_terms_of_purchase(labels: dict[str, str], capacity_type: str) -> None:
    assert of(node(labels=labels)).capacity_type == capacity_type


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"spec": {"unschedulable": True}}, "is cordoned"),
        ({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}, "is being deleted"),
        ({"metadata": {"labels": {"kubernetes.io/os": "windows"}}}, "runs windows"),
        (
            {"status": {"conditions": [{"type": "Ready", "status": "Unknown", "reason": "Lost"}]}},
            "is NotReady (Lost)",
        ),
        ({"status": {"conditions": [{"type": "Ready", "status": "True"}]}}, None),
        ({"status": {}}, None),
    ],
    ids=["cordoned", "deleted", "windows", "not-ready", "ready", "silent"],
)
def test_nodes_that_take_no_work(change: dict[str, Any], reason: str | None) -> None:
    assert of(node() | change).unusable_reason == reason


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=10,
)
LABELS = st.dictionaries(
    st.sampled_from([*H100, MACHINE, "nvidia.com/gpu.replicas", "kubernetes.io/arch"]),
    st.sampled_from(["", "-1", "8", "1e9", "NVIDIA-L4-MIG-", "²", "p5.48xlarge", "MIG-1g.10gb"])
    | st.text(max_size=12),
)
QUANTITIES: st.SearchStrategy[dict[str, Any]] = st.dictionaries(
    st.sampled_from(["cpu", "memory", "nvidia.com/gpu", "nvidia.com/mig-1g.10gb", "amd.com/gpu"]),
    st.sampled_from(["0", "8", "-3", "1e400", "Gi", "1.5", "", None, 8, [], "9" * 400]),
)


@given(labels=LABELS, capacity=QUANTITIES, allocatable=QUANTITIES)
def test_no_label_and_no_quantity_breaks_a_node(
    labels: dict[str, str], capacity: dict[str, Any], allocatable: dict[str, Any]
) -> None:
    raw = {
        "metadata": {"name": "n", "labels": labels},
        "status": {"capacity": capacity, "allocatable": allocatable},
    }
    found = of(raw)
    assert found.offers
    assert all(0 <= each.count <= each.nominal_count for each in found.offers if each.resource)


@given(metadata=JUNK, spec=JUNK, status=JUNK)
def test_no_object_breaks_a_node(metadata: Any, spec: Any, status: Any) -> None:
    assert of({"metadata": metadata, "spec": spec, "status": status}).offers


def test_a_label_that_the_table_does_not_know_takes_nothing_from_one_that_it_does():
    claims = [LabelClaim("known", frozenset({"H100-SXM5-80GB"})), LabelClaim("new", frozenset())]
    found = narrow(claims, TABLES)
    assert isinstance(found, AcceleratorRow)
    assert found.name == "H100-SXM5-80GB"


@pytest.mark.parametrize("text", ["-8", "0", "junk", None], ids=str)
def test_what_is_no_positive_quantity_is_none(text):
    assert amount(text) == 0.0
