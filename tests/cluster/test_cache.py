"""The cache: what is kept of each kind, and what is being written counts."""

from __future__ import annotations

import pytest

from poolwise.cluster.cache import Cache
from poolwise.cluster.resources import ACCELERATOR_POOLS, JOBS, NODES, PODS, QUEUED, TRAINING_JOBS
from tests.cluster.given import job


@pytest.fixture
def cache():
    return Cache()


def test_children_are_found_by_the_uid_of_their_controller(cache):
    cache.put(JOBS, job("a", uid="1"))
    cache.put(JOBS, job("b", uid="2", owner="somebody-else"))
    assert [child["metadata"]["name"] for child in cache.children_of("uid-owner")] == ["a"]
    cache.put(JOBS, job("a", uid="1", version=2, owner="somebody-else"))
    assert cache.children_of("uid-owner") == []


def test_a_heartbeat_of_a_node_is_no_change_and_readiness_is(cache):
    def node(version, ready="True", beat="1"):
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": "n", "uid": "1", "resourceVersion": str(version)},
            "status": {
                "allocatable": {"cpu": "8"},
                "images": [{"names": ["large"]}],
                "conditions": [
                    {"type": "MemoryPressure", "status": "False", "lastHeartbeatTime": beat},
                    {"type": "Ready", "status": ready, "lastHeartbeatTime": beat},
                ],
            },
        }

    assert cache.put(NODES, node(1))
    assert not cache.put(NODES, node(2, beat="2"))
    assert cache.put(NODES, node(3, ready="False"))
    assert "images" not in cache.get(NODES, None, "n")["status"]


def test_environment_and_commands_of_pods_are_not_kept(cache):
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "a", "uid": "1", "resourceVersion": "1"},
        "spec": {"containers": [{"name": "c", "env": [{"name": "TOKEN", "value": "secret"}]}]},
    }
    cache.put(PODS, pod)
    assert "secret" not in str(cache.get(PODS, "a", "p"))


def test_a_child_that_is_being_written_counts_until_it_is_there_or_given_up(cache):
    written = job(version=4, spec={"parallelism": 2})
    wanted = _wanted(written)
    cache.expect(JOBS, wanted)
    assert cache.observed().children == (wanted,)
    cache.put(JOBS, written)
    assert [each["metadata"].get("uid") for each in cache.observed().children] == ["uid-1"]
    cache.unexpect(JOBS, ("research", "train"))
    cache.remove(JOBS, written)
    assert cache.observed().children == ()


def test_a_child_that_is_being_written_counts_beside_one_of_an_earlier_workload(cache):
    left = job(uid="1", owner="of-the-earlier-one")
    wanted = _wanted(job())
    cache.put(JOBS, left)
    cache.expect(JOBS, wanted)
    assert wanted in cache.observed().children
    cache.remove(JOBS, left)
    assert cache.observed().children == (wanted,)


def _wanted(written):
    """As it is before the API server has seen it."""
    fields = "name", "namespace", "ownerReferences"
    return {**written, "metadata": {each: written["metadata"][each] for each in fields}}


def test_what_a_fresh_list_lacks_is_dropped(cache):
    cache.put(JOBS, job("a", uid="1"))
    cache.put(JOBS, job("b", uid="2"))
    before = cache.uids(JOBS, None)
    cache.put(JOBS, job("c", uid="3"))
    listed = {"2"}
    gone = cache.drop(JOBS, before - listed)
    assert [each["metadata"]["name"] for each in gone] == ["a"]
    assert cache.uids(JOBS, None) == {"2", "3"}


def test_uids_are_of_one_namespace_if_asked(cache):
    cache.put(JOBS, job(uid="1"))
    assert cache.uids(JOBS, "elsewhere") == set()
    assert cache.uids(JOBS, "research") == {"1"}


def test_discovered_pools_are_never_read_back(cache):
    for name, labels in (("mine", {}), ("found", {"poolwise.dev/discovered": "true"})):
        cache.put(
            ACCELERATOR_POOLS,
            {
                "apiVersion": "poolwise.dev/v1alpha1",
                "kind": "AcceleratorPool",
                "metadata": {"name": name, "uid": name, "resourceVersion": "1", "labels": labels},
            },
        )
    assert [pool["metadata"]["name"] for pool in cache.observed().pools] == ["mine"]


@pytest.mark.parametrize(
    ("status", "is_queued"),
    [
        (None, True),
        ({"conditions": [{"type": "Admitted", "status": "True"}]}, True),
        ({"conditions": [{"type": "Finished", "status": "False"}]}, True),
        (
            {
                "conditions": [
                    {"type": "Admitted", "status": "True"},
                    {"type": "Finished", "status": "True"},
                ]
            },
            False,
        ),
    ],
    ids=["new", "admitted", "not-finished", "finished"],
)
def test_a_workload_of_kueue_that_has_finished_counts_no_more(cache, status, is_queued):
    workload = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": {"name": "w", "namespace": "research", "uid": "1"},
        "status": status,
    }
    cache.put(QUEUED, workload)
    assert len(cache.observed().queues.workloads) == is_queued


def test_managed_fields_are_not_kept(cache):
    crowded = {"apiVersion": "poolwise.dev/v1alpha1", "kind": "TrainingJob", **job()}
    crowded["metadata"]["managedFields"] = [{"manager": "kubectl"}]
    cache.put(TRAINING_JOBS, crowded)
    assert "managedFields" not in cache.get(TRAINING_JOBS, "research", "train")["metadata"]
