"""The loop on the fake API server: what a look at the replicas makes of them."""

from __future__ import annotations

import asyncio
import copy
import itertools
import math
from dataclasses import replace
from typing import Any

import pytest

from poolwise.cluster.clock import utc_now
from poolwise.cluster.resources import EVENTS, PODS
from poolwise.cluster.scraping import Target
from poolwise.handlers.scaling import LEAST_LOOKS
from poolwise.handlers.turn import LOOKS_UNTIL_TOLD
from poolwise.plan.conditions import timestamp
from poolwise.plan.live.leaving import DELETION_COST
from poolwise.plan.names import LEADER_WORKER_SET
from poolwise.plan.scaling import controller
from poolwise.plan.scaling.decision import Decision
from poolwise.plan.signals.adapters import Fault
from poolwise.plan.signals.sample import Sample
from tests.handlers.shell import Looking, Shell, chat_service, condition, h100_node

DEPLOYMENT = {"apiVersion": "apps/v1", "kind": "Deployment"}


class Fleet:
    """What replicas tell: ``looks`` by the service's name, else idle engines."""

    def __init__(self) -> None:
        self.looks: dict[str, Sample | Fault] = {}
        self.asked: list[Target] = []

    async def look(self, targets):
        wanted = list(targets)
        self.asked += wanted
        return {each: self._look(each) for each in wanted}

    def _look(self, target):
        service = target.replica.rpartition("-")[0]
        found = self.looks.get(service)
        if found is not None:
            return found
        now = utc_now().timestamp()
        return Sample(target.replica, now, running=0.0, waiting=0.0, finished_requests=0.0)


class Scaled(Looking):
    """A cluster whose replicas answer."""

    def __init__(self) -> None:
        super().__init__()
        self.fleet = Fleet()

    def loop(self, engine):
        return engine.scaler

    async def tell(self, targets):
        return await self.fleet.look(targets)

    def answer(self, node: str) -> None:
        """Pods of all services run, are ready, and have addresses."""
        self.start_pods(node)
        for (kind, _, _), pod in list(self.kube.objects.items()):
            if kind.kind == "Pod":
                ready = {"type": "Ready", "status": "True", "lastTransitionTime": NOW}
                status = {**pod["status"], "podIP": "127.0.0.1", "conditions": [ready]}
                self.put({**pod, "status": status})


NOW = timestamp(utc_now())
CHAT_0 = {"name": "chat-0", "namespace": "a"}


@pytest.fixture
def cluster() -> Scaled:
    shell = Scaled()
    shell.put(h100_node(name="n"), chat_service("a", "chat"), chat_service("a", "other"))
    shell.run()
    shell.answer("n")
    return shell


def service(shell: Shell, name: str = "chat") -> dict[str, Any]:
    return shell.look(chat_service("a", name))


def deployment(shell: Shell, name: str = "chat") -> dict[str, Any]:
    return shell.look({**DEPLOYMENT, "metadata": {"name": name, "namespace": "a"}})


def events(shell: Shell) -> list[str]:
    """Reasons of all that was told."""
    return [each["reason"] for each in shell.kube.all(EVENTS)]


def hpa(kind: str = "Deployment", api: str = "apps/v1") -> dict[str, Any]:
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "theirs", "namespace": "a"},
        "spec": {"scaleTargetRef": {"apiVersion": api, "kind": kind, "name": "chat"}},
    }


def groups_set_by_others() -> tuple[Shell, dict[str, Any]]:
    """One service of one replica over two nodes, that somebody else has set to two; and what runs
    it, as it was before."""
    shell, chat = Shell(apis={LEADER_WORKER_SET: "v1"}), chat_service("a", "chat")
    chat["spec"] |= {
        "model": {"preset": "llama-3.1-405b", "uri": "pvc://models/405b"},
        "scaling": {"minReplicas": 1, "maxReplicas": 2},
    }
    shell.put(*(h100_node(name=f"n{index}") for index in range(4)), chat)
    shell.run()
    kind, api = "LeaderWorkerSet", f"{LEADER_WORKER_SET}/v1"
    name = {"name": "chat-replica", "namespace": "a"}
    groups = {"apiVersion": api, "kind": kind, "metadata": name}
    live, theirs = shell.look(groups), hpa(kind, api)
    theirs["spec"]["scaleTargetRef"]["name"] = "chat-replica"
    shell.put(theirs, {**live, "spec": {**live["spec"], "replicas": 2}})
    return shell, live


