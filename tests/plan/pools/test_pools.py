from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from e2e import profiles
from poolwise.plan.pool import Pool
from poolwise.plan.pools.selectors import selects
from tests.plan.nodes_given import H100, admits, all_pools, condition, node, only_pool

MACHINE = "node.kubernetes.io/instance-type"
CLEAN = [name for name in profiles.names() if not name.startswith("dirty")]


def of_profile(name: str) -> dict[str, Pool]:
    """Pools by accelerator, or CPU's name where there is none."""
    found = all_pools(profiles.render(name), profiles.pools(name))
    return {pool.machine.device.name: pool for pool in found if pool.machine and pool.usable_nodes}


@pytest.mark.parametrize(
    ("profile", "expected"),
    [
        ("gke-a3-g2", {"H100-SXM5-80GB": (4, 8), "L4": (4, 4), "Xeon-8259CL": (3, 0)}),
        ("eks-p5-g6", {"H100-SXM5-80GB": (4, 8), "L4": (4, 4), "Xeon-8488C": (3, 0)}),
        ("aks-nd", {"H100-SXM5-80GB": (4, 8), "A100-PCIE-80GB": (2, 1), "Xeon-8375C": (3, 0)}),
        ("bare-h200-l40s", {"H200-SXM-141GB": (8, 8), "L40S": (4, 8), "EPYC-9R14": (3, 0)}),
        ("mixed-mi300x-nvidia", {"MI300X": (4, 8), "A100-SXM4-80GB": (4, 8), "T4": (3, 1)}),
        ("cpu-only", {"Xeon-8488C": (4, 0), "Graviton4": (2, 0), "EPYC-7R13": (1, 0)}),
        ("demo", {"H100-SXM5-80GB": (10, 8), "L40S": (4, 8), "A10G": (4, 4), "Xeon-8488C": (3, 0)}),
    ],
)
def test_profiles_become_the_pools_that_they_are(
    profile: str, expected: dict[str, tuple[int, int]]
) -> None:
    found = of_profile(profile)
    shape = {name: (len(p.usable_nodes), p.accelerators_per_node) for name, p in found.items()}
    assert shape == expected


@pytest.mark.parametrize(
    ("profile", "roles"),
    [
        ("gke-a3-g2", {"H100-SXM5-80GB": "Interconnect", "L4": "MemoryBandwidth"}),
        ("eks-p5-g6", {"H100-SXM5-80GB": "Interconnect", "L4": "Balanced"}),
        ("aks-nd", {"H100-SXM5-80GB": "Interconnect", "A100-PCIE-80GB": "MemoryBandwidth"}),
        ("bare-h200-l40s", {"H200-SXM-141GB": "Interconnect", "L40S": "Balanced"}),
        ("mixed-mi300x-nvidia", {"MI300X": "Interconnect", "T4": "MemoryBandwidth"}),
        ("cpu-only", {"Xeon-8488C": "Cpu"}),
        (
            "demo",
            {"H100-SXM5-80GB": "Interconnect", "L40S": "MemoryBandwidth", "A10G": "Balanced"},
        ),
    ],
)
def test_roles_of_the_profiles(profile: str, roles: dict[str, str]) -> None:
    found = of_profile(profile)
    assert {name: found[name].role for name in roles} == roles
    assert all(found[name].role_reason for name in roles)


@pytest.mark.parametrize("profile", CLEAN)
def test_clean_profiles_leave_no_hardware_unknown(profile: str) -> None:
    for pool in all_pools(profiles.render(profile)):
        assert condition(pool, "HardwareKnown")[:2] == (True, "Known")
        assert pool.unusable_reason is None


@pytest.mark.parametrize("profile", CLEAN)
def test_clean_profiles_have_a_price(profile: str) -> None:
    for pool in all_pools(profiles.render(profile)):
        assert pool.price is not None
        assert pool.price.source


