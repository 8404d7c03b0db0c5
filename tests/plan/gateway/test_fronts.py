"""Which InferencePool stands before a service."""

import pytest

from poolwise.plan.children.metadata import serving_labels
from poolwise.plan.conditions import Reason
from poolwise.plan.decision import Key, Kind
from poolwise.plan.gateway.fronts import front, pod_labels
from poolwise.plan.gateway.pools import InferencePool

KEY, OTHER = (Key(Kind.INFERENCE_SERVICE, "a", name) for name in ("chat", "other"))
OWNER, KIND = "poolwise.dev/owner", "poolwise.dev/owner-kind"
OURS = {OWNER: "chat", KIND: "InferenceService"}
NEAR, FAR = pod_labels(KEY, "near", False), pod_labels(KEY, "far", False)


def pool(name="chat", problem="", **labels):
    selector = {key.replace("__", "/").replace("_", "-"): each for key, each in labels.items()}
    return InferencePool(name, selector or OURS, f"{name}-epp", problem)


def only_near():
    return InferencePool("near", {**OURS, "poolwise.dev/pool": "near"}, "near-epp")


def test_the_one_that_takes_all_of_its_pods():
    found = front(KEY, [NEAR, FAR], [pool(), pool("other", app="x")])
    assert (found.pool, found.reason) == (pool(), None)
    assert found.takes_all([NEAR, FAR, pod_labels(KEY, "new", False)])


def test_labels_are_those_of_pods_that_are_not_there_yet():
    assert NEAR == {**OURS, "app.kubernetes.io/managed-by": "poolwise", "poolwise.dev/pool": "near"}


def test_of_a_replica_that_spans_nodes_the_leader_is_meant():
    leader = pod_labels(KEY, "near", True)
    index = "leaderworkerset.sigs.k8s.io/worker-index"
    assert leader[index] == "0"
    assert front(KEY, [leader], [InferencePool("chat", {**OURS, index: "0"}, "epp")]).pool


def test_none_is_said_with_the_label_that_it_would_take():
    found = front(KEY, [NEAR], [pool("other", app="x")])
    assert (found.pool, found.reason) == (None, Reason.NOTHING_HOLDS_REQUESTS)
    assert "namespace a takes its pods (poolwise.dev/owner: chat)" in found.problem


def test_two_are_none_and_both_are_named():
    found = front(KEY, [NEAR], [pool("one"), pool("another")])
    assert (found.pool, found.reason) == (None, Reason.SEVERAL_INFERENCE_POOLS)
    assert "another, one" in found.problem


def test_one_that_takes_a_part_of_its_pods_routes_a_part_of_its_requests():
    assert front(KEY, [NEAR], [only_near()]).pool == only_near()
    found = front(KEY, [NEAR, FAR], [only_near()])
    assert (found.pool, found.reason) == (None, Reason.NOTHING_HOLDS_REQUESTS)
    assert not front(KEY, [NEAR], [only_near()]).takes_all([NEAR, FAR])


def test_one_that_is_shared_routes_and_holds_for_nobody_knows_whom():
    for more in ({}, {"poolwise.dev/pool": "near"}):
        shared = InferencePool("all", {KIND: "InferenceService", **more}, "epp")
        found = front(KEY, [NEAR], [shared], [serving_labels(OTHER, leaders_only=False)])
        assert (found.pool, found.reason) == (shared, Reason.SHARED_INFERENCE_POOL)


@pytest.mark.parametrize("problem", ["it names no endpoint picker", "no gateway accepts it (X)"])
def test_one_whose_picker_cannot_be_asked_routes_and_says_so(problem):
    found = front(KEY, [NEAR], [pool(problem=problem)])
    assert found.pool is not None and found.reason is Reason.NO_ENDPOINT_PICKER
    assert problem in found.problem
