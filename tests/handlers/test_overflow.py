"""A service on several pools, on the fake API server: what its operator makes of looks."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest

from poolwise.plan.decision import Key, Kind
from poolwise.plan.live.leaving import DELETION_COST
from poolwise.plan.names import OVERFLOW
from poolwise.plan.scaling import controller
from poolwise.plan.scaling.decision import Remark
from poolwise.plan.scaling.service import Service
from poolwise.plan.signals.adapters import Fault
from tests.handlers.shell import Looking, chat_service, condition, h100_node
from tests.handlers.test_scaling import Scaled, deployment, hpa, service, settled

LABELS = {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB", "nvidia.com/gpu.compute.major": "8"}


def a100_node() -> dict[str, Any]:
    return h100_node(4, {**LABELS, "nvidia.com/gpu.compute.minor": "0"}, "a")


class Wishes:
    """The controller, told how many replicas to want; they go where the real one puts them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.number: int | None = None
        self.asked: list[int] = []
        self.services: list[Service] = []
        monkeypatch.setattr("poolwise.handlers.scaling.decide", self._decide)

    def _decide(self, told, memory, seen):
        decision = controller.decide(told, memory, seen)
        self.asked.append(len(told.pools))
        self.services.append(told)
        if self.number is None:
            return decision
        left, money, counts = self.number, told.most_cost_per_hour, dict[str, int]()
        for pool in told.pools:
            count = min(left, pool.most_replicas or 0)
            while count * pool.cost_per_replica_hour > money:
                count -= 1
            counts[pool.name] = count
            left, money = left - count, money - count * pool.cost_per_replica_hour
        remarks = {Remark.AT_CAPACITY: "more are needed"} if left else {}
        total = sum(counts.values())
        return replace(settled(decision), replicas=total, by_pool=counts, remarks=remarks)


@pytest.fixture
def wishes(monkeypatch: pytest.MonkeyPatch) -> Wishes:
    return Wishes(monkeypatch)


@pytest.fixture
def cluster() -> Scaled:
    shell = Scaled()
    chat = chat_service("a", "chat")
    chat["spec"]["scaling"] = {"minReplicas": 1, "maxReplicas": 8}
    shell.put(h100_node(2, name="n"), chat)
    shell.run()
    shell.put(a100_node())
    shell.run()
    shell.answer("n")
    return shell


def parts(shell: Looking) -> list[dict[str, Any]]:
    return [
        each
        for (kind, _, _), each in shell.kube.objects.items()
        if kind.kind == "Deployment" and OVERFLOW in each["metadata"]["labels"]
    ]


def replicas(shell: Scaled) -> tuple[int, list[int]]:
    return deployment(shell)["spec"]["replicas"], [
        each["spec"]["replicas"] for each in parts(shell)
    ]


def with_pods(shell: Scaled) -> None:
    """All replicas that are asked for run and are ready."""
    shell.answer("n")
    pods = {n: each for (kind, _, n), each in shell.kube.objects.items() if kind.kind == "Pod"}
    for child in (deployment(shell), *parts(shell)):
        name = child["metadata"]["name"]
        for number in range(child["spec"]["replicas"]):
            pod = copy.deepcopy(pods[f"{name}-0"])
            pod["spec"]["nodeName"] = "n" if name == "chat" else "a"
            if number:
                pod["metadata"] |= {"name": f"{name}-{number}", "uid": f"{name}-{number}"}
            shell.put(pod)


@pytest.fixture
def spread(cluster: Scaled, wishes: Wishes) -> Scaled:
    wishes.number = 4
    cluster.looks(5)
    with_pods(cluster)
    return cluster


def test_what_finds_no_room_goes_on_in_the_next_pool_and_is_told(spread, wishes):
    assert replicas(spread) == (2, [2])
    spread.looks(3)
    assert replicas(spread) == (2, [2])
    told = service(spread)["status"]["scaling"]
    assert [each["replicas"] for each in told["pools"]] == [2, 2]
    assert "beyond the room of" in told["pools"][1]["reason"]
    assert told["desiredReplicas"] == 4
    assert {each.replica.rpartition("-")[0] for each in spread.fleet.asked} == {
        "chat",
        parts(spread)[0]["metadata"]["name"],
    }
    assert spread.looks(3) == []


