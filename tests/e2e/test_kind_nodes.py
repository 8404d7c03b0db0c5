"""Which hardware real nodes are given, and what is patched when they lose it."""

from __future__ import annotations

from typing import Any

import pytest

from e2e import profiles
from e2e.errors import HarnessError
from e2e.kind.nodes import Hardware, assign, changes, hardware_of, status_changes, workers

GPU = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
NOT_READY = {"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}
H100 = Hardware({"nvidia.com/gpu.product": "H100"}, (GPU,), {"nvidia.com/gpu": "8"})
NOTHING = Hardware()


def node(
    labels: dict[str, str] | None = None,
    taints: list[dict[str, str]] | None = None,
    resources: dict[str, str] | None = None,
    name: str = "worker",
) -> dict[str, Any]:
    amounts = {"cpu": "2", "memory": "16Gi", **(resources or {})}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels or {}, "resourceVersion": "7"},
        "spec": {"taints": taints or []},
        "status": {"capacity": amounts, "allocatable": dict(amounts)},
    }


def test_a_profile_gives_what_no_kubelet_tells_of_itself() -> None:
    given = hardware_of(profiles.render("kind")[0])
    assert given.labels["nvidia.com/gpu.product"] == "NVIDIA-H100-80GB-HBM3"
    assert not [key for key in given.labels if key.startswith("kubernetes.io/")]
    assert given.resources == {"nvidia.com/gpu": "8", "rdma/rdma_shared_device_a": "63"}
    assert given.taints == (GPU,)


def test_the_profile_fits_on_the_workers_of_the_configuration() -> None:
    names = [f"worker{number}" for number in range(1, 5)]
    given = assign(profiles.render("kind"), names)
    assert [given[name].resources.get("nvidia.com/gpu") for name in names] == ["8", "8", "8", None]


def test_fewer_workers_than_nodes_are_refused() -> None:
    with pytest.raises(HarnessError, match="the profile has 4 nodes, the cluster 1 workers"):
        assign(profiles.render("kind"), ["worker"])


def test_a_control_plane_is_no_worker() -> None:
    control_plane = node({"node-role.kubernetes.io/control-plane": ""}, name="a")
    assert workers([node(name="c"), control_plane, node(name="b")]) == ["b", "c"]


def test_a_bare_node_gets_all() -> None:
    assert changes(node(), H100, NOTHING) == {
        "metadata": {"labels": H100.labels, "resourceVersion": "7"},
        "spec": {"taints": [GPU]},
    }
    amounts = {"nvidia.com/gpu": "8"}
    assert status_changes(node(), H100, NOTHING) == {
        "status": {"capacity": amounts, "allocatable": amounts}
    }


def test_a_node_that_has_all_is_left_alone() -> None:
    full = node(dict(H100.labels), [NOT_READY, GPU], {"nvidia.com/gpu": "8"})
    assert changes(full, H100, H100) == {}
    assert status_changes(full, H100, H100) == {}


def test_what_a_kubelet_resets_is_given_again() -> None:
    reset = node(dict(H100.labels), [GPU], {"nvidia.com/gpu": "0"})
    assert changes(reset, H100, H100) == {}
    assert status_changes(reset, H100, H100)["status"]["capacity"] == {"nvidia.com/gpu": "8"}


def test_what_is_not_wanted_any_more_is_taken_back_and_nothing_else() -> None:
    full = node({"own": "1", **H100.labels}, [NOT_READY, GPU], {"nvidia.com/gpu": "8"})
    patch = changes(full, NOTHING, H100)
    assert patch["metadata"]["labels"] == {"nvidia.com/gpu.product": None}
    assert patch["spec"]["taints"] == [NOT_READY]
    gone = {"nvidia.com/gpu": None}
    assert status_changes(full, NOTHING, H100)["status"] == {"capacity": gone, "allocatable": gone}
