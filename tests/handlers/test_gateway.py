"""A service behind a gateway: it sleeps only while requests are held, and wakes for the first."""

from __future__ import annotations

import asyncio
import copy
import itertools

import pytest

from poolwise.cluster import metric_table as table
from poolwise.cluster.metric_table import Definition
from poolwise.cluster.resources import EVENTS, PODS
from poolwise.handlers.workload_series import samples_of_each
from poolwise.plan.signals.adapters import Fault
from poolwise.plan.status.explain import explain
from tests.handlers.fleet import Clock
from tests.handlers.gateway import (
    HOLDS,
    OURS,
    Fronted,
    inference_pool,
    old_inference_pool,
    picker_pod,
    picker_service,
    queue,
)
from tests.handlers.shell import chat_service, condition, h100_node
from tests.handlers.test_overflow import Wishes, a100_node
from tests.plan.gateway.told import router

UNAUTHORISED = Fault("answers HTTP 401 instead of metrics", asks_for_login=True)
IDLE_LOOKS = 70
"""Five minutes in which a process has only just met the service, and five in which it is idle."""


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("poolwise.cluster.clock.utc_now", clock.utc_now)
    return clock


@pytest.fixture
def shell(clock: Clock) -> Fronted:
    found = Fronted(clock)
    found.serve_gateway()
    return found


@pytest.fixture
def asleep(shell: Fronted) -> Fronted:
    shell.looks(3)
    shell.idle()
    shell.looks(IDLE_LOOKS)
    shell.play_pods()
    shell.looks(1)
    assert replicas(shell) == 0
    return shell


def replicas(shell: Fronted) -> int:
    count = shell.child("Deployment")["spec"]["replicas"]
    assert isinstance(count, int)
    return count


def zero(shell: Fronted) -> tuple[str, str]:
    found = condition(shell.service(), "ScalesToZero")
    return found["status"], found["reason"]


def scaling(shell: Fronted):
    return shell.service()["status"]["scaling"]


def published(shell: Fronted, metric: Definition = table.SERVICE_DESIRED) -> float | None:
    samples = samples_of_each([shell.service()], shell.clock.now)
    return next((value for each, _, value in samples if each is metric), None)


def test_its_endpoint_picker_is_read_at_its_pod_and_told(shell):
    shell.looks(3)
    assert set(shell.asked) == {("127.0.0.2", 9090)}
    assert zero(shell) == ("True", "HoldsRequests")
    assert scaling(shell)["gateway"]["inferencePool"] == "chat"
    assert "HoldsRequests" in shell.events()


def test_the_older_api_is_enough(clock):
    shell = Fronted(clock)
    shell.serve_gateway(old_inference_pool(), picker_service(), picker_pod(port=9191))
    shell.looks(3)
    assert set(shell.asked) == {("127.0.0.2", 9191)}
    assert zero(shell) == ("True", "HoldsRequests")


def test_what_its_clients_see_is_told_and_decides_nothing(monkeypatch):
    """Half of them wait for a second in the gateway's queue, while replicas see nothing of it."""
    told, begin = [], Clock().now
    for is_measured in (True, False):
        clock = Clock(begin)
        monkeypatch.setattr("poolwise.cluster.clock.utc_now", clock.utc_now)
        shell = Fronted(clock)
        shell.serve_gateway()
        counts = (router(100 * each, 100 * each) for each in itertools.count())
        shell.epp = (HOLDS + each for each in counts) if is_measured else HOLDS
        shell.looks(20)
        told.append((replicas(shell), scaling(shell)))
        shown = explain(shell.service())
        assert ("  gateway    TTFT p" in shown) == is_measured
    (count, measured), (other, blind) = told
    seen = measured["gateway"].pop("signals")
    assert [each["metric"] for each in seen] == ["TTFT", "Queue"]
    assert all((each["lowSeconds"], each["highSeconds"]) == (0.5, 1.0) for each in seen)
    assert (count, measured) == (other, blind)


