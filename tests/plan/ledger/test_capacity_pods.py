"""What pods hold, counted as the scheduler counts it."""

from dataclasses import replace

import pytest

from poolwise.plan.decision import Claim, Key, Kind
from poolwise.plan.ledger.capacity_pods import NOTHING, Usage, requests, settled, usage_by_node

GPU = "nvidia.com/gpu"
KEY = Key(Kind.TRAINING_JOB, "research", "llama")


def asks(restart=None, **quantities):
    container = {
        "resources": {"requests": {k.replace("gpu", GPU): v for k, v in quantities.items()}}
    }
    return container | ({"restartPolicy": restart} if restart else {})


def pod(*containers, init=(), node="a", phase="Running", labels=None, **spec):
    return {
        "metadata": {"namespace": "research", "labels": labels or {}},
        "spec": {"nodeName": node, "containers": [*containers], "initContainers": [*init], **spec},
        "status": {"phase": phase},
    }


def ours(*containers, **more):
    labels = {
        "app.kubernetes.io/managed-by": "poolwise",
        "poolwise.dev/owner-kind": "TrainingJob",
        "poolwise.dev/owner": "llama",
        "poolwise.dev/pool": "h100",
    }
    return pod(*containers, labels=labels, **more)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param(pod(), NOTHING, id="nothing"),
        pytest.param(
            pod(asks(cpu="500m", memory="1Gi"), asks(cpu=2, gpu="2")),
            Usage({GPU: 2}, 2.5, 2**30),
            id="containers add up",
        ),
        pytest.param(
            pod(asks(cpu=1), init=[asks(cpu=3), asks(cpu=2)]), Usage({}, 3.0), id="largest init"
        ),
        pytest.param(
            pod(asks(cpu=1), init=[asks("Always", cpu=2)]), Usage({}, 3.0), id="sidecar stays"
        ),
        pytest.param(
            pod(asks(cpu=1), init=[asks("Always", cpu=2), asks(cpu=4)]),
            Usage({}, 6.0),
            id="init beside an earlier sidecar",
        ),
        pytest.param(
            pod(asks(cpu=1), init=[asks(cpu=4), asks("Always", cpu=2)]),
            Usage({}, 4.0),
            id="init before a later sidecar",
        ),
        pytest.param(
            pod(asks(cpu=1), overhead={"cpu": "250m", "memory": "64Mi"}),
            Usage({}, 1.25, 64 * 2**20),
            id="overhead",
        ),
        pytest.param(
            pod(asks(cpu=1, gpu=1), resources={"requests": {"cpu": "4"}}),
            Usage({GPU: 1}, 4.0),
            id="the pod's own requests",
        ),
        pytest.param(
            pod({"resources": {"limits": {GPU: 4, "cpu": 2}, "requests": {"cpu": 1}}}),
            Usage({GPU: 4}, 1.0),
            id="limit counts without a request",
        ),
        pytest.param(
            pod(asks(**{"ephemeral-storage": "1Gi", "rdma/hca": 1}), asks(**{"rdma/hca": 1})),
            Usage({"rdma/hca": 2}, others={"ephemeral-storage": 2**30}),
            id="any other resource",
        ),
        pytest.param(
            pod(
                asks(**{"hugepages-2Mi": "1Gi", "ephemeral-storage": "1Gi"}),
                resources={"requests": {"hugepages-2Mi": "2Gi"}},
            ),
            Usage(others={"hugepages-2Mi": 2**31, "ephemeral-storage": 2**30}),
            id="the pod's own huge pages",
        ),
        pytest.param(
            {"spec": {"containers": [None, {"resources": {"requests": {"cpu": "junk"}}}]}},
            NOTHING,
            id="junk holds nothing",
        ),
    ],
)
def test_requests(given, expected):
    assert requests(given) == expected


@pytest.mark.parametrize(
    ("given", "held"),
    [
        pytest.param(pod(asks(gpu=1)), 1, id="running"),
        pytest.param(pod(asks(gpu=1), phase="Pending"), 1, id="bound but not started"),
        pytest.param(pod(asks(gpu=1), phase="Succeeded"), 0, id="succeeded"),
        pytest.param(pod(asks(gpu=1), phase="Failed"), 0, id="failed"),
        pytest.param(pod(asks(gpu=1), node=None), 0, id="not bound"),
        pytest.param({"metadata": None, "spec": None, "status": 3}, 0, id="no pod at all"),
    ],
)
def test_only_bound_unfinished_pods_hold_a_node(given, held):
    foreign, _ = usage_by_node([given], {})
    assert foreign.get("a", NOTHING).accelerators.get(GPU, 0) == held


def test_pods_are_counted_themselves():
    foreign, own = usage_by_node([ours(), ours(asks(cpu=1)), pod(), pod(node="b")], {KEY: "h100"})
    assert {node: use.others["pods"] for node, use in foreign.items()} == {"a": 1, "b": 1}
    assert own[KEY]["a"].others == {"pods": 2}


def test_pods_of_running_workloads_are_not_foreign():
    foreign, own = usage_by_node([ours(asks(gpu=8)), pod(asks(gpu=1))], {KEY: "h100"})
    assert foreign["a"].accelerators == {GPU: 1}
    assert own[KEY]["a"].accelerators == {GPU: 8}


def test_leftover_pods_of_ours_hold_their_devices():
    foreign, own = usage_by_node([ours(asks(gpu=8))], {})
    assert foreign["a"].accelerators == {GPU: 8}
    assert not own


def test_pods_that_were_there_before_their_workload_are_not_its_own():
    given = ours(asks(gpu=8))
    given["metadata"]["creationTimestamp"] = "1970-01-01T00:01:00Z"
    foreign, own = usage_by_node([given], {KEY: "h100"}, {KEY: 60.0})
    assert own[KEY]["a"].accelerators == {GPU: 8}
    assert not foreign
    foreign, own = usage_by_node([given], {KEY: "h100"}, {KEY: 61.0})
    assert foreign["a"].accelerators == {GPU: 8}
    assert not own


def test_pods_in_a_pool_that_their_workload_has_left_hold_their_devices():
    foreign, own = usage_by_node([ours(asks(gpu=8))], {KEY: "l40s"})
    assert foreign["a"].accelerators == {GPU: 8}
    assert not own


def claim(**by_node):
    return Claim(KEY, "h100", by_node, {}, {})


@pytest.mark.parametrize(
    ("held", "bound", "expected"),
    [
        pytest.param({"a": 8, "b": 8}, {}, {"a": 8, "b": 8}, id="nothing bound yet"),
        pytest.param({"a": 8, "b": 8}, {"b": 8}, {"a": 8, "b": 8}, id="as promised"),
        pytest.param({"a": 8, "b": 8}, {"c": 8}, {"a": 8, "c": 8}, id="elsewhere"),
        pytest.param({"a": 8}, {"b": 8, "c": 8}, {"b": 8, "c": 8}, id="more than claimed"),
    ],
)
def test_claim_counts_where_its_pods_are(held, bound, expected):
    usage = {node: Usage({GPU: count, "hca": count}) for node, count in bound.items()}
    given = replace(claim(**held), others={"hca": held})
    found = settled(given, GPU, usage)
    assert found.accelerators_by_node == expected
    assert found.others == {"hca": expected}
