from __future__ import annotations

from typing import Any

import pytest

from poolwise.plan.pools.taints import untolerated
from tests.plan.nodes_given import H100, declared, node, only_pool

NO_SCHEDULE = "NoSchedule"


def taint(key: str, value: str = "", effect: str = NO_SCHEDULE) -> dict[str, str]:
    return {"key": key, "value": value, "effect": effect}


def usable(labels: dict[str, str], *taints: dict[str, str], **spec: Any) -> bool:
    nodes = [node("n", {"own": "yes"} | labels, gpus=8, spec={"taints": list(taints)})]
    given = [declared("mine", nodeSelector={"own": "yes"}, **spec)] if spec else []
    return bool(only_pool(nodes, given).usable_nodes)


AZURE = {"kubernetes.azure.com/agentpool": "gpu"}


@pytest.mark.parametrize(
    ("labels", "key", "value"),
    [
        ({}, "nvidia.com/gpu", ""),
        ({}, "nvidia.com/gpu", "present"),
        (AZURE, "sku", "gpu"),
    ],
)
def test_the_accelerators_own_taints_are_tolerated(
    labels: dict[str, str], key: str, value: str
) -> None:
    assert usable(H100 | labels, taint(key, value))


@pytest.mark.parametrize(
    "other",
    [
        taint("node-role.kubernetes.io/control-plane"),
        taint("dedicated", "team"),
        taint("sku", "gpu"),
        taint("amd.com/gpu", "present"),
        taint("node.kubernetes.io/not-ready", effect="NoExecute"),
        taint("cloud.google.com/gke-spot", "true"),
    ],
    ids=lambda each: each["key"],
)
def test_every_other_taint_keeps_work_away(other: dict[str, str]) -> None:
    assert not usable(H100, taint("nvidia.com/gpu"), other)


@pytest.mark.parametrize(
    ("label", "value"),
    [
        ("cloud.google.com/gke-spot", "true"),
        ("cloud.google.com/gke-preemptible", "true"),
        ("kubernetes.azure.com/scalesetpriority", "spot"),
        ("oci.oraclecloud.com/oke-is-preemptible", "true"),
    ],
)
def test_the_clouds_spot_taint_is_tolerated_where_nodes_are_spot(label: str, value: str) -> None:
    assert usable(H100 | {label: value}, taint("nvidia.com/gpu"), taint(label, value))


def test_a_spot_pool_without_nodes_tolerates_what_they_will_have() -> None:
    """Or its pods would be replaced once the first node came."""
    given: dict[str, Any] = {"capacityType": "Spot", "accelerator": "H100-SXM5-80GB", "maxNodes": 4}
    azure = {"kubernetes.azure.com/agentpool": "spot"}
    empty = only_pool([], [declared("mine", nodeSelector=azure, **given)])
    labels = H100 | azure | {"kubernetes.azure.com/scalesetpriority": "spot"}
    taints = [taint("sku", "gpu"), taint("kubernetes.azure.com/scalesetpriority", "spot")]
    there = [node("n", labels, gpus=8, spec={"taints": taints})]
    grown = only_pool(there, [declared("mine", nodeSelector=azure, **given)])
    assert grown.usable_nodes
    assert empty.tolerations == grown.tolerations


def test_a_preference_keeps_nobody_away() -> None:
    assert usable(H100, taint("dedicated", "team", "PreferNoSchedule"))


def test_listed_taints_are_tolerated_and_reach_the_pods() -> None:
    listed = {"key": "dedicated", "value": "team", "effect": NO_SCHEDULE}
    assert usable(H100, taint("dedicated", "team"), tolerateTaints=[listed])
    nodes = [node("n", H100, gpus=8)]
    selector = {"nvidia.com/gpu.count": "8"}
    pool = only_pool(nodes, [declared("mine", nodeSelector=selector, tolerateTaints=[listed])])
    assert {"operator": "Equal", **listed} in pool.tolerations
    assert {"key": "nvidia.com/gpu", "operator": "Exists"} in pool.tolerations


def test_a_cpu_pool_tolerates_nothing_by_itself() -> None:
    assert only_pool([node("n")]).tolerations == ()


@pytest.mark.parametrize(
    ("toleration", "matches"),
    [
        ({"key": "a", "operator": "Exists"}, True),
        ({"key": "a", "operator": "Equal", "value": "b"}, True),
        ({"key": "a", "value": "b"}, True),
        ({"operator": "Exists"}, True),
        ({"key": "a", "operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "a", "value": "c"}, False),
        ({"key": "c", "operator": "Exists"}, False),
        ({"value": "b"}, False),
    ],
    ids=str,
)
def test_tolerations_match_as_the_scheduler_matches(
    toleration: dict[str, str], matches: bool
) -> None:
    found = untolerated([taint("a", "b")], [toleration])
    assert found == (None if matches else "a=b:NoSchedule")