@pytest.mark.parametrize("profile", profiles.names())
def test_a_discovered_pool_selects_its_nodes_and_no_others(profile: str) -> None:
    nodes = profiles.render(profile)
    labels = {each["metadata"]["name"]: each["metadata"]["labels"] for each in nodes}
    for pool in all_pools(nodes):
        chosen = {
            name
            for name, own in labels.items()
            if selects(pool.node_selector, own) and admits(pool.node_expressions, own)
        }
        assert chosen == {each.name for each in pool.nodes}


@pytest.mark.parametrize("profile", profiles.names())
def test_every_node_is_in_a_pool(profile: str) -> None:
    nodes = profiles.render(profile)
    found = all_pools(nodes, profiles.pools(profile))
    assert {each.name for pool in found for each in pool.nodes} == {
        each["metadata"]["name"] for each in nodes
    }


@pytest.mark.parametrize("profile", profiles.names())
def test_names_are_dns_labels_and_told_apart(profile: str) -> None:
    names = [pool.name for pool in all_pools(profiles.render(profile), profiles.pools(profile))]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", name) for name in names)


@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(profile=st.sampled_from(profiles.names()), data=st.data())
def test_the_order_of_nodes_and_pools_changes_nothing(profile: str, data: st.DataObject) -> None:
    nodes, declared = profiles.render(profile), profiles.pools(profile)
    shuffled = data.draw(st.permutations(nodes)), data.draw(st.permutations(declared))
    assert all_pools(*shuffled) == all_pools(nodes, declared)


def test_a_name_outlives_its_nodes() -> None:
    before = only_pool([node("a", H100, gpus=8), node("b", H100, gpus=8)])
    after = only_pool([node("c", H100, gpus=7)])
    assert before.name == after.name
    assert before.name.startswith("h100-sxm5-80gb-8-")


@pytest.mark.parametrize(
    "change",
    [
        {MACHINE: "p5.48xlarge"},
        {"karpenter.sh/capacity-type": "spot"},
        {"eks.amazonaws.com/nodegroup": "other"},
        {"nvidia.com/gpu.product": "NVIDIA-H200", "nvidia.com/gpu.memory": "143771"},
    ],
    ids=str,
)
def test_what_sets_nodes_apart_sets_pools_apart(change: dict[str, str]) -> None:
    plain, other = node("a", H100, gpus=8), node("b", H100 | change, gpus=8)
    assert len(all_pools([plain, other])) == 2


@pytest.mark.parametrize(
    ("name", "reason", "words"),
    [
        ("unknown-", "UnknownHardware", "no label names the device"),
        ("nvidia-z9000-", "UnknownHardware", "NVIDIA-Z9000-SXM9-999GB"),
        ("h100-8-", "UnknownHardware", "can be any of"),
        ("nvidia-h100-80gb-hbm3-", "ConflictingLabels", "but"),
    ],
)
def test_dirty_labels_stop_the_pool_in_words(name: str, reason: str, words: str) -> None:
    found = all_pools(profiles.render("dirty-labels"))
    stopped = [pool for pool in found if pool.name.startswith(name)]
    assert stopped
    for pool in stopped:
        assert condition(pool, "HardwareKnown")[:2] == (False, reason)
        assert condition(pool, "Ready")[:2] == (False, reason)
        assert words in condition(pool, "HardwareKnown")[2]
        assert (pool.machine, pool.accelerator, pool.role, pool.price) == (None,) * 4
        assert pool.unusable_reason
        assert not pool.usable_nodes


def test_a_node_without_its_plugin_is_no_capacity_and_no_cpu_node() -> None:
    pool = only_pool([node("a", {MACHINE: "p5.48xlarge"})])
    assert (pool.accelerator, pool.accelerators_per_node) == ("H100-SXM5-80GB", 8)
    assert pool.nodes[0].unusable_reason == (
        "advertises none of its 8 nvidia.com/gpu: no device plugin runs there"
    )
    assert condition(pool, "Ready")[:2] == (False, "NoUsableNodes")


