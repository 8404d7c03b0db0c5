"""Pods that an update has beside the number that is asked for."""

from poolwise.plan.live.seen import asked_for, without_surge
from poolwise.plan.scaling.seen import Phase, ReplicaSeen


def replica(name, phase=Phase.READY, requested=0.0, pool="near"):
    return ReplicaSeen(name, pool, phase, requested)


def counted(*replicas, asked):
    found = without_surge(replicas, asked)
    return {each.name for each in found if each.phase is not Phase.DRAINING}


def test_who_starts_beside_all_others_takes_the_place_of_one():
    old, new = replica("old"), replica("new", Phase.STARTING, 9.0)
    assert counted(old, new, asked={"near": 1}) == {"old"}
    assert counted(old, new, asked={"near": 2}) == {"old", "new"}


def test_of_those_that_are_ready_the_oldest_goes():
    old, new = replica("old"), replica("new", requested=9.0)
    assert counted(old, new, asked={"near": 1}) == {"new"}


def test_each_pool_is_counted_for_itself_and_one_that_nobody_told_of_as_it_is():
    replicas = (replica("a"), replica("b", pool="far"), replica("c", pool="far", requested=1.0))
    assert counted(*replicas, asked={"near": 1, "far": 1}) == {"a", "c"}
    assert counted(*replicas, asked={}) == {"a", "b", "c"}


def test_what_leaves_takes_no_place():
    gone = replica("gone", Phase.DRAINING, 9.0)
    assert counted(replica("a"), gone, asked={"near": 1}) == {"a"}


def test_the_number_is_read_off_what_runs_them():
    children = [
        {"kind": "Deployment", "metadata": {"name": "chat"}, "spec": {"replicas": 4}},
        {"kind": "Deployment", "metadata": {"name": "chat-far"}, "spec": {"replicas": 2}},
        {"kind": "Service", "metadata": {"name": "chat"}},
    ]
    assert asked_for(children, {"chat-far": "far"}, "near") == {"near": 4, "far": 2}