def test_clients_of_a_gateway_before_several_services_are_nobodys(shell):
    shell.put(chat_service("a", "other"))
    shared = {"poolwise.dev/owner-kind": "InferenceService"}
    shell.serve_gateway(inference_pool(**shared), picker_service(), picker_pod())
    shell.epp = (HOLDS + router(1000 * each) for each in itertools.count())
    shell.looks(12)
    assert zero(shell) == ("False", "SharedInferencePool")
    assert "signals" not in scaling(shell)["gateway"]


def test_latencies_that_are_nonsense_are_told_and_hold_nobody_up(shell):
    shell.epp = HOLDS + router(-4, 4)
    shell.looks(10)
    problem = scaling(shell)["gateway"]["problem"]
    assert problem.startswith("chat-epp-0: llm_d_epp_") and "-4 observations" in problem
    assert problem in explain(shell.service())
    assert zero(shell) == ("True", "HoldsRequests")
    shell.epp = HOLDS
    shell.looks(10)
    assert "problem" not in scaling(shell)["gateway"]


def test_an_idle_service_sleeps_and_says_so(asleep):
    assert zero(asleep) == ("True", "Asleep")
    ready = condition(asleep.service(), "Ready")
    assert (ready["status"], ready["reason"]) == ("True", "ScaledToZero")
    assert condition(asleep.service(), "Stalled")["status"] == "False"
    assert condition(asleep.service(), "MetricsAvailable")["reason"] == "ScaledToZero"
    assert {"ScaledDown", "Asleep"} <= set(asleep.events())
    assert asleep.child("PodDisruptionBudget", "policy/v1")["spec"]["minAvailable"] == 0
    told = explain(asleep.service())
    assert "chat has no replica now, and runs on" in told
    assert "zero       no replica runs; InferencePool chat holds the next request" in told
    assert published(asleep) == 0
    assert published(asleep, table.SERVICE_HELD) == 0
    plan = asleep.service()["status"]["plan"]
    assert (plan["costPerHour"], plan["energyJoules"]) == (0, 0)


def test_a_service_whose_replica_does_not_start_is_kept_awake_until_it_is_gone(shell):
    """Asleep nobody would tell of it, and the first request would meet it."""
    shell.looks(3)
    (pod,) = shell.kube.all(PODS)[:1]
    late = copy.deepcopy(pod)
    del late["metadata"]["uid"]
    late["metadata"] |= {"name": "chat-late", "creationTimestamp": "2020-01-01T00:00:00Z"}
    late["status"]["conditions"] = []
    shell.put(late)
    shell.idle()
    shell.looks(IDLE_LOOKS)
    assert replicas(shell) == 1
    shell.kube.vanish(shell.look(late))
    shell.looks(IDLE_LOOKS)
    assert replicas(shell) == 0


def test_looks_that_say_the_same_of_a_sleeper_write_nothing(asleep):
    asleep.looks(2)
    assert asleep.looks(10) == []


def test_what_it_gave_up_is_free_for_others(asleep):
    other = chat_service("a", "other")
    other["spec"] |= {"replicas": 8, "scaling": {"mode": "External"}}
    asleep.put(other)
    asleep.run()
    placed = condition(asleep.look(other), "Placed")
    assert placed["status"] == "True"


def test_the_first_held_request_wakes_it_without_waiting_for_a_round(asleep):
    async def watch(*told: str) -> None:
        engine = asleep.engine = await asleep._start()
        await engine.settle()
        await engine.scaler.step()
        for asleep.epp in told:
            await engine.scaler.watch()
            await engine.settle()

    asyncio.run(watch(HOLDS, queue(0)))
    assert replicas(asleep) == 0
    asyncio.run(watch(queue(0), queue(1)))
    assert replicas(asleep) == 1
    assert "ScaledUp" in asleep.events()
    ready = condition(asleep.service(), "Ready")
    assert (ready["status"], ready["reason"]) == ("False", "Starting")


def test_it_serves_again_and_costs_again(asleep):
    before = asleep.service()["status"]["plan"]
    asleep.epp = queue(2)
    asleep.looks(1)
    asleep.play_pods()
    asleep.is_busy, asleep.epp = True, queue(0)
    asleep.looks(4)
    assert replicas(asleep) == 1
    assert zero(asleep) == ("True", "HoldsRequests")
    after = asleep.service()["status"]["plan"]
    assert after["pool"] == before["pool"]
    assert after["costPerHour"] > 0 and after["energyJoules"] > 0


