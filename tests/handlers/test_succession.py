"""Somebody declares a pool over the nodes of a service that runs: it is scaled as before, nothing
restarts, and an edit of its spec moves it to the new pool's name."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from poolwise.plan.names import POOL
from tests.handlers.shell import chat_service, condition, h100_node
from tests.handlers.test_scaling import Scaled, decided, deployment, service

OURS = {
    "apiVersion": "poolwise.dev/v1alpha1",
    "kind": "AcceleratorPool",
    "metadata": {"name": "ours"},
    "spec": {"nodeSelector": {"team": "a"}, "price": {"perNodeHour": "8"}},
}


@pytest.fixture
def cluster() -> Scaled:
    shell = Scaled()
    node = h100_node(name="n")
    node["metadata"]["labels"]["team"] = "a"
    shell.put(node, chat_service("a", "chat"))
    shell.run()
    shell.answer("n")
    shell.looks()
    return shell


def test_replicas_follow_the_load_and_no_pod_is_made_anew(cluster, monkeypatch):
    before = deployment(cluster)
    old = before["spec"]["template"]["metadata"]["labels"][POOL]
    cluster.put(copy.deepcopy(OURS))
    cluster.run()
    wanted = decided(monkeypatch, chat=3)
    cluster.looks(3)
    now = deployment(cluster)
    assert now["spec"]["replicas"] == 3
    assert now["spec"]["template"] == before["spec"]["template"]
    found = service(cluster)
    assert condition(found, "ScalingActive")["reason"] == "FollowsLoad"
    told = condition(found, "Placed")["message"]
    assert f"AcceleratorPool {old} is gone; ours has its nodes" in told
    wanted["chat"] = 1
    cluster.looks(3)
    assert deployment(cluster)["spec"]["replicas"] == 1


def test_it_costs_what_the_new_pool_says(cluster):
    cluster.put(copy.deepcopy(OURS))
    cluster.run()
    cluster.looks(3)
    status = service(cluster)["status"]
    assert status["plan"]["shape"]["tensor"] == 1
    assert status["observed"]["accrued"]["perHour"]["cost"] == pytest.approx(1.0)


def test_an_edit_of_its_spec_places_it_anew(cluster):
    cluster.put(copy.deepcopy(OURS))
    cluster.run()
    edited: dict[str, Any] = copy.deepcopy(service(cluster))
    edited["spec"]["slo"][0]["target"] = "3s"
    edited["metadata"]["generation"] = 2
    cluster.put(edited)
    cluster.run()
    assert deployment(cluster)["spec"]["template"]["metadata"]["labels"][POOL] == "ours"


def test_a_pool_that_is_deleted_again_changes_nothing(cluster, monkeypatch):
    before = deployment(cluster)
    pool = copy.deepcopy(OURS)
    cluster.put(pool)
    cluster.run()
    decided(monkeypatch, chat=2)
    cluster.looks(3)
    cluster.kube.vanish(cluster.look(pool))
    cluster.run()
    cluster.looks(3)
    now = deployment(cluster)
    assert now["spec"]["template"] == before["spec"]["template"]
    assert now["spec"]["replicas"] == 2
    assert "is gone" not in condition(service(cluster), "Placed")["message"]
