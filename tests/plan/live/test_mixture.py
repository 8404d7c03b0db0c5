"""A service on several pools, as its pods show it and as people read it."""

from __future__ import annotations

from poolwise.api.scaling_status import ScalingStatus
from poolwise.plan.live.look import Mode
from poolwise.plan.live.mixture import words
from poolwise.plan.live.rivals import rival
from poolwise.plan.live.seen import pool_by_maker, pool_of
from poolwise.plan.live.telling import measured
from poolwise.plan.names import overflow_name
from tests.plan.live.given import look, pod
from tests.plan.live.test_rivals import CHAT, hpa

SPREAD = {"near": 2, "far": 3}


def made_by(replica_set: str):
    owner = {"kind": "ReplicaSet", "name": replica_set, "controller": True}
    return pod(metadata={"ownerReferences": [owner]})


def test_a_pod_is_on_the_pool_of_the_deployment_that_made_it():
    makers = pool_by_maker("chat", ["near", "far"])
    name = overflow_name("chat", "far")
    assert pool_of(made_by(f"{name}-75fc77d479"), makers, "near") == "far"
    assert pool_of(made_by("chat-75fc77d479"), makers, "near") == "near"
    assert pool_of(pod(), makers, "near") == "near"
    assert name != overflow_name("chat", "near") and len(overflow_name("c" * 63, "far")) <= 63


def test_each_pool_is_told_with_its_number_and_weight():
    told = measured(look(5, by_pool=SPREAD, weights={"near": 0.1, "far": 0.26}), {}).scaling
    assert [(each["pool"], each["replicas"]) for each in told["pools"]] == [*SPREAD.items()]
    assert [each["weight"] for each in told["pools"]] == [1, 2.6]
    assert "beyond the room of near" in told["pools"][1]["reason"]
    ScalingStatus.model_validate(told)
    assert words(told) == "2 replicas on near, 3 on far"


def test_one_pool_is_not_told_apart():
    told = measured(look(2, by_pool={"near": 2, "far": 0}), {}).scaling
    assert "pools" not in told
    assert words(told) == ""
    assert words({"pools": [{"pool": "a"}, "junk"]}) == ""


def test_another_mix_is_told_at_once_and_another_weight_is_not():
    before = measured(look(5, by_pool=SPREAD, weights={"near": 0.1, "far": 0.26}), {}).scaling
    same = measured(look(5, by_pool=SPREAD, weights={"near": 0.1, "far": 0.25}), before).scaling
    assert same == before
    moved = measured(look(5, by_pool={"near": 3, "far": 2}), before).scaling
    assert words(moved) == "3 replicas on near, 2 on far"


def test_an_autoscaler_on_a_further_deployment_is_one_too_many():
    theirs = hpa(name=overflow_name("chat", "far"))
    assert rival(CHAT, Mode.EXTERNAL, [theirs]) is None
    assert "HorizontalPodAutoscaler theirs" in str(rival(CHAT, Mode.EXTERNAL, [theirs], ["far"]))