def test_replicas_cost_what_the_plan_says_that_they_do(cluster):
    cluster.looks()
    status = service(cluster)["status"]
    assert status["scaling"]["desiredReplicas"] == status["plan"]["replicas"]
    assert status["scaling"]["costPerHour"] == pytest.approx(status["plan"]["costPerHour"])


def test_replicas_that_answer_are_told_and_looks_that_say_the_same_write_nothing(cluster):
    cluster.looks()
    found = service(cluster)
    assert condition(found, "MetricsAvailable")["reason"] == "MetricsRead"
    assert condition(found, "ScalingActive")["reason"] == "FollowsLoad"
    assert found["status"]["scaling"]["mode"] == "Direct"
    assert cluster.looks(3) == []


def test_each_pod_is_asked_at_its_own_address_and_port(cluster):
    cluster.looks()
    asked = {(each.replica, each.address, each.port, each.engine) for each in cluster.fleet.asked}
    assert asked == {
        ("chat-0", "127.0.0.1", 8000, "vllm"),
        ("other-0", "127.0.0.1", 8000, "vllm"),
    }


def test_one_that_lies_holds_its_own_service_alone(cluster):
    cluster.fleet.looks["chat"] = Fault("answers '<html>'..., which is not Prometheus' text format")
    cluster.looks(LOOKS_UNTIL_TOLD - 1)
    assert condition(service(cluster), "MetricsAvailable")["status"] == "Unknown"
    before = deployment(cluster)["spec"]["replicas"]
    cluster.looks(LOOKS_UNTIL_TOLD)
    found = condition(service(cluster), "MetricsAvailable")
    assert (found["status"], found["reason"]) == ("False", "MetricsBroken")
    assert "chat-0: answers '<html>'" in found["message"]
    assert deployment(cluster)["spec"]["replicas"] == before
    assert condition(service(cluster, "other"), "MetricsAvailable")["status"] == "True"
    assert events(cluster).count("MetricsBroken") == 1
    assert cluster.looks(LOOKS_UNTIL_TOLD + 1) == []


def test_what_one_told_before_it_lied_is_not_what_is_known_of_it(cluster):
    async def run() -> list[set[str]]:
        engine = await cluster._start()
        known = []
        for answer in (None, Fault("answers HTML")):
            if answer is not None:
                cluster.fleet.looks["chat"] = answer
            await engine.settle()
            await engine.scaler.step()
            known.append({each.replica for each in engine.scaler.samples.values()})
        return known

    assert asyncio.run(run()) == [{"chat-0", "other-0"}, {"other-0"}]


def test_a_fault_with_another_number_in_it_at_each_look_is_written_once(cluster, monkeypatch):
    numbers = itertools.count(60)
    monkeypatch.setattr(
        cluster.fleet, "_look", lambda _: Fault(f"Prometheus read it {next(numbers)} s ago")
    )
    cluster.looks(LOOKS_UNTIL_TOLD)
    message = condition(service(cluster), "MetricsAvailable")["message"]
    assert message.startswith("chat-0: Prometheus read it ")
    few = cluster.looks(LOOKS_UNTIL_TOLD + 1)
    assert len(cluster.looks(LOOKS_UNTIL_TOLD + 9)) == len(few)


def test_looks_that_get_lost_are_no_news_until_they_are_several(cluster, monkeypatch):
    """Though it was the only replica: nobody has told at that look, and all is well."""
    cluster.looks()
    before = service(cluster)["status"]["conditions"]
    assert condition(service(cluster), "MetricsAvailable")["status"] == "True"
    numbers, honest = itertools.count(1), cluster.fleet._look

    def losing(target: Target) -> Sample | Fault:
        is_lost = target.replica == "chat-0" and next(numbers) > LEAST_LOOKS
        return Fault("no answer within 3 s") if is_lost else honest(target)

    monkeypatch.setattr(cluster.fleet, "_look", losing)
    cluster.looks(LEAST_LOOKS + LOOKS_UNTIL_TOLD - 1)
    assert service(cluster)["status"]["conditions"] == before
    numbers = itertools.count(1)
    cluster.looks(LEAST_LOOKS + LOOKS_UNTIL_TOLD)
    assert condition(service(cluster), "MetricsAvailable")["status"] == "False"