@pytest.mark.parametrize(
    ("limit", "further"), [("15", []), ("18", [1])], ids=["for-none", "for-one"]
)
def test_what_an_hour_may_cost_bounds_what_is_added_on_further_pools(wishes, limit, further):
    """Two replicas at $6.88 where it is placed, and each in the next pool at $3.43."""
    shell, wishes.number = Scaled(), 4
    chat = chat_service("a", "chat")
    chat["spec"] |= {
        "scaling": {"minReplicas": 1, "maxReplicas": 8},
        "objective": {"maxCostPerHour": limit},
    }
    shell.put(h100_node(2, name="n"), chat)
    shell.run()
    shell.put(a100_node())
    shell.run()
    shell.answer("n")
    shell.looks(5)
    assert replicas(shell) == (2, further)


def test_one_pool_with_room_is_never_asked_for_others(cluster, wishes):
    wishes.number = 2
    cluster.looks(4)
    assert replicas(cluster) == (2, [])
    assert set(wishes.asked) == {1}
    assert "pools" not in service(cluster)["status"]["scaling"]


def test_a_new_process_keeps_all_pools(spread, wishes):
    assert spread.run() == []
    assert replicas(spread) == (2, [2])


def test_the_further_ones_go_first_and_who_has_least_to_do_is_marked(spread, wishes):
    wishes.number = 3
    writes = spread.looks(3)
    name = parts(spread)[0]["metadata"]["name"]
    assert replicas(spread) == (2, [1])
    marked = [each for each in writes if "pods/" in each]
    assert len(marked) == 1 and f"pods/{name}-" in marked[0]
    assert writes.index(marked[0]) < writes.index(f"apply deployments/{name}")
    wishes.number = 1
    spread.looks(3)
    assert replicas(spread) == (1, [])
    assert "pools" not in service(spread)["status"]["scaling"]
    costs = [
        (pod["metadata"].get("annotations") or {}).get(DELETION_COST)
        for (kind, _, n), pod in spread.kube.objects.items()
        if kind.kind == "Pod" and n.startswith("chat-") and name not in n
    ]
    assert costs.count("-1") == 1


def test_an_autoscaler_on_a_further_deployment_is_refused(spread, wishes):
    other = hpa()
    other["spec"]["scaleTargetRef"]["name"] = parts(spread)[0]["metadata"]["name"]
    spread.put(other)
    wishes.number = 1
    spread.looks(3)
    assert condition(service(spread), "ScalingActive")["reason"] == "AutoscalerConflict"
    assert replicas(spread) == (2, [2])


def test_what_it_sets_there_is_what_that_pool_is_told_to_have(spread):
    [part] = parts(spread)
    other = hpa()
    other["spec"]["scaleTargetRef"]["name"] = part["metadata"]["name"]
    spread.put(other, {**part, "spec": {**part["spec"], "replicas": 3}})
    spread.looks(3)
    assert replicas(spread) == (2, [3])
    assert [each["replicas"] for each in service(spread)["status"]["plan"]["further"]] == [3]


def test_metrics_that_break_take_nothing_away_anywhere(spread, wishes):
    spread.looks(2)
    name = parts(spread)[0]["metadata"]["name"]
    spread.fleet.looks[name] = Fault("no answer within 3 s")
    wishes.number = 1
    spread.looks(5)
    assert replicas(spread) == (2, [2])


def bound(shell: Scaled, most: int) -> None:
    changed = copy.deepcopy(service(shell))
    changed["spec"]["scaling"] = {"minReplicas": 1, "maxReplicas": most}
    changed["metadata"]["generation"] = 2
    shell.put(changed)


@pytest.mark.parametrize(
    ("most", "left"), [(1, (1, [])), (3, (2, [1])), (4, (2, [2]))], ids=["one", "three", "four"]
)
def test_the_maximum_bounds_all_pools_also_where_none_can_be_looked_at(spread, wishes, most, left):
    wishes.number = None
    for name in ("chat", parts(spread)[0]["metadata"]["name"]):
        spread.fleet.looks[name] = Fault("no answer within 3 s")
    spread.looks(5)
    assert replicas(spread) == (2, [2])
    bound(spread, most)
    spread.run()
    assert replicas(spread) == left
    spread.looks(5)
    assert replicas(spread) == left
    told = service(spread)["status"]["scaling"]
    assert told["desiredReplicas"] == most
    assert (told["decisions"][0]["reason"] == f"scaling.maxReplicas is {most}") == (most < 4)
    assert condition(service(spread), "SLOMet")["reason"] == "NotMeasured"


