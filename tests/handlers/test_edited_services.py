"""Services whose spec is edited while they run: what the edit did not ask for stays as it is."""

from __future__ import annotations

import copy
import re
from typing import Any

import pytest

from poolwise.plan.signals.adapters import Fault
from tests.handlers.shell import Shell, chat_service, condition, h100_node
from tests.handlers.test_scaling import (
    Scaled,
    decided,
    deployment,
    groups_set_by_others,
    hpa,
    service,
)


class Edited(Scaled):
    """One whose spec is edited while a process looks."""

    looks_left: int | None = None

    def edit_after(self, looks: int) -> None:
        """One process that looks so many times, sees the edit, and looks on."""
        self.looks_left = looks
        self.looks(looks + 3)

    def wait(self) -> None:
        if self.looks_left == 0:
            edit(self)
        if self.looks_left is not None:
            self.looks_left -= 1


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Edited:
    """One service that the load has scaled to three replicas, where its spec alone asks for one."""
    shell = Edited()
    chat = chat_service("a", "chat")
    chat["spec"]["scaling"] = {"minReplicas": 1, "maxReplicas": 8}
    shell.put(h100_node(name="n"), chat)
    shell.run()
    shell.answer("n")
    wanted = decided(monkeypatch, chat=3)
    shell.looks()
    with_pods(shell, 3)
    shell.looks()
    assert deployment(shell)["spec"]["replicas"] == 3
    wanted.clear()
    return shell


def with_pods(shell: Scaled, count: int) -> None:
    """Replicas like the first."""
    [first] = [each for (kind, _, _), each in shell.kube.objects.items() if kind.kind == "Pod"]
    for index in range(1, count):
        another = copy.deepcopy(first)
        another["metadata"] |= {"name": f"chat-{index}", "uid": f"pod-{index}"}
        shell.put(another)


def edit(shell: Shell, **spec: Any) -> None:
    """As a person does; one environment variable where nothing else is said."""
    edited = copy.deepcopy(service(shell))
    edited["spec"] |= spec or {"run": {"env": [{"name": "A", "value": "b"}]}}
    edited["metadata"]["generation"] = edited["metadata"].get("generation", 1) + 1
    shell.put(edited)


def budget(shell: Scaled) -> int:
    [found] = [
        each for (kind, _, _), each in shell.kube.objects.items()
        if kind.kind == "PodDisruptionBudget"
    ]  # fmt: skip
    return int(found["spec"]["minAvailable"])


def env(shell: Scaled) -> list[str]:
    [container] = deployment(shell)["spec"]["template"]["spec"]["containers"]
    return [each["name"] for each in container.get("env", ())]


def test_replicas_stay_while_no_replica_tells_its_metrics(cluster):
    least = budget(cluster)
    cluster.fleet.looks["chat"] = Fault("no answer within 3 s")
    cluster.edit_after(5)
    assert "A" in env(cluster)
    assert deployment(cluster)["spec"]["replicas"] == 3
    assert budget(cluster) == least == 2
    assert condition(service(cluster), "MetricsAvailable")["reason"] == "MetricsBroken"


@pytest.mark.parametrize("theirs", [3, 5])
def test_replicas_stay_while_somebody_else_scales_too(cluster, theirs):
    cluster.put(hpa())
    live = deployment(cluster)
    cluster.put({**live, "spec": {**live["spec"], "replicas": theirs}})
    cluster.edit_after(3)
    assert "A" in env(cluster)
    assert deployment(cluster)["spec"]["replicas"] == theirs
    assert budget(cluster) == 2  # of the process before: this one has seen too little to tell
    assert condition(service(cluster), "ScalingActive")["reason"] == "AutoscalerConflict"


def test_replicas_stay_where_the_spec_changed_before_a_new_process_has_looked(cluster):
    edit(cluster)
    cluster.run()
    assert "A" in env(cluster)
    assert deployment(cluster)["spec"]["replicas"] == 3
    assert budget(cluster) == 2


def test_limits_of_the_edited_spec_hold_all_the_same(cluster):
    cluster.fleet.looks["chat"] = Fault("no answer within 3 s")
    edit(cluster, scaling={"minReplicas": 1, "maxReplicas": 2})
    cluster.run()
    assert deployment(cluster)["spec"]["replicas"] == 2
    edit(cluster, scaling={"minReplicas": 5, "maxReplicas": 8})
    cluster.run()
    assert deployment(cluster)["spec"]["replicas"] == 5


@pytest.mark.parametrize("looks", [0, 1, 2, 5])
def test_a_larger_peak_that_is_declared_early_is_there_and_stays(looks):
    """Nothing is let go in the first minutes, so few requests then are no word against it."""
    shell = Edited()
    chat = chat_service("a", "chat")
    chat["spec"]["scaling"] = {"minReplicas": 1, "maxReplicas": 8}
    shell.put(h100_node(name="n"), chat)
    shell.run()
    shell.answer("n")
    shell.looks(looks)
    assert deployment(shell)["spec"]["replicas"] == 1
    peak = {**service(shell)["spec"]["traffic"], "requestsPerSecond": "100"}
    edit(shell, traffic=peak)
    shell.looks(3)
    assert deployment(shell)["spec"]["replicas"] > 1