def test_counters_that_go_back_are_told_of_and_written_once(cluster, monkeypatch):
    served = itertools.count(1.0, -0.001)  # looks are milliseconds apart

    def falling(target: Target) -> Sample:
        now = utc_now().timestamp()
        counted = next(served) if target.replica == "chat-0" else 0.0
        return Sample(target.replica, now, running=0.0, waiting=0.0, finished_requests=counted)

    monkeypatch.setattr(cluster.fleet, "_look", falling)
    cluster.looks(LOOKS_UNTIL_TOLD + 1)
    found = condition(service(cluster), "MetricsAvailable")
    assert (found["status"], found["reason"]) == ("False", "MetricsBroken")
    assert found["message"].startswith("chat-0: the count of ended requests went back from ")
    assert condition(service(cluster), "ScalingActive")["reason"] == "MetricsBroken"
    assert condition(service(cluster, "other"), "MetricsAvailable")["status"] == "True"
    few = cluster.looks(LOOKS_UNTIL_TOLD + 2)
    assert len(cluster.looks(LOOKS_UNTIL_TOLD + 9)) == len(few)
    monkeypatch.undo()
    cluster.looks()
    assert condition(service(cluster), "MetricsAvailable")["status"] == "True"


@pytest.mark.parametrize("looks", range(1, LOOKS_UNTIL_TOLD + 2))
def test_nobody_is_taken_away_while_metrics_are_broken(cluster, monkeypatch, looks):
    """Whatever is decided: from the first failed look on, and before a condition speaks of it."""
    wanted = decided(monkeypatch, chat=3, other=3)
    cluster.looks()
    cluster.fleet.looks["chat"] = Fault("no answer within 3 s")
    wanted |= {"chat": 1, "other": 1}
    cluster.looks(looks)
    assert deployment(cluster)["spec"]["replicas"] == 3
    assert deployment(cluster, "other")["spec"]["replicas"] == (1 if looks >= LEAST_LOOKS else 3)


def test_a_decision_that_fails_keeps_the_replicas_and_the_others_going(cluster, monkeypatch, log):
    def failing(service, memory, seen):
        if service.name.endswith("/chat"):
            raise ZeroDivisionError("ours")
        return controller.decide(service, memory, seen)

    monkeypatch.setattr("poolwise.handlers.scaling.decide", failing)
    live = deployment(cluster)
    cluster.looks()
    found = condition(service(cluster), "ScalingActive")
    assert (found["status"], found["reason"]) == ("False", "DecisionFailed")
    assert "ZeroDivisionError: ours" in found["message"]
    assert condition(service(cluster), "SLOMet")["reason"] == "NotMeasured"
    assert condition(service(cluster), "MetricsAvailable")["reason"] == "MetricsRead"
    assert service(cluster)["status"]["scaling"]["desiredReplicas"] == 1
    assert deployment(cluster) == live
    assert condition(service(cluster, "other"), "ScalingActive")["status"] == "True"
    assert events(cluster).count("DecisionFailed") == 1
    assert "scaling failed on one service" in log.getvalue()
    assert cluster.looks(3) == cluster.looks(9)  # as long as it lasts, nothing is written again
    assert deployment(cluster) == live