@pytest.mark.parametrize(
    ("breaks", "reason", "looks"),
    [
        (lambda shell: shell.kube.vanish(inference_pool()), "NothingHoldsRequests", 1),
        (lambda shell: shell.put(inference_pool("second")), "SeveralInferencePools", 1),
        (lambda shell: shell.put(inference_pool("chat", app="x")), "NothingHoldsRequests", 1),
        (lambda shell: shell.kube.vanish(picker_service()), "NoEndpointPicker", 5),
        (lambda shell: shell.put(picker_pod(is_ready=False)), "NoEndpointPicker", 5),
        (lambda shell: setattr(shell, "epp", Fault("no answer")), "EndpointPickerSilent", 5),
        (lambda shell: setattr(shell, "epp", UNAUTHORISED), "EndpointPickerRefuses", 5),
        (lambda shell: setattr(shell, "epp", "else 1\n"), "HoldingNotTold", 5),
    ],
)
def test_a_sleeper_whose_gateway_goes_comes_back_and_says_why(asleep, breaks, reason, looks):
    breaks(asleep)
    asleep.looks(looks)
    assert replicas(asleep) == 1
    assert zero(asleep) == ("False", reason)
    assert reason in asleep.events()


def test_one_look_that_fails_wakes_nobody(asleep):
    asleep.epp = Fault("no answer within 3 s")
    asleep.looks(3)
    assert replicas(asleep) == 0
    asleep.epp = HOLDS
    asleep.looks(3)
    assert (replicas(asleep), zero(asleep)) == (0, ("True", "Asleep"))


@pytest.mark.parametrize(
    ("documents", "reason"),
    [
        ([picker_service(), picker_pod()], "NothingHoldsRequests"),
        ([inference_pool(), picker_pod()], "NoEndpointPicker"),
        ([inference_pool(), picker_service()], "NoEndpointPicker"),
        (
            [inference_pool(), inference_pool("b"), picker_service(), picker_pod()],
            "SeveralInferencePools",
        ),
        ([{**inference_pool(), "spec": {"selector": "x"}}], "NothingHoldsRequests"),
        (
            [{**inference_pool(), "spec": {"selector": {"matchLabels": OURS}}}],
            "NoEndpointPicker",
        ),
    ],
)
def test_without_a_whole_gateway_one_replica_stays(clock, documents, reason):
    shell = Fronted(clock)
    shell.serve_gateway(*documents)
    shell.looks(5)
    shell.idle()
    shell.looks(IDLE_LOOKS)
    assert replicas(shell) == 1
    assert zero(shell) == ("False", reason)


@pytest.mark.parametrize("epp", [UNAUTHORISED, Fault("no answer"), "else 1\n", "<html>"])
def test_a_picker_that_does_not_tell_keeps_one_replica_and_no_other_service(clock, epp):
    shell = Fronted(clock)
    shell.serve_gateway()
    shell.put(chat_service("a", "other"))
    shell.epp = Fault("answers '<html>'") if epp == "<html>" else epp
    shell.run()
    shell.idle()
    shell.looks(IDLE_LOOKS)
    assert replicas(shell) == 1
    assert zero(shell)[0] == "False"
    other = shell.look(chat_service("a", "other"))
    assert condition(other, "Accepted")["status"] == "True"


def test_a_login_is_refused_with_what_to_do(shell):
    shell.epp = UNAUTHORISED
    shell.looks(5)
    told = condition(shell.service(), "ScalesToZero")
    assert told["reason"] == "EndpointPickerRefuses"
    assert "HTTP 401" in told["message"]
    assert "--metrics-endpoint-auth=false" in told["message"]


def test_a_minimum_above_zero_is_said(clock):
    shell = Fronted(clock, minReplicas=1)
    shell.serve_gateway()
    shell.idle()
    shell.looks(IDLE_LOOKS)
    assert replicas(shell) == 1
    assert zero(shell) == ("False", "MinimumIsAboveZero")


