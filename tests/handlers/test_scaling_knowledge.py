"""What looks add up to: mismatches that are told, starts that never end, and what a restarted
process goes on with."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from poolwise.plan.scaling import controller
from poolwise.plan.signals.adapters import Fault
from tests.handlers.fleet import Clock, Served
from tests.handlers.shell import condition

MINUTE = 6
"""Looks."""


@pytest.fixture
def clock(monkeypatch) -> Clock:
    made = Clock()
    monkeypatch.setattr("poolwise.cluster.clock.utc_now", made.utc_now)
    return made


@pytest.fixture
def cluster(clock) -> Served:
    return Served(clock)


@pytest.fixture
def asked(monkeypatch):
    """The memory and the replicas that each decision is made with, newest last; and the number to
    decide for, where the test wants another one."""
    seen, wanted = [], dict[str, int]()

    def decide(service, memory, look):
        seen.append((memory, look, service))
        decision = controller.decide(service, memory, look)
        return replace(decision, replicas=wanted["n"]) if "n" in wanted else decision

    monkeypatch.setattr("poolwise.handlers.scaling.decide", decide)
    return seen, wanted


def test_a_healthy_service_is_as_planned(cluster):
    cluster.looks(15 * MINUTE)
    found = condition(cluster.service(), "AsPlanned")
    assert (found["status"], found["reason"]) == ("True", "NoMismatch")
    assert "NoMismatch" not in cluster.events()


def test_full_caches_are_told_once_with_advice_and_let_go_once_they_are_gone(cluster):
    healthy = cluster.load.told
    cluster.load.told = replace(healthy, kv_cache_usage=0.97, waiting=6.0)
    cluster.looks(15 * MINUTE)
    found = condition(cluster.service(), "AsPlanned")
    assert (found["status"], found["reason"]) == ("False", "KVCachePressure")
    assert "97 % full, 6 waiting per replica" in found["message"]
    assert "parallelism.tensor" in found["message"]
    assert cluster.events().count("KVCachePressure") == 1
    # A new process goes on with it, and tells it no second time.
    cluster.looks(3 * MINUTE)
    assert condition(cluster.service(), "AsPlanned")["reason"] == "KVCachePressure"
    assert cluster.events().count("KVCachePressure") == 1
    cluster.load.told = healthy
    cluster.looks(30 * MINUTE)
    assert condition(cluster.service(), "AsPlanned")["status"] == "True"


def test_what_was_learned_outlives_the_process(cluster, asked):
    seen, _ = asked
    cluster.looks(5 * MINUTE)
    learned, *_ = seen[-1]
    assert learned.prompts.count > 0
    seen.clear()
    cluster.looks()
    recalled, *_ = seen[0]
    assert recalled.prompts.count == pytest.approx(learned.prompts.count, rel=0.5)
    assert recalled.log_slowness.keys() == learned.log_slowness.keys()
    assert recalled.since_seconds == learned.since_seconds


def test_pods_of_another_clock_are_believed(cluster, clock, asked):
    """They tell that they were made tomorrow; what they measure is of today."""
    seen, _ = asked
    clock.pass_by(-86400.0)
    cluster.looks(5 * MINUTE)
    assert condition(cluster.service(), "MetricsAvailable")["status"] == "True"
    learned, *_ = seen[-1]
    assert learned.prompts.count > 0


def test_what_was_learned_is_written_now_and_then_and_not_at_each_look(cluster):
    cluster.looks(3 * MINUTE)
    written = [each for each in cluster.looks(40 * MINUTE) if "inferenceservices" in each]
    assert 2 <= len(written) <= 15  # of 240 looks


@pytest.mark.parametrize("text", ["", "x" * 100, "eJyrVkrLz1eyUkpKLFKqBQAdegQc", "å", "A" * 16384])
def test_a_damaged_memory_is_none(cluster, asked, text):
    seen, _ = asked
    cluster.looks(2 * MINUTE)
    service = cluster.service()
    scaling = {**service["status"]["scaling"], "memory": text}
    cluster.put({**service, "status": {**service["status"], "scaling": scaling}})
    seen.clear()
    cluster.looks()
    recalled, *_ = seen[0]
    assert recalled.prompts.count == 0
    assert condition(cluster.service(), "MetricsAvailable")["status"] == "True"


def test_a_memory_that_decisions_fail_on_is_forgotten(cluster, monkeypatch, log):
    cluster.looks(2 * MINUTE)
    ages, restarted = [], cluster.clock.now.timestamp()

    def decide(service, memory, look):
        ages.append(memory.since_seconds)
        if memory.since_seconds is not None and memory.since_seconds < restarted:
            raise ZeroDivisionError("it was poisoned")
        return controller.decide(service, memory, look)

    monkeypatch.setattr("poolwise.handlers.scaling.decide", decide)
    cluster.looks(4)
    assert ages[0] < restarted
    assert ages[1] is None
    assert "scaling failed on one service" in log.getvalue()


def copied(cluster, name, ready_since, made):
    """One replica more."""
    pods = cluster.kube.objects.items()
    first = next(each for (kind, _, n), each in pods if (kind.kind, n) == ("Pod", "chat-0"))
    ready = {"type": "Ready", "status": "True" if ready_since else "False"}
    ready["lastTransitionTime"] = (ready_since or made).strftime("%Y-%m-%dT%H:%M:%SZ")
    metadata = {**first["metadata"], "name": name, "uid": name}
    metadata["creationTimestamp"] = made.strftime("%Y-%m-%dT%H:%M:%SZ")
    status = {**first["status"], "conditions": [ready]}
    cluster.put({**first, "metadata": metadata, "status": status})


def test_a_replica_that_never_starts_is_no_capacity_and_is_made_up_for(cluster, asked):
    seen, wanted = asked
    wanted["n"] = 2
    cluster.looks()
    assert cluster.child("Deployment")["spec"]["replicas"] == 2
    copied(cluster, "chat-1", None, cluster.clock.now)
    cluster.looks()
    assert len(seen[-1][1].replicas) == 2  # it is on its way
    assert condition(cluster.service(), "AsPlanned")["status"] == "True"
    cluster.clock.pass_by(2 * 3600)
    cluster.looks()
    _, look, service = seen[-1]
    assert [each.name for each in look.replicas] == ["chat-0"]
    assert service.most_replicas == 7
    found = condition(cluster.service(), "AsPlanned")
    assert (found["status"], found["reason"]) == ("False", "StartOverdue")
    assert "chat-1 did not become ready within" in found["message"]
    assert "1 other asked for instead" in found["message"]
    assert cluster.child("Deployment")["spec"]["replicas"] == 3
    assert cluster.events().count("StartOverdue") == 1


def test_one_that_lost_its_readiness_a_moment_ago_is_not_overdue(cluster, asked):
    copied(cluster, "chat-1", None, cluster.clock.now - timedelta(days=2))
    pod = next(o for (k, _, n), o in cluster.kube.objects.items() if n == "chat-1")
    ready = {"type": "Ready", "status": "False"}
    ready["lastTransitionTime"] = cluster.clock.now.strftime("%Y-%m-%dT%H:%M:%SZ")
    cluster.put({**pod, "status": {**pod["status"], "conditions": [ready]}})
    cluster.looks()
    assert condition(cluster.service(), "AsPlanned")["status"] == "True"
    assert len(asked[0][-1][1].replicas) == 2


def budget(cluster):
    return cluster.child("PodDisruptionBudget", "policy/v1")["spec"]["minAvailable"]


def test_the_disruption_budget_follows_what_meets_the_targets(cluster, asked):
    """Somebody wants six, and the load needs one: five may go at the same time."""
    _, wanted = asked
    wanted["n"] = 6
    cluster.looks()
    assert cluster.child("Deployment")["spec"]["replicas"] == 6
    cluster.looks(20 * MINUTE)
    assert budget(cluster) == 1
    writes = cluster.looks(MINUTE)  # by a new process, which has seen too little at first
    assert not any("poddisruptionbudgets" in each for each in writes)
    assert budget(cluster) == 1
    cluster.load.look = _silent  # nobody tells: one at a time
    cluster.looks(4)
    assert budget(cluster) == 5


def test_a_new_process_lowers_the_disruption_budget_no_sooner(cluster, asked, monkeypatch):
    """Six are wanted, a busy load needs five of them at least, and in a lull one is enough."""
    _, wanted = asked
    wanted["n"] = 6
    monkeypatch.setattr("tests.handlers.fleet.REQUESTS_PER_LOOK", 900.0)
    cluster.looks(5 * MINUTE)
    assert budget(cluster) == 5
    monkeypatch.setattr("tests.handlers.fleet.REQUESTS_PER_LOOK", 40.0)
    cluster.looks(3 * MINUTE)
    writes = cluster.looks(9 * MINUTE)  # by a new process, which has seen the lull alone
    assert not any("poddisruptionbudgets" in each for each in writes)
    assert budget(cluster) == 5
    cluster.looks(12 * MINUTE)  # by one that has seen it for as long as a budget stays
    assert budget(cluster) == 1


async def _silent(targets):
    return {each: Fault("no answer within 3 s") for each in targets}


def test_the_next_process_follows_the_load_after_the_clock_was_set_back(
    cluster, clock, monkeypatch
):
    """The one before ends by itself: what it has seen would be in the future."""
    clock.pass_by(7200)  # it is ahead of the API server's
    cluster.looks(5 * MINUTE)
    before = cluster.child("Deployment")["spec"]["replicas"]
    clock.pass_by(-7200)
    monkeypatch.setattr("tests.handlers.fleet.REQUESTS_PER_LOOK", 900.0)
    cluster.looks(MINUTE)
    assert cluster.child("Deployment")["spec"]["replicas"] > before


def test_targets_are_told_and_followed_by_no_replica_where_only_the_rate_counts(cluster, asked):
    seen, _ = asked
    edited = cluster.service()
    targets = [{"metric": "TTFT", "percentile": 99, "target": "20ms"}]
    edited["spec"] |= {"trafficClass": "Throughput", "slo": targets}
    edited["metadata"]["generation"] += 1
    cluster.put(edited)
    cluster.looks(15 * MINUTE)
    assert seen[-1][2].targets == ()
    found = condition(cluster.service(), "SLOMet")
    assert (found["status"], found["reason"]) == ("False", "BeyondTargets")
    (signal,) = cluster.service()["status"]["scaling"]["signals"]
    assert (signal["metric"], signal["percentile"]) == ("TTFT", 99)
    assert cluster.child("Deployment")["spec"]["replicas"] == 1