def test_a_decision_that_fails_holds_what_there_is_until_one_does_not(cluster, monkeypatch):
    wanted = decided(monkeypatch, chat=3)
    cluster.looks()
    with monkeypatch.context() as broken:
        broken.setattr("poolwise.handlers.scaling.decide", lambda *_: 1 // 0)
        cluster.looks(4)
    assert deployment(cluster)["spec"]["replicas"] == 3
    assert service(cluster)["status"]["scaling"]["desiredReplicas"] == 3
    assert events(cluster).count("ScaledDown") == 0
    wanted["chat"] = 2
    cluster.looks()
    assert condition(service(cluster), "ScalingActive")["status"] == "True"
    assert deployment(cluster)["spec"]["replicas"] == 2


def test_another_number_goes_to_the_deployment_and_stays_without_a_restart(cluster, monkeypatch):
    wanted = decided(monkeypatch, chat=3)
    before = deployment(cluster)
    cluster.looks(LEAST_LOOKS + 2)
    after = deployment(cluster)
    assert after["spec"]["replicas"] == 3
    assert after["spec"]["template"] == before["spec"]["template"]
    assert deployment(cluster, "other")["spec"]["replicas"] == 1
    told = service(cluster)["status"]
    assert told["plan"]["replicas"] == 3
    assert told["scaling"]["decisions"][0]["to"] == 3
    assert events(cluster).count("ScaledUp") == 1
    wanted.clear()
    assert cluster.run() == []  # a new process, which has not looked yet
    assert deployment(cluster)["spec"]["replicas"] == 3


def test_what_an_update_starts_beside_the_others_is_no_replica_more(cluster):
    """Else each look that keeps the number would add one, for as long as the update takes."""
    before = cluster.look({"apiVersion": "v1", "kind": "Pod", "metadata": CHAT_0})
    new = {**before["metadata"], "name": "chat-new-0", "uid": "new", "creationTimestamp": NOW}
    cluster.put({**before, "metadata": new, "status": {"phase": "Pending"}})
    for _ in range(3):
        cluster.looks()
    assert deployment(cluster)["spec"]["replicas"] == 1
    assert service(cluster)["status"]["scaling"]["desiredReplicas"] == 1
    assert "ScaledUp" not in events(cluster)


def test_who_leaves_is_marked_before_the_number_falls(cluster, monkeypatch):
    wanted = decided(monkeypatch, chat=2)
    cluster.looks()
    first = next(
        o for (k, _, n), o in cluster.kube.objects.items() if (k.kind, n) == ("Pod", "chat-0")
    )
    second = copy.deepcopy(first)
    second["metadata"] |= {"name": "chat-1", "uid": "second"}
    cluster.put(second)
    now = utc_now().timestamp()
    cluster.fleet.looks["chat"] = Sample("chat-0", now, running=4.0, waiting=0.0)
    wanted["chat"] = 1
    writes = cluster.looks()
    marked = [each for each in writes if "pods/" in each]
    assert len(marked) == 1
    assert writes.index(marked[0]) < writes.index("apply deployments/chat")
    costs = {
        name: (pod["metadata"].get("annotations") or {}).get(DELETION_COST)
        for (kind, _, name), pod in cluster.kube.objects.items()
        if kind.kind == "Pod" and name.startswith("chat")
    }
    assert sorted(costs.values(), key=str) == ["-1", None]


def test_where_as_many_stay_nobody_is_marked_anew(cluster, monkeypatch):
    """An update is written with the number that there is: marks of before are no matter then."""
    decided(monkeypatch, chat=1)
    cluster.looks()
    pod = next(each for each in cluster.kube.all(PODS) if each["metadata"]["name"] == "chat-0")
    annotations = {**(pod["metadata"].get("annotations") or {}), DELETION_COST: "-1"}
    cluster.put({**pod, "metadata": {**pod["metadata"], "annotations": annotations}})
    chat = copy.deepcopy(service(cluster))
    chat["spec"]["run"] = {**chat["spec"].get("run", {}), "env": [{"name": "A", "value": "1"}]}
    chat["metadata"]["generation"] += 1
    cluster.put(chat)
    writes = [each for each in cluster.run() if "events" not in each]
    assert "apply deployments/chat" in writes
    assert not [each for each in writes if "pods/" in each]


def test_one_that_hangs_delays_no_other_and_no_round(cluster, monkeypatch):
    """Nor is it asked again before it has answered."""
    decided(monkeypatch, other=2)

    async def run() -> None:
        engine = await cluster._start()
        await engine.settle()
        asked, answers = list[str](), asyncio.Event()

        async def tell(targets):
            service = targets[0].replica.rpartition("-")[0]
            asked.append(service)
            if service == "chat":
                await answers.wait()
            return await cluster.fleet.look(targets)

        monkeypatch.setattr(engine.scaler, "_source", tell)
        settings = engine.scaler._settings.model_copy(update={"scaling_interval_seconds": 0.01})
        monkeypatch.setattr(engine.scaler, "_settings", settings)
        loop = asyncio.create_task(engine.scaler.run())
        async with asyncio.timeout(20):
            while asked.count("other") < 3:
                await asyncio.sleep(0.01)
            await engine.settle()
            assert deployment(cluster, "other")["spec"]["replicas"] == 2
            assert asked.count("chat") == 1
            answers.set()
            while asked.count("chat") < 3:
                await asyncio.sleep(0.01)
        loop.cancel()
        with pytest.raises(asyncio.CancelledError):
            await loop

    asyncio.run(run())


def test_a_second_autoscaler_is_refused_and_the_replicas_stay(cluster, monkeypatch):
    decided(monkeypatch, chat=3, other=2)
    cluster.put(hpa())
    cluster.looks()
    found = condition(service(cluster), "ScalingActive")
    assert (found["status"], found["reason"]) == ("False", "AutoscalerConflict")
    assert "HorizontalPodAutoscaler theirs" in found["message"]
    assert deployment(cluster)["spec"]["replicas"] == 1
    assert deployment(cluster, "other")["spec"]["replicas"] == 2


def test_one_on_the_service_has_no_effect_in_the_mode_direct_and_is_told_so(cluster, monkeypatch):
    decided(monkeypatch, chat=3)
    changed = copy.deepcopy(service(cluster))
    changed["spec"]["replicas"] = 2
    cluster.put(hpa("InferenceService", "poolwise.dev/v1alpha1"), changed)
    cluster.looks()
    told, found = service(cluster)["status"], condition(service(cluster), "ScalingActive")
    assert (found["status"], found["reason"]) == ("False", "AutoscalerConflict")
    assert "set scaling.mode to External" in found["message"]
    assert told["scaling"]["reason"].startswith("1 as before: HorizontalPodAutoscaler theirs")
    assert "left to it" not in found["message"]
    assert deployment(cluster)["spec"]["replicas"] == 1


def test_in_mode_external_the_number_is_told_and_not_set(monkeypatch):
    shell = Scaled()
    external = chat_service("a", "chat")
    external["spec"] |= {"replicas": 2, "scaling": {"mode": "External", "maxReplicas": 9}}
    shell.put(h100_node(name="n"), external)
    shell.run()
    shell.answer("n")
    decided(monkeypatch, chat=5)
    shell.put(hpa("InferenceService", "poolwise.dev/v1alpha1"))
    shell.looks()
    assert deployment(shell)["spec"]["replicas"] == 2
    found = service(shell)
    assert found["status"]["scaling"]["desiredReplicas"] == 5
    assert condition(found, "ScalingActive")["status"] == "True"


def settled(decision: Decision) -> Decision:
    """Of a controller that has looked for long."""
    return replace(decision, memory=replace(decision.memory, since_seconds=-math.inf))


def decided(monkeypatch, **wanted: int) -> dict[str, int]:
    """Have the controller want these numbers, by service, as one that has long been looking; as it
    decides where none is given."""

    def decide(service, memory, seen):
        decision = controller.decide(service, memory, seen)
        number = wanted.get(service.name.rpartition("/")[2])
        return decision if number is None else replace(settled(decision), replicas=number)

    monkeypatch.setattr("poolwise.handlers.scaling.decide", decide)
    return wanted


def test_what_a_second_autoscaler_sets_is_not_set_back(cluster):
    """Else both would start and end pods for ever."""
    cluster.put(hpa())
    cluster.looks()
    live = deployment(cluster)
    cluster.put({**live, "spec": {**live["spec"], "replicas": 4}})
    cluster.looks()
    assert deployment(cluster)["spec"]["replicas"] == 4
    assert deployment(cluster, "other")["spec"]["replicas"] == 1
    assert "ScaledUp" not in events(cluster)


def test_without_a_second_autoscaler_it_is(cluster):
    live = deployment(cluster)
    cluster.put({**live, "spec": {**live["spec"], "replicas": 4}})
    cluster.looks()
    assert deployment(cluster)["spec"]["replicas"] == 1
