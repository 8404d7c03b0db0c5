"""Replicas as pods show them."""

import pytest

from poolwise.plan.live.leaving import DELETION_COST, deletion_costs
from poolwise.plan.live.seen import by_our_clock, replica_seen, serving_pods, start_seconds
from poolwise.plan.scaling.seen import Phase
from poolwise.plan.signals.sample import Sample
from tests.plan.live.given import NOW, pod


@pytest.mark.parametrize(
    ("made", "phase"),
    [
        (pod(), Phase.READY),
        (pod(ready_after_seconds=None), Phase.STARTING),
        (pod(leaves=True), Phase.DRAINING),
    ],
)
def test_phases(made, phase):
    assert replica_seen(made, "h100").phase is phase


def test_times_are_those_of_the_pod():
    seen = replica_seen(pod(ready_after_seconds=42), "h100")
    assert seen.ready_at_seconds is not None
    assert seen.ready_at_seconds - seen.requested_at_seconds == 42
    assert seen.requested_at_seconds == NOW.timestamp() - 600


def test_times_ahead_of_our_clock_tell_nothing():
    then = NOW.timestamp() - 86400.0
    ready = by_our_clock(replica_seen(pod(), "h100"), then)
    assert (ready.requested_at_seconds, ready.ready_at_seconds) == (0.0, 0.0)
    starts = by_our_clock(replica_seen(pod(ready_after_seconds=None), "h100"), then)
    assert (starts.requested_at_seconds, starts.ready_at_seconds) == (then, None)
    just_ready = replica_seen(pod(ready_after_seconds=605.0), "h100")
    assert by_our_clock(just_ready, NOW.timestamp()) == just_ready


def test_of_a_group_its_leader_serves_and_what_has_ended_does_not():
    index = "leaderworkerset.sigs.k8s.io/worker-index"
    leader, worker = (pod(metadata={"labels": {index: each}}) for each in ("0", "1"))
    ended = {**pod(), "status": {"phase": "Failed"}}
    assert list(serving_pods([leader, worker, ended, pod()])) == [leader, pod()]


def test_a_start_takes_what_starts_took():
    pods = [pod(f"chat-{n}", seconds) for n, seconds in enumerate((50, 60, 400))]
    assert start_seconds(pods, 1200) == 60
    assert start_seconds(pods, 55) == 55
    lost_readiness_an_hour_later = pod("chat-3", 3600)
    assert start_seconds([*pods[:1], lost_readiness_an_hour_later], 1200) == 50
    assert start_seconds([lost_readiness_an_hour_later], 1200) == 600
    assert start_seconds([pod(ready_after_seconds=None)], 1200) == 600


def test_what_restarted_tells_of_no_start():
    restarted = pod("chat-1", 400)
    restarted["status"]["containerStatuses"] = [{"restartCount": 1}]
    assert start_seconds([pod("chat-0", 50), restarted], 1200) == 50


def sample(name, running=0.0, waiting=0.0, cache=0.0):
    return Sample(name, 0.0, running=running, waiting=waiting, kv_cache_usage=cache)


def marked(pods, samples, leaving):
    return {each["metadata"]["name"]: cost for each, cost in deletion_costs(pods, samples, leaving)}


PODS = [pod("a"), pod("b"), pod("c")]
LOOKS = {
    "uid-a": sample("a", running=2, waiting=7),
    "uid-b": sample("b", running=3, waiting=None, cache=None),
    "uid-c": sample("c", running=3, cache=0.9),
}


def test_who_has_least_work_left_leaves_first():
    assert marked(PODS, LOOKS, 1) == {"b": "-1"}
    assert marked(PODS, LOOKS, 2) == {"b": "-1", "c": "-1"}


def test_who_does_not_tell_leaves_before_who_works():
    looks = {uid: look for uid, look in LOOKS.items() if uid != "uid-a"}
    assert marked(PODS, looks, 1) == {"a": "-1"}


def test_those_that_are_not_ready_leave_by_themselves():
    pods = [*PODS, pod("starting", ready_after_seconds=None)]
    assert marked(pods, LOOKS, 1) == {}
    assert marked(pods, LOOKS, 2) == {"b": "-1"}


def test_an_old_mark_is_taken_back():
    was = pod("a", metadata={"annotations": {DELETION_COST: "-1"}})
    assert marked([was, *PODS[1:]], LOOKS, 1) == {"a": "0", "b": "-1"}
    assert (
        marked([pod("b", metadata={"annotations": {DELETION_COST: "-1"}}), PODS[0]], LOOKS, 1) == {}
    )


def test_those_that_leave_already_are_left_alone():
    assert marked([*PODS, pod("gone", leaves=True)], LOOKS, 1) == {"b": "-1"}