def test_what_somebody_else_scales_over_nodes_is_not_set_back_either():
    """Replicas that span nodes run in a LeaderWorkerSet."""
    shell, before = groups_set_by_others()
    shell.run(lambda: edit(shell))
    after = shell.look(before)
    assert after["spec"]["replicas"] == 2
    assert after["metadata"]["annotations"] != before["metadata"]["annotations"]


FAST = {"metric": "TTFT", "percentile": 99, "target": "1ms"}


def test_a_target_that_no_pool_keeps_is_told_with_the_floor_and_what_runs_is_looked_at(cluster):
    before = deployment(cluster)["spec"]
    edit(cluster, slo=[FAST])
    cluster.fleet.asked.clear()
    cluster.looks(4)
    found = condition(service(cluster), "SLOMet")
    assert (found["status"], found["reason"]) == ("False", "SLOUnreachable")
    assert re.search(r"TTFT p99 at one request is [\d.]+ ms, target 1 ms", found["message"])
    assert condition(service(cluster), "Placed")["reason"] == "NoFeasiblePool"
    assert condition(service(cluster), "PodsReady")["reason"] != "NoPods"
    assert condition(service(cluster), "ScalingActive")["reason"] == "FollowsLoad"
    assert service(cluster)["status"]["scaling"]["mode"] == "Direct"
    assert len({each.uid for each in cluster.fleet.asked}) == 3
    assert deployment(cluster)["spec"]["template"] == before["template"]


def test_what_runs_is_scaled_though_its_spec_has_no_place_and_nothing_else_of_it_changes(
    cluster, monkeypatch
):
    before = deployment(cluster)
    edit(cluster, slo=[FAST], run={"env": [{"name": "A", "value": "b"}]})
    wanted = decided(monkeypatch, chat=5)
    cluster.looks()
    assert deployment(cluster)["spec"]["replicas"] == 5
    assert deployment(cluster)["spec"]["template"] == before["spec"]["template"]
    assert service(cluster)["status"]["scaling"]["desiredReplicas"] == 5
    assert cluster.looks(3) == []
    assert cluster.run() == []  # a new process, which has not looked yet
    wanted["chat"] = 2
    writes = cluster.looks()
    assert writes.index("patch pods/chat-2") < writes.index("patch deployments/chat")
    assert deployment(cluster)["spec"]["replicas"] == 2
    assert budget(cluster) == 1
    cluster.put(hpa())
    wanted["chat"] = 4
    cluster.looks()
    assert deployment(cluster)["spec"]["replicas"] == 2


def test_a_spec_that_is_mended_goes_on_with_what_runs(cluster, monkeypatch):
    edit(cluster, slo=[FAST], run={"env": [{"name": "A", "value": "b"}]})
    decided(monkeypatch, chat=5)
    cluster.looks()
    edit(cluster, slo=[{**FAST, "target": "5s"}])
    cluster.run()
    assert deployment(cluster)["spec"]["replicas"] == 5
    assert "A" in env(cluster)
    assert condition(service(cluster), "Placed")["status"] == "True"


def test_a_model_that_what_runs_could_not_hold_leaves_the_number_alone(cluster, monkeypatch):
    """Nobody can tell then what one replica bears."""
    edit(cluster, model={"preset": "llama-3.1-405b", "uri": "pvc://models/405b"}, slo=[FAST])
    decided(monkeypatch, chat=8)
    cluster.looks(4)
    assert condition(service(cluster), "Placed")["status"] == "False"
    found = condition(service(cluster), "ScalingActive")
    assert (found["status"], found["reason"]) == ("False", "EarlierSpec")
    assert condition(service(cluster), "MetricsAvailable")["status"] == "True"
    assert deployment(cluster)["spec"]["replicas"] == 3
    assert service(cluster)["status"]["scaling"]["desiredReplicas"] == 3
    assert condition(service(cluster), "SLOMet")["reason"] == "NotMeasured"
    assert cluster.run() == [], "another process has not looked yet, and tells nothing else"


def test_a_spec_that_asks_for_too_much_has_its_place_once_its_load_is_known(cluster, monkeypatch):
    """Though what its load asks for is what it has."""
    decided(monkeypatch, chat=3)
    lengths = {"inputTokens": {"p50": 300, "p95": 1200}, "outputTokens": {"p50": 350, "p95": 900}}
    edit(cluster, traffic={"requestsPerSecond": "6000", **lengths})
    cluster.run()
    assert condition(service(cluster), "Placed")["status"] == "False"
    cluster.looks(4)
    assert condition(service(cluster), "Placed")["status"] == "True"


def test_a_new_service_whose_target_no_pool_keeps_is_told_so_too():
    shell = Scaled()
    chat = chat_service("a", "chat")
    chat["spec"]["slo"] = [FAST]
    shell.put(h100_node(name="n"), chat)
    shell.run()
    found = condition(service(shell), "SLOMet")
    assert (found["status"], found["reason"]) == ("False", "SLOUnreachable")
    assert condition(service(shell), "PodsReady")["reason"] == "NoPods"
    assert condition(service(shell), "MetricsAvailable")["reason"] == "NotMeasured"
