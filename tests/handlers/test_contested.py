"""Services that another autoscaler scales too: what it sets counts, as far as there is room."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from poolwise.cluster.resources import AUTOSCALERS, PODS
from poolwise.plan.decision import Key, Kind
from poolwise.plan.names import PAUSED, PLACEMENT
from poolwise.plan.records.placement_record import parse
from tests.handlers.shell import Shell, chat_service, condition, h100_node, training_job
from tests.handlers.test_overflow import a100_node, replicas
from tests.handlers.test_scaling import Scaled, deployment, groups_set_by_others, hpa, service

POOL = {
    "apiVersion": "poolwise.dev/v1alpha1",
    "kind": "AcceleratorPool",
    "metadata": {"name": "h100-sxm5-80gb-8-8ef7f"},
}
CHAT = Key(Kind.INFERENCE_SERVICE, "a", "chat")


def cluster(nodes: int = 1, **spec: Any) -> Scaled:
    """With one service of one replica, that somebody else scales too."""
    shell, chat = Scaled(), chat_service("a", "chat")
    chat["spec"] |= spec
    shell.put(*(h100_node(name=f"n{index}") for index in range(nodes)), chat)
    shell.run()
    shell.answer("n0")
    shell.put(hpa())
    shell.looks()
    return shell


def set_by_others(shell: Shell, count: int) -> None:
    live = deployment(shell)
    shell.put({**live, "spec": {**live["spec"], "replicas": count}})


def with_pods(shell: Shell, count: int, node: str) -> None:
    """So many more on a node, as the scheduler may have bound them."""
    first = next(each for each in shell.kube.all(PODS) if each["metadata"]["name"] == "chat-0")
    for index in range(1, count + 1):
        pod = copy.deepcopy(first)
        del pod["metadata"]["uid"]
        pod["metadata"]["name"] = f"chat-{index}"
        pod["spec"]["nodeName"] = node
        shell.put(pod)


def plan(shell: Shell) -> dict[str, Any]:
    found: dict[str, Any] = service(shell)["status"]["plan"]
    return found


def held(shell: Shell) -> tuple[int | None, dict[str, int]]:
    """Replicas, and accelerators by node, as its record says."""
    record = parse(deployment(shell)["metadata"]["annotations"][PLACEMENT], CHAT)
    assert record is not None
    return record.replicas, dict(record.claim.accelerators_by_node)


def free(shell: Shell) -> int:
    return int(shell.look(POOL)["status"]["free"])


def test_what_another_autoscaler_sets_is_what_is_told_and_held():
    shell = cluster()
    price, joules = plan(shell)["costPerHour"], plan(shell)["energyJoules"]
    set_by_others(shell, 4)
    shell.looks()
    status = service(shell)["status"]
    assert (plan(shell)["replicas"], plan(shell)["costPerHour"]) == (4, 4 * price)
    assert plan(shell)["energyJoules"] == pytest.approx(4 * joules, rel=1e-3)
    assert status["observed"]["accrued"]["perHour"]["cost"] == 4 * price
    assert status["scaling"]["desiredReplicas"] == 4
    assert status["scaling"]["reason"].startswith("4, as set by HorizontalPodAutoscaler theirs")
    assert "costPerHour" not in status["scaling"]
    assert status["scaling"]["decisions"] == []
    assert held(shell) == (4, {"n0": 4})
    assert free(shell) == 4
    assert deployment(shell)["spec"]["replicas"] == 4
    assert shell.looks() == []


@pytest.mark.parametrize("count", [0, 1, 2])
def test_what_it_takes_away_is_free_for_others(count):
    shell = cluster()
    set_by_others(shell, 8)
    shell.looks()
    assert free(shell) == 0
    set_by_others(shell, count)
    shell.looks()
    assert (
        plan(shell)["replicas"] == service(shell)["status"]["scaling"]["desiredReplicas"] == count
    )
    assert held(shell)[0] == count
    assert free(shell) == 8 - max(count, 1)  # its first pod runs still
    assert shell.looks() == []


def test_what_has_no_room_is_neither_held_nor_paid():
    shell = cluster()
    price = plan(shell)["costPerHour"]
    set_by_others(shell, 20)
    shell.looks()
    assert (plan(shell)["replicas"], plan(shell)["costPerHour"]) == (8, 8 * price)
    assert service(shell)["status"]["scaling"]["desiredReplicas"] == 20
    assert deployment(shell)["spec"]["replicas"] == 20
    assert shell.looks() == []


def test_pods_that_are_bound_already_are_counted_once_and_where_they_are():
    shell = cluster(nodes=2)
    set_by_others(shell, 6)
    with_pods(shell, 5, "n1")
    shell.looks()
    assert held(shell) == (6, {"n0": 1, "n1": 5})
    assert free(shell) == 10
    set_by_others(shell, 3)
    shell.looks()
    assert held(shell) == (3, {"n1": 3})
    assert plan(shell)["replicas"] == 3


def test_limits_of_the_spec_bound_poolwise_and_not_others():
    shell = cluster(scaling={"minReplicas": 1, "maxReplicas": 2})
    set_by_others(shell, 5)
    shell.looks()
    assert plan(shell)["replicas"] == deployment(shell)["spec"]["replicas"] == 5


def test_in_the_mode_external_a_number_on_the_child_counts_before_that_of_the_spec():
    shell = cluster(replicas=2, scaling={"mode": "External", "maxReplicas": 9})
    set_by_others(shell, 3)
    shell.looks()
    assert plan(shell)["replicas"] == deployment(shell)["spec"]["replicas"] == 3
    assert condition(service(shell), "ScalingActive")["reason"] == "AutoscalerConflict"


def test_poolwise_goes_on_from_that_number_once_it_is_alone():
    shell = cluster()
    set_by_others(shell, 4)
    shell.looks()
    shell.kube.vanish(hpa())
    shell.looks()
    assert deployment(shell)["spec"]["replicas"] == plan(shell)["replicas"] == 4


def test_what_others_set_on_a_paused_service_is_promised_to_nobody():
    shell = cluster()
    live = service(shell)
    shell.put({**live, "metadata": {**live["metadata"], "annotations": {PAUSED: "true"}}})
    set_by_others(shell, 4)
    job = training_job("a", "train", 6)
    shell.put(job)
    shell.looks()
    assert condition(shell.look(job), "Placed")["status"] == "False"


def test_a_number_of_before_is_not_carried_out_any_more():
    """That of the last look, until the next one sees that somebody else scales too."""
    shell = cluster()
    set_by_others(shell, 4)

    def tell():
        shell.engine.planner._cache.scaling[CHAT] = 2
        shell.engine.planner.want(CHAT)

    shell.run(tell)
    assert plan(shell)["replicas"] == deployment(shell)["spec"]["replicas"] == 4


@pytest.mark.parametrize("count", [1, 3])
def test_a_spec_that_moves_meanwhile_brings_no_replicas_of_its_own(count):
    shell = cluster(replicas=1, scaling={"mode": "External", "maxReplicas": 20})
    set_by_others(shell, count)
    shell.looks()
    shell.put(a100_node())
    live = service(shell)
    run = {**live["spec"].get("run", {}), "env": [{"name": "A", "value": "1"}]}
    shell.put({**live, "spec": {**live["spec"], "replicas": 12, "run": run}})
    shell.looks()
    assert replicas(shell) == (count, [])
    [container] = deployment(shell)["spec"]["template"]["spec"]["containers"]
    assert {"name": "A", "value": "1"} in container["env"]
    assert shell.looks() == []


def test_a_spec_that_moves_meanwhile_gives_nothing_of_what_runs_to_others():
    shell = cluster(replicas=1, scaling={"mode": "External", "maxReplicas": 20})
    set_by_others(shell, 8)
    shell.looks()
    live, job = service(shell), training_job("a", "train", 8)
    run = {**live["spec"].get("run", {}), "env": [{"name": "A", "value": "1"}]}
    shell.put({**live, "spec": {**live["spec"], "run": run}}, job)
    shell.run()
    assert condition(shell.look(job), "Placed")["status"] == "False"
    assert held(shell) == (8, {"n0": 8})


@pytest.mark.parametrize("rate", ["180", "300"])
@pytest.mark.parametrize("count", [1, 3])
def test_in_the_mode_direct_a_larger_peak_brings_none_either(count, rate):
    """Not even for one pass: nobody is to hold them, and others would be told to wait for them."""
    shell = cluster(scaling={"maxReplicas": 20})
    set_by_others(shell, count)
    shell.looks()
    price, live, job = plan(shell)["costPerHour"], service(shell), training_job("a", "train", 5)
    told: list[Any] = []

    def note(write: str) -> None:
        if write == "patch status inferenceservices/chat":
            told.append((plan(shell)["replicas"], plan(shell)["costPerHour"]))
        if write == "patch status trainingjobs/train":
            told.append(condition(shell.look(job), "Placed")["status"])

    shell.kube.after_write = note
    traffic = {**live["spec"]["traffic"], "requestsPerSecond": rate}
    shell.put(job, {**live, "spec": {**live["spec"], "traffic": traffic}})
    shell.run()
    assert set(told) == {(count, price), "True"}
    assert held(shell) == (count, {"n0": count})


def test_in_the_mode_external_nothing_is_spread_over_pools_meanwhile():
    shell = cluster(replicas=12, scaling={"mode": "External", "maxReplicas": 20})
    set_by_others(shell, 3)
    shell.looks()
    shell.put(a100_node())
    shell.looks()
    assert replicas(shell) == (3, [])


def test_replicas_over_nodes_are_counted_in_groups():
    shell, before = groups_set_by_others()
    shell.run()
    record = parse(shell.look(before)["metadata"]["annotations"][PLACEMENT], CHAT)
    assert record is not None
    assert record.replicas == plan(shell)["replicas"] == 2
    assert len(record.claim.accelerators_by_node) == 4
    assert free(shell) == 0


def test_an_autoscaler_that_sets_what_there_is_already_changes_nothing():
    """The digest of what is applied is of the same fields, whoever gave the number."""
    shell = Scaled()
    shell.put(h100_node(name="n0"), chat_service("a", "chat"))
    shell.run()
    shell.put(hpa())
    assert [write for write in shell.run() if "deployments" in write] == []


def test_once_the_other_autoscaler_is_gone_what_had_no_room_goes_at_once():
    """Nothing is decided anew by it, and the resync is minutes away."""
    shell = cluster()
    set_by_others(shell, 9)
    shell.run()
    [theirs] = shell.kube.all(AUTOSCALERS)
    assert deployment(shell)["spec"]["replicas"] == 9
    shell.run(lambda: shell.kube.vanish(theirs))
    assert deployment(shell)["spec"]["replicas"] == 8