def test_who_does_not_ask_for_it_never_sleeps(clock):
    shell = Fronted(clock, scaleToZero=False)
    shell.serve_gateway()
    shell.idle()
    shell.looks(IDLE_LOOKS)
    assert replicas(shell) == 1


def test_two_services_behind_one_pool_share_it_and_neither_sleeps(clock):
    shell = Fronted(clock)
    shared = {"poolwise.dev/owner-kind": "InferenceService"}
    shell.serve_gateway(inference_pool(**shared), picker_service(), picker_pod())
    shell.put(chat_service("a", "other"))
    shell.run()
    shell.idle()
    shell.looks(IDLE_LOOKS)
    assert replicas(shell) == 1
    assert zero(shell) == ("False", "SharedInferencePool")


def test_a_request_in_the_queue_is_no_idleness(shell):
    shell.epp = queue(1)
    shell.looks(3)
    shell.idle()
    shell.looks(IDLE_LOOKS)
    assert replicas(shell) == 1


def test_where_others_set_the_number_zero_is_told_and_followed(clock):
    shell = Fronted(clock, mode="External")
    shell.serve_gateway()
    shell.looks(3)
    shell.idle()
    shell.looks(IDLE_LOOKS)
    assert (published(shell), replicas(shell)) == (0, 1)
    told = copy.deepcopy(shell.service())
    told["spec"]["replicas"] = 0
    shell.put(told)
    shell.run()
    shell.play_pods()
    shell.looks(2)
    assert (published(shell), replicas(shell)) == (0, 0)
    assert zero(shell) == ("True", "Asleep")
    shell.epp = queue(2)
    shell.looks(1)
    assert (published(shell), replicas(shell)) == (1, 0)


def test_a_new_process_knows_what_a_start_takes_and_wakes_nobody(asleep):
    before = scaling(asleep)["gateway"]["wakeUpSeconds"]
    asleep.run()
    asleep.looks(1)
    assert scaling(asleep)["gateway"]["wakeUpSeconds"] == before
    assert replicas(asleep) == 0


def test_without_room_a_request_waits_and_everybody_is_told(asleep):
    other = chat_service("a", "other")
    other["spec"] |= {"replicas": 8, "scaling": {"mode": "External"}}
    asleep.put(other)
    asleep.run()
    asleep.epp = queue(2)
    asleep.looks(3)
    assert replicas(asleep) == 0
    assert condition(asleep.service(), "ScalingActive")["reason"] == "AtCapacity"
    ready = condition(asleep.service(), "Ready")
    assert (ready["status"], ready["reason"]) == ("False", "AtCapacity")
    asleep.put(h100_node(name="m"))
    asleep.looks(2)
    assert replicas(asleep) == 1


def test_whose_pool_goes_while_it_sleeps_is_placed_anew(asleep):
    node = h100_node(name="n")
    asleep.put(a100_node())
    asleep.run()
    assert replicas(asleep) == 0
    before = asleep.service()["status"]["plan"]["pool"]
    asleep.kube.vanish(node)
    asleep.run()
    asleep.run()
    assert asleep.service()["status"]["plan"]["pool"] != before
    assert replicas(asleep) == 1


def test_an_edit_wakes_it(asleep):
    found = copy.deepcopy(asleep.service())
    found["spec"]["engine"] = {"type": "vllm", "args": ["--enable-prefix-caching"]}
    asleep.put(found)
    asleep.run()
    asleep.run()
    assert replicas(asleep) == 1


def test_a_gateway_routes_by_what_replicas_have_to_do(clock, monkeypatch):
    wishes = Wishes(monkeypatch)
    shell = Fronted(clock, maxReplicas=20)
    shell.serve_gateway()
    shell.put(a100_node())
    shell.run()
    wishes.number = 10
    shell.looks(4)
    assert wishes.services[-1].is_even is False
    shell.kube.vanish(inference_pool())
    shell.looks(3)
    assert wishes.services[-1].is_even is True


def test_events_are_told_once(asleep):
    counts = [each["reason"] for each in asleep.kube.all(EVENTS)]
    assert counts.count("HoldsRequests") == 1
    assert counts.count("Asleep") == 1