def test_lost_devices_are_told_and_the_rest_is_used() -> None:
    pool = only_pool([node("a", H100, gpus=8), node("b", H100, gpus=6)])
    assert [each.accelerators for each in pool.usable_nodes] == [8, 6]
    assert condition(pool, "DevicesHealthy")[:2] == (False, "DevicesMissing")
    assert "b has 6 of 8" in condition(pool, "DevicesHealthy")[2]


def test_mig_slices_are_pools_of_their_own() -> None:
    found = {pool.accelerator: pool for pool in all_pools(profiles.render("dirty-mig"))}
    slice_ = found["H100-SXM5-80GB-MIG-3g.40gb"]
    assert slice_.is_mig
    assert slice_.resource == "nvidia.com/mig-3g.40gb"
    assert slice_.machine is not None
    assert slice_.machine.interconnect.domain_accelerators == 1
    assert slice_.machine.device.memory_bytes == 40448 * 2**20
    assert slice_.machine.device.memory_bandwidth_bytes_per_second == 3350e9 / 2
    assert not found["H100-SXM5-80GB"].is_mig


def test_a_node_cut_for_several_pools_is_paid_once() -> None:
    found = [pool for pool in all_pools(profiles.render("dirty-mig")) if "mixed" in _nodes(pool)]
    prices = [pool.price.per_node_hour for pool in found if pool.price]
    assert len(prices) == 3
    devices = 4 + 14 // 7 + 4 // 2
    assert sum(prices) == pytest.approx(devices * 6.88)


def test_shared_devices_are_not_used() -> None:
    found = all_pools(profiles.render("dirty-shared"))
    shared = [pool for pool in found if pool.unusable_reason]
    assert len(shared) == len(found) - 1
    for pool in shared:
        assert condition(pool, "Ready")[:2] == (False, "SharedDevices")
        assert sum(each.accelerators for each in pool.nodes) in (1, 4, 8)


def test_the_state_of_nodes_is_told_node_by_node() -> None:
    found = all_pools(profiles.render("dirty-state"), profiles.pools("dirty-state"))
    reasons = {each.name: each.unusable_reason for each in found[0].nodes}
    assert reasons == {
        "ready-0": None,
        "ready-1": None,
        "short-0": None,
        "cordoned-0": "is cordoned",
        "not-ready-0": "is NotReady (NodeStatusUnknown)",
        "reserved-0": "has the taint dedicated=other-team:NoSchedule, which nothing tolerates",
        "none-left-0": "advertises none of its 8 nvidia.com/gpu: no device plugin runs there",
    }


def test_an_unknown_cpu_is_the_weakest_and_says_so() -> None:
    pool = only_pool([node("a")])
    assert pool.accelerator == "CPU"
    status, reason, message = condition(pool, "HardwareEstimated")
    assert (status, reason) == (True, "UnknownCpu")
    assert "EPYC-7R13" in message


def test_cpu_figures_follow_the_node() -> None:
    pool = only_pool([node("a", {MACHINE: "m7i.16xlarge"})])
    assert pool.machine is not None
    assert pool.machine.device.cores == 32, "64 vCPUs are 32 cores of two threads"
    assert pool.machine.host.cores == 64, "pods ask for threads"
    assert pool.machine.device.memory_bytes == 256 * 2**30


def test_ridge_points_are_peak_over_bandwidth() -> None:
    pool = only_pool([node("a", H100, gpus=8)])
    assert pool.ridge_points["bf16"] == pytest.approx(295.2, abs=0.1)
    assert "fp4" not in pool.ridge_points


def test_shipped_prices_are_dollars() -> None:
    assert only_pool([node("a", H100, gpus=8)], currency="EUR").price is None


def test_no_nodes_no_pools() -> None:
    assert all_pools([]) == ()


def _nodes(pool: Pool) -> Any:
    return " ".join(each.name for each in pool.nodes)
