"""Numbers of replicas that HPA, KEDA or people set: followed as far as there is room, and whatever
becomes of them, the service is looked at."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from poolwise.cluster import metric_table as table
from poolwise.handlers.turn import LOOKS_UNTIL_TOLD
from poolwise.handlers.workload_series import samples_of_each
from poolwise.plan.signals.adapters import Fault
from tests.handlers.fleet import Clock, Served
from tests.handlers.shell import chat_service, condition, h100_node
from tests.handlers.test_overflow import Wishes, a100_node, parts


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("poolwise.cluster.clock.utc_now", clock.utc_now)
    return clock


@pytest.fixture
def wishes(monkeypatch: pytest.MonkeyPatch) -> Wishes:
    return Wishes(monkeypatch)


@pytest.fixture
def shell(clock: Clock) -> Served:
    """Eight accelerators."""
    return Served(clock, mode="External", maxReplicas=20)


def edit(shell: Served, **spec: Any) -> None:
    """As somebody writes the spec, or its replicas through the scale subresource."""
    found = copy.deepcopy(shell.service())
    found["spec"] |= spec
    found["metadata"]["generation"] = found["metadata"].get("generation", 1) + 1
    shell.put(found)
    shell.run()


def replicas(shell: Served) -> int:
    count = shell.child("Deployment")["spec"]["replicas"]
    assert isinstance(count, int)
    return count


def published(shell: Served) -> float | None:
    """The metric for KEDA."""
    samples = samples_of_each([shell.service()], shell.clock.now)
    return next((value for each, _, value in samples if each is table.SERVICE_DESIRED), None)


def told(shell: Served) -> tuple[str, str]:
    found = condition(shell.service(), "ScalingActive")
    return found["reason"], found["message"]


def test_no_more_is_published_than_there_is_room_for(shell, wishes):
    wishes.number = 12
    shell.looks(3)
    assert published(shell) == 8
    assert told(shell)[0] == "AtCapacity"


def test_a_number_beyond_the_room_is_followed_as_far_as_it_fits_and_told(shell, wishes):
    wishes.number = 2
    shell.looks(3)
    edit(shell, replicas=9)
    assert replicas(shell) == 8
    assert condition(shell.service(), "Placed")["status"] == "True"
    reason, message = told(shell)
    assert reason == "AtCapacity"
    assert "spec.replicas is 9" in message and "room for 8" in message
    shell.looks(3)
    assert published(shell) == 2
    wishes.number = 5
    shell.looks(3)
    assert published(shell) == 5
    edit(shell, replicas=5)
    shell.looks(3)
    assert (replicas(shell), told(shell)[0]) == (5, "FollowsLoad")


def test_what_others_free_is_taken_later(shell):
    other = chat_service("a", "other")
    other["spec"] |= {"replicas": 3, "scaling": {"mode": "External"}}
    shell.put(other)
    shell.run()
    shell.looks(3)
    edit(shell, replicas=6)
    assert (replicas(shell), told(shell)[0]) == (5, "AtCapacity")
    shell.put(h100_node(name="m"))
    shell.looks(3)
    assert (replicas(shell), told(shell)[0]) == (6, "FollowsLoad")


def test_a_number_that_an_hour_may_not_cost_is_followed_as_far_as_it_is_paid_for(shell):
    """A replica is $6.88 per hour here, and $3.43 on the pool that comes."""
    limited = {"objective": {"goal": "Cost", "maxCostPerHour": "20"}}
    edit(shell, replicas=4, **limited)
    shell.looks(3)
    message = "spec.replicas is 4, objective.maxCostPerHour pays 2"
    assert (replicas(shell), told(shell)) == (2, ("AtCostLimit", message))
    assert condition(shell.service(), "Placed")["status"] == "True"
    budget = condition(shell.service(), "WithinBudget")
    assert budget["message"] == "costs $13.76 per hour, maxCostPerHour is $20.00"
    shell.put(a100_node())
    shell.looks(3)
    assert [replicas(shell), *(each["spec"]["replicas"] for each in parts(shell))] == [2, 1]
    assert told(shell) == ("AtCostLimit", message.replace("pays 2", "pays 3"))
    edit(shell, objective={"goal": "Cost", "maxCostPerHour": "28"})
    shell.looks(3)
    assert [replicas(shell), *(each["spec"]["replicas"] for each in parts(shell))] == [4]
    assert told(shell)[0] == "FollowsLoad"


def test_a_number_beyond_the_maximum_is_cut_and_told(clock):
    shell = Served(clock, mode="External", maxReplicas=4)
    edit(shell, replicas=6)
    assert replicas(shell) == 4
    assert told(shell) == ("AtMaximum", "spec.replicas is 6, scaling.maxReplicas allows 4")
    shell.looks(3)
    assert told(shell)[0] == "AtMaximum"
    edit(shell, replicas=3)
    types = {each["type"] for each in shell.service()["status"]["conditions"]}
    assert "ScalingActive" not in types, "what was told before the edit is no more"
    shell.looks(3)
    assert (replicas(shell), told(shell)[0]) == (3, "FollowsLoad")


def test_a_number_that_is_cut_is_told_while_metrics_are_broken_too(clock, monkeypatch):
    shell = Served(clock, mode="External", maxReplicas=4)
    edit(shell, replicas=6)
    silent = Fault("no answer within 3 s")
    monkeypatch.setattr(shell.load, "_of", lambda replica: silent)
    shell.looks(LOOKS_UNTIL_TOLD + 1)
    reason, message = told(shell)
    assert reason == "MetricsBroken"
    assert message.endswith("; spec.replicas is 6, scaling.maxReplicas allows 4")
    assert shell.looks(LOOKS_UNTIL_TOLD + 1) == []


def test_a_spec_that_finds_no_place_leaves_no_service_without_looks(shell, wishes):
    wishes.number = 2
    edit(shell, replicas=6)
    shell.looks(3)
    edit(shell, accelerators={"perReplica": 2})
    assert condition(shell.service(), "Placed")["status"] == "False"
    assert replicas(shell) == 6
    wishes.number = 3
    shell.looks(3)
    assert published(shell) == 3
    edit(shell, replicas=3)
    assert condition(shell.service(), "Placed")["status"] == "True"
    assert replicas(shell) == 3


def test_in_the_mode_off_no_number_is_told(shell, wishes):
    wishes.number = 2
    shell.looks(3)
    assert published(shell) == 2
    edit(shell, scaling={"mode": "Off", "maxReplicas": 20})
    shell.looks(3)
    assert published(shell) is None
    status = shell.service()["status"]
    assert "desiredReplicas" not in status["scaling"]
    assert status["scaling"]["signals"]
    assert "ScalingActive" not in {each["type"] for each in status["conditions"]}


@pytest.mark.parametrize("mode", ["Direct", "External"])
def test_scale_to_zero_is_refused_where_nothing_holds_requests(clock, wishes, mode):
    shell = Served(clock, mode=mode, minReplicas=0, scaleToZero=True)
    shell.looks(3)
    found = condition(shell.service(), "ScalesToZero")
    assert (found["status"], found["reason"]) == ("False", "NothingHoldsRequests")
    assert "one replica at least" in found["message"]
    assert (published(shell), replicas(shell)) == (1, 1)


@pytest.mark.parametrize("scaling", [{}, {"mode": "Off", "minReplicas": 0, "scaleToZero": True}])
def test_who_does_not_ask_for_it_is_told_nothing_of_zero(clock, scaling):
    shell = Served(clock, **scaling)
    types = [each["type"] for each in shell.service()["status"]["conditions"]]
    assert "ScalesToZero" not in types


def test_a_number_of_zero_that_others_set_is_followed(clock):
    shell = Served(clock, mode="External", minReplicas=0, scaleToZero=True)
    edit(shell, replicas=0)
    assert replicas(shell) == 0


def test_room_on_further_pools_is_published_and_used(clock, wishes):
    shell = Served(clock, mode="External", maxReplicas=20)
    shell.put(a100_node())
    shell.run()
    wishes.number = 10
    for looks in (3, 4, 5):
        shell.looks(looks)
        assert published(shell) == 10
    edit(shell, replicas=10)
    assert replicas(shell) == 8
    assert [each["spec"]["replicas"] for each in parts(shell)] == [2]
    shell.looks(3)
    assert [each["spec"]["replicas"] for each in parts(shell)] == [2]
    assert published(shell) == 10
    edit(shell, replicas=11)
    assert [each["spec"]["replicas"] for each in parts(shell)] == [3]