def test_a_look_before_the_pass_that_carries_a_new_maximum_out_goes_by_it(spread, wishes):
    name = parts(spread)[0]["metadata"]["name"]
    spread.fleet.looks[name] = Fault("no answer within 3 s")
    waits = iter([*(4 * [lambda: None]), lambda: bound(spread, 3)])
    spread.wait = lambda: next(waits)()
    spread.looks(5)
    decided = spread.engine.scaler._looks[Key(Kind.INFERENCE_SERVICE, "a", "chat")].decision
    assert (decided.replicas, sorted(decided.by_pool.values())) == (3, [1, 2])
    assert decided.remarks[Remark.AT_MAXIMUM] == "4 would stay, maxReplicas is 3"


def test_one_pool_that_tells_nothing_keeps_no_more_than_the_maximum(spread, wishes):
    """Where the first one tells."""
    spread.looks(2)
    name = parts(spread)[0]["metadata"]["name"]
    spread.fleet.looks[name] = Fault("no answer within 3 s")
    wishes.number = 1
    bound(spread, 3)
    spread.looks(5)
    assert replicas(spread) == (2, [1])
    assert service(spread)["status"]["scaling"]["desiredReplicas"] == 3


def test_a_suspended_plan_takes_all_of_them(spread, wishes):
    changed = copy.deepcopy(service(spread))
    changed["spec"]["mode"] = "Plan"
    changed["metadata"]["generation"] = 2
    spread.put(changed)
    spread.run()
    assert parts(spread) == []


def test_what_does_not_start_on_a_further_pool_is_given_up_before_it_is_tried_anew(spread, wishes):
    name = parts(spread)[0]["metadata"]["name"]
    for (kind, _, n), pod in list(spread.kube.objects.items()):
        if kind.kind == "Pod" and n.startswith(name):
            late = copy.deepcopy(pod)
            late["metadata"]["creationTimestamp"] = "2020-01-01T00:00:00Z"
            late["status"]["conditions"] = []
            spread.put(late)
    writes = spread.looks(3)
    assert any(each.startswith("delete") and name in each for each in writes)
    assert deployment(spread)["spec"]["replicas"] == 2


def test_what_is_given_up_does_not_come_back_by_a_pass_while_it_is_written(spread, wishes):
    wishes.number = None
    given(spread, 4, generation=2)
    spread.run()
    assert replicas(spread) == (2, [2])
    [there] = parts(spread)
    apply = spread.kube.apply

    async def apply_and_plan(document, limit_seconds):
        written = await apply(document, limit_seconds)
        if document["kind"] == "Deployment":
            await spread.engine.planner.plan()
        return written

    spread.kube.apply = apply_and_plan
    given(spread, 1, generation=3)
    writes = spread.run()
    assert replicas(spread) == (1, [])
    assert f"apply deployments/{there['metadata']['name']}" not in writes


def given(shell: Scaled, count: int, generation: int) -> None:
    """What somebody sets by the scale subresource."""
    changed = copy.deepcopy(service(shell))
    changed["spec"] |= {"replicas": count, "scaling": {"mode": "External"}}
    changed["metadata"]["generation"] = generation
    shell.put(changed)


def test_nor_by_a_look_while_it_is_written(spread, wishes):
    apply, [there] = spread.kube.apply, parts(spread)

    async def apply_and_look(document, limit_seconds):
        written = await apply(document, limit_seconds)
        if document["kind"] == "Deployment":
            await spread.engine.scaler.step()
            await spread.engine.planner.plan()
        return written

    spread.kube.apply = apply_and_look
    wishes.number = 1
    writes = spread.looks(3)
    assert replicas(spread) == (1, [])
    assert f"apply deployments/{there['metadata']['name']}" not in writes
